//! Files: parts in any order, limits, links, and what deletes them.

use std::time::Duration;

use crate::testing::*;
use base::error::Code;
use base::ids::{AttachmentId, UserId};
use base::people::UserRole;
use protocol::record::Attachment;

const LIMITS: UploadLimits = UploadLimits {
    bytes: 1 << 20,
    total_bytes: 4 << 20,
    time: Duration::from_secs(300),
};

fn person(store: &Store, name: &str) -> UserId {
    store.add_user(name, UserRole::User, "hash").unwrap().id
}

fn viewer(id: UserId) -> Viewer {
    Viewer::person(id, UserRole::User)
}

fn announced(store: &Store, user: UserId, bytes: u64) -> Result<AttachmentId> {
    let new = NewUpload {
        viewer: viewer(user),
        name: "a.txt".to_owned(),
        declared_type: Some("text/html".to_owned()),
        bytes,
    };
    store.begin_upload(new, LIMITS)
}

fn add(store: &Store, user: UserId, id: AttachmentId, start: u64, data: &[u8]) -> Result<Upload> {
    store.add_to_upload(&viewer(user), id, start, data.to_vec(), LIMITS)
}

fn uploaded(store: &Store, user: UserId, content: &[u8]) -> Attachment {
    let id = announced(store, user, content.len() as u64).unwrap();
    for (number, piece) in content.chunks(PIECE_BYTES).enumerate() {
        let start = (number * PIECE_BYTES) as u64;
        add(store, user, id, start, piece).unwrap();
    }
    store.finish_upload(&viewer(user), id).unwrap()
}

fn content(store: &Store, viewer: &Viewer, id: AttachmentId) -> Vec<u8> {
    let mut content = Vec::new();
    loop {
        let start = content.len() as u64;
        let (_, part) = store.seen(viewer).attachment_part(id, start, 1000).unwrap();
        if part.is_empty() {
            let beyond = store.seen(viewer).attachment_part(id, u64::MAX, 1000);
            assert!(beyond.unwrap().1.is_empty());
            return content;
        }
        content.extend(part);
    }
}

/// What all kept files take.
fn kept_bytes(store: &Store) -> u64 {
    let counts = store.seen(&Viewer::server()).counts().unwrap();
    counts.attachment_bytes
}

fn send(store: &Store, user: UserId, target: Target, ids: &[AttachmentId]) -> Result<Begun> {
    let new = NewTurn {
        viewer: viewer(user),
        attachments: NewAttachments::Uploaded(ids.to_vec()),
        ..message(target, "look")
    };
    store.begin_turn(new).map(Durable::into_inner)
}

fn sent(store: &Store, user: UserId, ids: &[AttachmentId]) -> Message {
    match send(store, user, Target::New, ids).unwrap() {
        Begun::New { message, turn, .. } => {
            finish(store, &turn, "seen");
            message
        }
        Begun::Repeat(turn) | Begun::Again(turn) => panic!("{:?} is a repeat", turn.id),
    }
}

fn code(result: Result<impl std::fmt::Debug>) -> (Code, u16) {
    let error = result.unwrap_err();
    (error.code(), error.status())
}

#[test]
fn parts_come_in_any_size_and_again_and_never_change_what_is_there() {
    let store = TestStore::new();
    let ann = person(&store, "ann");
    let mut state = 11_u64;
    let mut random = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for round in 0..15 {
        let size = match round {
            0 => 0,
            1 => 1,
            _ => random(600_000),
        };
        let file: Vec<u8> = (0..size).map(|_| random(256) as u8).collect();
        let id = announced(&store, ann, size).unwrap();
        let mut received = 0;
        while received < size {
            let start = random(received + 1000);
            let length = match random(3) {
                0 => random(10),
                1 => random(5000),
                _ => random(PIECE_BYTES as u64),
            };
            let end = (start + length).min(size).max(start.min(size));
            let mut part = file[start.min(size) as usize..end as usize].to_vec();
            let is_wrong = start < received && !part.is_empty() && random(4) == 0;
            if is_wrong {
                part[0] ^= 1;
            }
            let added = add(&store, ann, id, start, &part);
            if start > received || is_wrong {
                assert_eq!(code(added), (Code::InvalidRequest, 400), "{start}");
            } else {
                received = received.max(end);
                let expected = Upload {
                    received,
                    bytes: size,
                };
                assert_eq!(added.unwrap(), expected);
            }
        }
        let more = add(&store, ann, id, size, &[1]);
        assert_eq!(
            code(more),
            (Code::InvalidRequest, 400),
            "more than announced"
        );
        let found = store.finish_upload(&viewer(ann), id).unwrap();
        assert_eq!(found.bytes, size);
        assert_eq!(content(&store, &viewer(ann), id), file);
        assert_eq!(
            store.finish_upload(&viewer(ann), id).unwrap(),
            found,
            "again"
        );
        sent(&store, ann, &[id]);
        // Its space is for the next one.
        let conversation = number(&store, "SELECT max(id) FROM conversations");
        store
            .delete_conversation(&Viewer::server(), conversation.into())
            .unwrap();
    }
    store.purge().unwrap();
    assert_eq!(number(&store, "SELECT count(*) FROM attachment_pieces"), 0);
    assert_eq!(kept_bytes(&store), 0);
}

#[test]
fn a_file_is_its_uploaders_and_then_its_conversations() {
    let store = TestStore::new();
    let (ann, ben) = (person(&store, "ann"), person(&store, "ben"));
    let file = uploaded(&store, ann, b"<html>hi</html>");
    let id = file.attachment_id;
    assert_eq!((file.media_type.as_str(), file.bytes), ("text/plain", 15));
    assert_eq!(store.seen(&viewer(ann)).attachment(id).unwrap(), file);
    for other in [viewer(ben), Viewer::account("door")] {
        assert_eq!(
            code(store.seen(&other).attachment(id)),
            (Code::NotFound, 404)
        );
    }
    let not_mine = send(&store, ben, Target::New, &[id]);
    assert_eq!(code(not_mine), (Code::NotFound, 404));
    let twice = send(&store, ann, Target::New, &[id, id]);
    assert_eq!(code(twice), (Code::NotFound, 404));
    assert_eq!(number(&store, "SELECT count(*) FROM messages"), 0);
    assert_eq!(
        store.seen(&viewer(ann)).attachment(id).unwrap(),
        file,
        "still hers"
    );

    let message = sent(&store, ann, &[id]);
    assert_eq!(message.attachments, std::slice::from_ref(&file));
    let found = store.seen(&Viewer::server()).message(message.id).unwrap();
    assert_eq!(found.attachments, std::slice::from_ref(&file));
    assert_eq!(content(&store, &viewer(ben), id), b"<html>hi</html>");
    let guest = Viewer::person(ben, UserRole::Viewer);
    assert_eq!(
        code(store.seen(&guest).attachment(id)),
        (Code::NotFound, 404)
    );
    let again = send(&store, ann, Target::New, &[id]);
    assert_eq!(code(again), (Code::NotFound, 404));
    let late = add(&store, ann, id, 0, b"<");
    assert_eq!(code(late), (Code::NotFound, 404));
}

#[test]
fn a_token_for_the_household_has_what_such_a_token_uploaded() {
    let store = TestStore::new();
    let ann = person(&store, "ann");
    let (all, narrow) = (viewer(ann), viewer(ann).household_only());
    let announce = |viewer: &Viewer| {
        let new = NewUpload {
            viewer: viewer.clone(),
            name: "a.txt".to_owned(),
            declared_type: None,
            bytes: 4,
        };
        store.begin_upload(new, LIMITS).unwrap()
    };
    let link = |viewer: &Viewer, id| {
        let new = NewTurn {
            viewer: viewer.clone(),
            owner: Some(ann),
            attachments: NewAttachments::Uploaded(vec![id]),
            ..message(Target::New, "look")
        };
        store.begin_turn(new).map(Durable::into_inner)
    };
    let missing = (Code::NotFound, 404);
    let mine = announce(&all);
    assert_eq!(
        code(store.add_to_upload(&narrow, mine, 0, b"abcd".to_vec(), LIMITS)),
        missing
    );
    assert_eq!(code(store.finish_upload(&narrow, mine)), missing);
    assert_eq!(code(link(&narrow, mine)), missing, "not even incomplete");
    store
        .add_to_upload(&all, mine, 0, b"abcd".to_vec(), LIMITS)
        .unwrap();
    store.finish_upload(&all, mine).unwrap();
    assert_eq!(code(store.seen(&narrow).attachment(mine)), missing);
    assert_eq!(code(link(&narrow, mine)), missing);

    let common = announce(&narrow);
    store
        .add_to_upload(&narrow, common, 0, b"ab".to_vec(), LIMITS)
        .unwrap();
    store
        .add_to_upload(&all, common, 2, b"cd".to_vec(), LIMITS)
        .unwrap();
    store.finish_upload(&narrow, common).unwrap();
    for viewer in [&all, &narrow] {
        assert_eq!(content(&store, viewer, common), b"abcd");
    }
    link(&narrow, common).unwrap();
}

#[test]
fn an_unfinished_file_is_nothing_yet() {
    let store = TestStore::new();
    let ann = person(&store, "ann");
    let id = announced(&store, ann, 10).unwrap();
    add(&store, ann, id, 0, b"01234").unwrap();
    let code_of_read = code(store.seen(&viewer(ann)).attachment(id));
    let code_of_link = code(send(&store, ann, Target::New, &[id]));
    assert_eq!(code_of_read, (Code::NotFound, 404));
    assert_eq!(code_of_link, (Code::InvalidRequest, 400));
    store.discard_upload(id);
    store.flush().unwrap();
    let gone = add(&store, ann, id, 5, b"56789");
    assert_eq!(code(gone), (Code::NotFound, 404));
    let file = uploaded(&store, ann, b"whole");
    store.discard_upload(file.attachment_id);
    store.flush().unwrap();
    assert!(
        store
            .seen(&viewer(ann))
            .attachment(file.attachment_id)
            .is_ok()
    );
}

#[test]
fn sizes_space_and_number_are_limited() {
    let store = TestStore::new();
    let (ann, ben) = (person(&store, "ann"), person(&store, "ben"));
    let large = announced(&store, ann, LIMITS.bytes + 1);
    assert_eq!(code(large), (Code::InvalidRequest, 413));
    // What was only announced takes no space from others.
    let announced_by_ann: Vec<AttachmentId> = (0..8)
        .map(|_| announced(&store, ann, LIMITS.bytes).unwrap())
        .collect();
    let error = announced(&store, ann, 1).unwrap_err();
    assert_eq!((error.code(), error.status()), (Code::RateLimited, 429));
    assert!(error.message().contains("after 300 seconds"), "{error}");
    let whole = vec![0; LIMITS.bytes as usize];
    let full: Vec<AttachmentId> = (0..4)
        .map(|_| uploaded(&store, ben, &whole).attachment_id)
        .collect();
    let refused = add(&store, ann, announced_by_ann[0], 0, &[0]);
    assert_eq!(code(refused), (Code::ServerError, 507));
    let error = announced(&store, ben, 1).unwrap_err();
    assert_eq!((error.code(), error.status()), (Code::ServerError, 507));
    assert!(error.message().contains("limits.attachments_total_bytes"));
    let included = NewTurn {
        attachments: NewAttachments::Included(
            vec![IncludedFile {
                name: "x".to_owned(),
                declared_type: None,
                data: vec![0],
            }],
            LIMITS,
        ),
        ..message(Target::New, "hello")
    };
    assert_eq!(code(store.begin_turn(included)), (Code::ServerError, 507));
    let message = sent(&store, ben, &full[..1]);
    let conversation = message.conversation_id;
    store
        .delete_conversation(&Viewer::server(), conversation)
        .unwrap();
    add(&store, ann, announced_by_ann[0], 0, &whole[..PIECE_BYTES]).unwrap();
    let left = LIMITS.bytes - PIECE_BYTES as u64;
    uploaded(&store, ben, &whole[..left as usize]);
    let refused = add(&store, ann, announced_by_ann[1], 0, &[0]);
    assert_eq!(code(refused), (Code::ServerError, 507), "to the byte");
    for _ in 0..256 - 4 {
        uploaded(&store, ben, b"");
    }
    assert_eq!(code(announced(&store, ben, 0)), (Code::RateLimited, 429));
}

#[test]
fn what_nobody_uses_goes_and_what_is_used_stays() {
    let clock = Clock::system();
    let dir = TemporaryDirectory::new();
    let store = open_with(&dir, &clock);
    let ann = person(&store, "ann");
    let kept = uploaded(&store, ann, &[7; 3 * PIECE_BYTES]).attachment_id;
    sent(&store, ann, &[kept]);
    let unused = uploaded(&store, ann, &[8; 300_000]).attachment_id;
    let unfinished = announced(&store, ann, 10).unwrap();
    clock.advance(Duration::from_secs(301));
    let late = add(&store, ann, unfinished, 0, &[1]).unwrap_err();
    assert!(late.message().contains("its time is over"), "{late}");
    store.purge().unwrap();
    assert_eq!(number(&store, "SELECT count(*) FROM attachments"), 2);
    assert!(store.seen(&viewer(ann)).attachment(unused).is_ok());
    clock.advance(Duration::from_secs(24 * 60 * 60));
    store.purge().unwrap();
    assert!(store.seen(&viewer(ann)).attachment(unused).is_err());
    assert_eq!(content(&store, &viewer(ann), kept).len(), 3 * PIECE_BYTES);
    assert_eq!(number(&store, "SELECT count(*) FROM attachment_pieces"), 3);
    assert_eq!(kept_bytes(&store), 3 * PIECE_BYTES as u64);
    while store.delete_idle_conversation(Duration::ZERO).unwrap() != Deleted::Nothing {}
    assert!(store.seen(&viewer(ann)).attachment(kept).is_err());
    store.purge().unwrap();
    assert_eq!(number(&store, "SELECT count(*) FROM attachment_pieces"), 0);
    assert_eq!(
        number(&store, "SELECT count(*) FROM deleted_attachments"),
        0
    );
    assert_eq!(kept_bytes(&store), 0);
}

#[test]
fn a_removed_persons_unused_files_go_with_them() {
    let store = TestStore::new();
    let ann = person(&store, "ann");

    let used = uploaded(&store, ann, b"used").attachment_id;
    sent(&store, ann, &[used]);
    uploaded(&store, ann, b"unused");
    store.remove_user(ann, None).unwrap();
    assert_eq!(number(&store, "SELECT count(*) FROM attachments"), 1);
}

#[test]
fn a_message_of_a_webhook_brings_its_files_in_its_commit() {
    let store = TestStore::new();
    let file = |name: &str, data: Vec<u8>| IncludedFile {
        name: name.to_owned(),
        declared_type: None,
        data,
    };
    let picture = [b"\x89PNG\r\n\x1a\n".to_vec(), vec![3; 2 * PIECE_BYTES]].concat();
    let new = NewTurn {
        attachments: NewAttachments::Included(
            vec![file("../p.png", picture.clone()), file("e", Vec::new())],
            LIMITS,
        ),
        ..keyed("webhook:door", "k", 1, named("c"))
    };
    let Begun::New { message, .. } = store.begin_turn(new.clone()).unwrap().into_inner() else {
        panic!("it is new");
    };
    let shown: Vec<(&str, &str, u64)> = message
        .attachments
        .iter()
        .map(|file| (file.name.as_str(), file.media_type.as_str(), file.bytes))
        .collect();
    let bytes = picture.len() as u64;
    assert_eq!(
        shown,
        [("p.png", "image/png", bytes), ("e", "text/plain", 0)]
    );
    let id = message.attachments[0].attachment_id;
    assert_eq!(content(&store, &Viewer::server(), id), picture);
    assert!(matches!(
        store.begin_turn(new).unwrap().into_inner(),
        Begun::Repeat(_)
    ));
    assert_eq!(number(&store, "SELECT count(*) FROM attachments"), 2);
}

#[test]
fn a_file_with_a_part_missing_is_reported() {
    let dir = TemporaryDirectory::new();
    let store = open(&dir);
    let ann = person(&store, "ann");
    let id = uploaded(&store, ann, &[1; 2 * PIECE_BYTES]).attachment_id;
    let path = dir.path().join("hearth.db");
    let faults = |path| examine(path, Duration::from_secs(60)).unwrap().faults;
    assert_eq!(faults(&path), Vec::<String>::new());
    store
        .write(|write| {
            write.execute("DELETE FROM attachment_pieces WHERE start > 0", params![])?;
            Ok(())
        })
        .unwrap();
    assert_eq!(
        faults(&path),
        [format!("attachment {id} has 262144 of its 524288 bytes")]
    );
    let part = store
        .seen(&viewer(ann))
        .attachment_part(id, 0, 2 * PIECE_BYTES);
    assert_eq!(code(part), (Code::NotFound, 404));
}
