//! Files: put, sent with messages, read.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::household::{Household, signed_in, string};
use super::reference::{Actor, File, FileNumber, Role};
use super::world::{Answered, Way};

impl Household {
    pub(super) fn put_file(&mut self) -> &'static str {
        let ((person, actor), way, content) = (self.actor(), self.way(), self.text());
        let over_http = self.random.below(2) == 0;
        let answer = match over_http {
            true => {
                let (_, token) = signed_in(actor);
                self.world.put(person, token, &content)
            }
            false => self.put_in_parts(actor, way, &content),
        };
        let allowed = self.reference.needs(actor, Role::User);
        let request = json!({ "put": content, "by": self.name(person) });
        if let Some(data) = self.compare(&request, answer, allowed) {
            self.reference.files.push(File {
                id: string(&data["attachment_id"]).to_owned(),
                content,
                uploader: Some(actor),
                conversation: None,
                is_deleted: false,
            });
        }
        "put"
    }

    fn put_in_parts(&mut self, actor: Actor, way: Way, content: &str) -> Answered {
        let put = json!({ "type": "put_attachment", "name": "a.txt", "bytes": content.len() });
        let id = self.ask(actor, way, put)?["attachment_id"].clone();
        let part = json!({
            "type": "put_attachment_part", "attachment_id": id, "data": STANDARD.encode(content),
        });
        self.ask(actor, way, part)
    }

    /// Up to two files, mostly of those that the actor may send.
    pub(super) fn files_of(&mut self, actor: Actor) -> Vec<FileNumber> {
        let all = self.reference.files.len();
        if all == 0 || self.random.below(6) > 0 {
            return Vec::new();
        }
        let may = |file: &FileNumber| self.reference.may_send(actor, *file).is_ok();
        let own: Vec<FileNumber> = (0..all).filter(may).collect();
        if own.is_empty() || self.random.below(4) == 0 {
            return vec![self.random.below(all)];
        }
        let count = 1 + self.random.below(2);
        own.into_iter().take(count).collect()
    }

    pub(super) fn read_file(&mut self) -> &'static str {
        let all = self.reference.files.len();
        if all == 0 {
            return "no file yet";
        }
        let file = self.random.below(all);
        let ((person, actor), way) = (self.actor(), self.way());
        let (_, token) = signed_in(actor);
        let id = self.reference.files[file].id.clone();
        let request = json!({ "type": "get_attachment", "attachment_id": id });
        let over_http = self.random.below(2) == 0;
        let answer = match over_http {
            true => self.world.get(person, token, &id),
            false => self.ask(actor, way, request.clone()).map(|data| {
                let content = STANDARD.decode(string(&data["data"])).unwrap();
                json!(String::from_utf8(content).unwrap())
            }),
        };
        let allowed = self.reference.may_read(actor, file);
        if let Some(content) = self.compare(&request, answer, allowed) {
            assert_eq!(content, self.reference.files[file].content, "{request}");
        }
        "read a file"
    }
}
