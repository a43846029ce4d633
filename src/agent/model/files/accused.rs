//! Which files of a request to leave out after an error about files.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::Files;
use crate::model::failure::ErrorResponse;
use crate::model::{ChatMessage, FileKind, ModelFile};
use base::ids::AttachmentId;
use protocol::attachment::encode;

/// What was left out of a request so far because somebody had to be accused.
#[derive(Debug, Default)]
pub struct Guesses {
    kinds: Vec<FileKind>,
    first: Vec<AttachmentId>,
    count: usize,
}

/// Single files that are to blame.
#[derive(Debug, PartialEq)]
pub struct Accused {
    /// Those to leave out.
    pub out: Vec<AttachmentId>,
    /// Those that were left out before and are not to blame.
    pub back: Vec<AttachmentId>,
}

impl Files<'_> {
    /// The files of these kinds that the request shows, with the places of their messages.
    pub fn sent(&self, kinds: &[FileKind]) -> Vec<(usize, &ModelFile)> {
        let messages = self.request.messages.iter().enumerate();
        let messages = messages.filter(|(_, message)| {
            self.profile.message_after_results || !matches!(message, ChatMessage::ToolResult { .. })
        });
        messages
            .flat_map(|(place, message)| message.files().iter().map(move |file| (place, file)))
            .filter(|(_, file)| kinds.contains(&file.kind()) && self.kept.contains(&file.id))
            .collect()
    }

    /// All images and documents that the request shows.
    pub fn all_sent(&self) -> impl Iterator<Item = AttachmentId> + '_ {
        let sent = self.sent(&[FileKind::Document, FileKind::Image]);
        sent.into_iter().map(|(_, file)| file.id)
    }

    /// The files of these kinds to leave out: those that the error names, or else first the
    /// newest that the model has not taken before. If it was not them, all others: the person
    /// asks about the newest. Then all.
    pub fn accused(
        &self,
        kinds: &[FileKind],
        response: &ErrorResponse,
        body: &[u8],
        taken: &BTreeSet<AttachmentId>,
        guesses: &mut Guesses,
    ) -> Accused {
        let named = (kinds.len() == 1).then(|| self.named(response, body));
        if let Some(out) = named.flatten() {
            let back = Vec::new();
            return Accused { out, back };
        }
        let sent = self.sent(kinds);
        let ids = |of: &dyn Fn(&(usize, &ModelFile)) -> bool| -> Vec<AttachmentId> {
            let found = sent.iter().filter(|one| of(one));
            found.map(|(_, file)| file.id).collect()
        };
        if guesses.kinds != kinds {
            *guesses = Guesses {
                kinds: kinds.to_vec(),
                ..Guesses::default()
            };
        }
        guesses.count += 1;
        if guesses.count > 1 {
            let back = std::mem::take(&mut guesses.first);
            let out = ids(&|_| true);
            return Accused { out, back };
        }
        let is_new = |(_, file): &(usize, &ModelFile)| !taken.contains(&file.id);
        let newest = sent.last().map(|(place, _)| *place);
        let newest_new = sent.iter().rev().find(|one| is_new(one));
        // Only together can those be too much that were taken before.
        let is_size = guesses.kinds.len() > 1 || newest_new.is_none();
        let mut out = match newest_new {
            Some((place, _)) if !is_size => ids(&|one| one.0 == *place && is_new(one)),
            _ => ids(&|one| Some(one.0) != newest),
        };
        if out.is_empty() {
            out = ids(&|_| true);
        }
        guesses.first.clone_from(&out);
        let back = Vec::new();
        Accused { out, back }
    }

    /// The files that an error names by their place in the request, such as
    /// `messages.2.content.0`: those whose content stands there.
    fn named(&self, response: &ErrorResponse, body: &[u8]) -> Option<Vec<AttachmentId>> {
        #[derive(Deserialize)]
        struct Body<'a> {
            #[serde(borrow, alias = "input")]
            messages: Vec<&'a RawValue>,
        }
        let named = path_in(&response.message).or_else(|| path_in(&response.labels))?;
        let (place, inner) = named.split_first()?;
        let body: Body<'_> = serde_json::from_slice(body).ok()?;
        let message: Value = serde_json::from_str(body.messages.get(*place)?.get()).ok()?;
        let part = inner.iter().try_fold(&message, |part, place| {
            let parts = part.get("content").or_else(|| part.get("output"))?;
            parts.get(*place)
        });
        let part = part?.to_string();
        let is_there = |file: &ModelFile| {
            let bytes = self.request.files.bytes(file);
            bytes.is_some_and(|bytes| part.contains(&encode(&bytes)))
        };
        let sent = self.sent(&[FileKind::Document, FileKind::Image]);
        let found = sent.into_iter().filter(|(_, file)| is_there(file));
        let found: Vec<AttachmentId> = found.map(|(_, file)| file.id).collect();
        (!found.is_empty()).then_some(found)
    }
}

/// The numbers of the first path below `messages` or `input` in a text.
fn path_in(text: &str) -> Option<Vec<usize>> {
    ["messages", "input"].iter().find_map(|root| {
        let mut found = text.match_indices(root);
        found.find_map(|(place, _)| {
            let path = &text[place + root.len()..];
            let is_part = |letter: char| letter.is_alphanumeric() || "_.[]".contains(letter);
            let path = &path[..path.find(|letter| !is_part(letter)).unwrap_or(path.len())];
            let mut steps = path.split(['.', '[', ']']).filter(|step| !step.is_empty());
            let first: usize = steps.next()?.parse().ok()?;
            let rest = steps.filter_map(|step| step.parse().ok());
            Some([first].into_iter().chain(rest).collect())
        })
    })
}

#[cfg(test)]
mod tests;
