use std::collections::HashMap;

use super::*;
use serde_json::Map;

/// Answers after a while, or when the question is withdrawn.
struct Somebody(Duration);

impl Respondent for Somebody {
    fn person(&self) -> UserId {
        UserId::from(1)
    }

    fn ask(&self, asked: ToolQuestion<'_>, withdrawn: &Cancel) -> Answer {
        assert_eq!(
            (asked.tool, asked.question.server.as_str()),
            ("book", "desk")
        );
        match withdrawn.wait(self.0) {
            true => Answer::Dismissed,
            false => Answer::Accepted(Map::new()),
        }
    }

    fn waited(&self) -> Duration {
        Duration::ZERO
    }

    fn left(&self) -> Duration {
        Duration::from_secs(60)
    }
}

/// What was sent, by the ids of the questions.
type Sent = Arc<Mutex<HashMap<u64, Vec<String>>>>;

fn note(sent: &Sent, message: &[u8]) {
    let message: Value = serde_json::from_slice(message).unwrap();
    let action = message.pointer("/result/action").and_then(Value::as_str);
    let action = action.unwrap_or("error").to_owned();
    let id = message["id"].as_u64().unwrap();
    lock(sent).entry(id).or_default().push(action);
}

fn questions(respondent: Option<Somebody>) -> (Arc<Questions>, Sent) {
    let sent = Sent::default();
    let call = AskingCall {
        server: "desk".to_owned(),
        tool: "book".to_owned(),
        arguments: "{}".to_owned(),
        respondent: respondent.map(|one| Arc::new(one) as Arc<dyn Respondent>),
        send: {
            let sent = Arc::clone(&sent);
            Box::new(move |message| note(&sent, &message))
        },
    };
    (Arc::new(Questions::new(call)), sent)
}

fn take(questions: &Arc<Questions>, sent: &Sent, id: u64) {
    let params = json!({"message": "m", "requestedSchema": {"type": "object"}});
    if let Some(answer) = questions.take(id.into(), &params) {
        note(sent, &answer);
    }
}

#[test]
fn nobody_is_asked_where_nobody_is_there_or_the_call_has_ended() {
    let (asking, sent) = questions(None);
    take(&asking, &sent, 1);
    asking.end();
    assert_eq!(lock(&sent)[&1], ["cancel"]);
    let (asking, sent) = questions(Some(Somebody(Duration::ZERO)));
    asking.end();
    take(&asking, &sent, 1);
    assert_eq!(lock(&sent)[&1], ["cancel"]);
}

#[test]
fn a_call_asks_so_often_and_no_more() {
    let (asking, sent) = questions(Some(Somebody(Duration::from_secs(60))));
    for id in 0..20 {
        take(&asking, &sent, id);
    }
    // One is with the person by now, or soon.
    let refused = lock(&sent).len();
    assert!(
        (20 - MOST_WAITING - 1..=20 - MOST_WAITING).contains(&refused),
        "{refused}"
    );
    asking.end();
    assert_eq!(lock(&sent).len(), 20);
    let (asking, sent) = questions(Some(Somebody(Duration::ZERO)));
    for id in 0..MOST as u64 + 3 {
        take(&asking, &sent, id);
        while asking.are_open() {
            std::thread::yield_now();
        }
    }
    asking.end();
    let sent = lock(&sent);
    let accepted = sent.values().filter(|all| *all == &["accept"]).count();
    assert_eq!((accepted, sent.len()), (MOST, MOST + 3));
}

/// Whatever the order in which questions come, are answered, withdrawn, and the call ends:
/// each has one answer, or none once the server has withdrawn it.
#[test]
fn each_question_is_answered_once() {
    for seed in 0..200_u64 {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut random = move |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        let (asking, sent) = questions(Some(Somebody(Duration::from_micros(random(300)))));
        let mut withdrawn = Vec::new();
        let taken = 1 + random(8);
        let ender = (random(2) == 0).then(|| {
            let asking = Arc::clone(&asking);
            let pause = Duration::from_micros(random(500));
            std::thread::spawn(move || {
                std::thread::park_timeout(pause);
                asking.end();
            })
        });
        for id in 0..taken {
            take(&asking, &sent, id);
            if random(3) == 0 {
                let id = random(taken);
                asking.withdraw(&id.into());
                withdrawn.push(id);
            }
            if random(3) == 0 {
                std::thread::park_timeout(Duration::from_micros(random(300)));
            }
        }
        if let Some(ender) = ender {
            ender.join().unwrap();
        }
        asking.end();
        let sent = lock(&sent);
        for id in 0..taken {
            let answers = sent.get(&id).map_or(0, Vec::len);
            let least = usize::from(!withdrawn.contains(&id));
            assert!(
                (least..=1).contains(&answers),
                "seed {seed}, {id}: {sent:?}"
            );
        }
        drop(sent);
        assert!(!asking.are_open());
    }
}
