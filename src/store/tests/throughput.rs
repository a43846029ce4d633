//! How much group commit gives. Not a test of a limit, so run by hand:
//! `cargo test --release --lib store:: -- --ignored --nocapture`.

use std::thread;
use std::time::{Duration, Instant};

use crate::testing::*;

#[test]
#[ignore = "measures"]
fn commits_per_second_by_callers() {
    for callers in [1, 16, 64] {
        let store = TestStore::new();
        let start = Instant::now();
        let length = Duration::from_secs(3);
        let total: usize = thread::scope(|scope| {
            let each: Vec<_> = (0..callers)
                .map(|_| {
                    scope.spawn(|| {
                        let turn = begin(&store, Target::New, "hello, is the door closed?");
                        let mut begun = 1;
                        while start.elapsed() < length {
                            let target = Target::Existing(turn.conversation_id);
                            begin(&store, target, "hello, is the door closed?");
                            begun += 1;
                        }
                        begun
                    })
                })
                .collect();
            each.into_iter().map(|caller| caller.join().unwrap()).sum()
        });
        let seconds = start.elapsed().as_secs_f64();
        println!(
            "{callers} callers: {:.0} turns begun per second",
            total as f64 / seconds
        );
        assert!(total >= callers);
    }
}

#[test]
#[ignore = "measures"]
fn time_of_a_whole_turn_and_of_opening() {
    let dir = TempDir::new();
    let start = Instant::now();
    let store = open(&dir);
    println!("creating: {:?}", start.elapsed());
    let start = Instant::now();
    for _ in 0..200 {
        let Ok(Begun::New { turn, .. }) = store.begin_turn_deferred(message(Target::New, "hello"))
        else {
            panic!("no key, no repeat");
        };
        store.mark_running(turn.id, turn.created_at);
        finish(&store, &turn, "hi");
    }
    println!("a turn: {:?}", start.elapsed() / 200);
    drop(store);
    let start = Instant::now();
    let store = open(&dir);
    println!("opening: {:?}", start.elapsed());
    let start = Instant::now();
    assert_eq!(
        store.conversations(50, None).unwrap().conversations.len(),
        50
    );
    println!("a first page: {:?}", start.elapsed());
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    for line in status.lines().filter(|line| line.contains("RssAnon")) {
        println!("{line}");
    }
}
