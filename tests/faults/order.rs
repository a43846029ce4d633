//! Many messages of many conversations to a receiver that fails at random: the
//! callbacks of each conversation keep their order. And many posts with one key.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Posted, Poster, chat_meanwhile, echoing, random, wait_until_done, with_account};
use support::home::Home;
use support::model::Model;
use support::receiver::Receiver;
use support::{MAX_WAIT, SetOnDrop};

const POSTERS: u64 = 4;
/// Failures of one callback at most: each later attempt waits much longer.
const MOST_FAILURES: u32 = 3;

/// Sends `messages` over `conversations`; of the attempts to call back, one in
/// five fails.
pub fn random_failures(messages: u64, conversations: u64) {
    let failed = std::sync::Arc::new(AtomicU64::new(0));
    // What came, in the order in which it was taken: conversation and mark.
    let taken: std::sync::Arc<Mutex<Vec<(Value, Value)>>> = Default::default();
    let receiver = Receiver::answering({
        let (failed, taken) = (failed.clone(), taken.clone());
        let failures: Mutex<HashMap<Value, u32>> = Mutex::default();
        move |callback, _| {
            let mut failures = failures.lock().unwrap();
            let failures = failures
                .entry(callback.body["message"].clone())
                .or_default();
            if *failures < MOST_FAILURES && random(5) == 0 {
                *failures += 1;
                failed.fetch_add(1, Ordering::SeqCst);
                let answers = ["500 Oops", "429 Slow Down\r\nRetry-After: 7", "302 Found"];
                return answers[random(3) as usize].to_owned();
            }
            let body = &callback.body;
            let took = (body["conversation_id"].clone(), body["message"].clone());
            taken.lock().unwrap().push(took);
            "204 No Content".to_owned()
        }
    });
    let model = echoing();
    let home = Home::start(with_account(&model, receiver.url()));
    let began = Instant::now();
    let is_done = AtomicBool::new(false);
    let replies = std::thread::scope(|scope| {
        let done = SetOnDrop(&is_done);
        let home = &home;
        let bystander = scope.spawn(|| chat_meanwhile(home.address(), &home.tokens.user, &is_done));
        // Waits of the schedule pass at once.
        scope.spawn(|| {
            while !is_done.load(Ordering::SeqCst) {
                home.server().advance_clock(Duration::from_secs(8));
                std::thread::park_timeout(Duration::from_millis(20));
            }
        });
        let posters: Vec<_> = (0..POSTERS)
            .map(|poster| scope.spawn(move || post_share(home, poster, messages, conversations)))
            .collect();
        posters.into_iter().for_each(|one| one.join().unwrap());
        let time = Duration::from_secs(30 + messages / 20);
        wait_until_done(home.folder.path(), time);
        drop(done);
        bystander.join().unwrap()
    });

    let taken = taken.lock().unwrap();
    let mut newest: HashMap<&Value, &str> = HashMap::new();
    let mut seen: HashSet<&str> = HashSet::new();
    for (conversation, mark) in taken.iter() {
        let mark = mark.as_str().unwrap();
        assert!(seen.insert(mark), "{mark} was taken twice");
        let newest = newest.entry(conversation).or_default();
        assert!(*newest < mark, "{mark} came after {newest}");
        *newest = mark;
    }
    assert_eq!(seen.len() as u64, messages);
    println!(
        "order: {messages} messages over {conversations} conversations in {:.1} s; {} attempts \
         failed; every callback came once, and none before an earlier one; a bystander got \
         {replies} replies meanwhile",
        began.elapsed().as_secs_f64(),
        failed.load(Ordering::SeqCst),
    );
}

/// Posts the messages of every conversation that is this poster's, each in order.
fn post_share(home: &Home, poster: u64, messages: u64, conversations: u64) {
    let connection = Poster::new(home.address());
    for number in 0..messages {
        let conversation = number % conversations;
        if conversation % POSTERS != poster {
            continue;
        }
        let body = json!({
            "message": format!("tok-{number:08}"),
            "conversation_id": format!("c{conversation}"),
        });
        loop {
            match connection.post(&[], &body) {
                Posted::Answered(202, _) => break,
                // The queue is full; what it holds is being worked off.
                Posted::Answered(503, _) => std::thread::park_timeout(Duration::from_millis(50)),
                other => panic!("{other:?}"),
            }
        }
    }
}

/// Posts the same message `count` times at once, with one key.
pub fn one_key(count: usize) {
    let model = Model::saying("once");
    let receiver = Receiver::start();
    let home = Home::start(with_account(&model, receiver.url()));
    let start = std::sync::Barrier::new(count);
    let answers: Vec<Posted> = std::thread::scope(|scope| {
        let posts: Vec<_> = (0..count)
            .map(|_| {
                scope.spawn(|| {
                    let poster = Poster::new(home.address());
                    start.wait();
                    let key = [("idempotency-key", "the one")];
                    // Over 64 connections at a time are told to come again.
                    loop {
                        match poster.post(&key, &json!({ "message": "pay the bill" })) {
                            Posted::Answered(503, _) | Posted::Unknown => {}
                            answered => return answered,
                        }
                    }
                })
            })
            .collect();
        posts.into_iter().map(|post| post.join().unwrap()).collect()
    });
    let turns: HashSet<String> = answers
        .iter()
        .map(|answer| match answer {
            Posted::Answered(202, body) => body["data"].to_string(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(turns.len(), 1, "{turns:?}");
    wait_until_done(home.folder.path(), MAX_WAIT);
    assert_eq!(model.requests().len(), 1);
    assert_eq!(receiver.callbacks().len(), 1);
    println!("one key: {count} posts at once with one Idempotency-Key; one turn, one callback");
}
