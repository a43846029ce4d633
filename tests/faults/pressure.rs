//! More than can be borne: with a model that does not answer an account the queue fills
//! to its bound and no further, memory stays small, and people do not notice.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{Posted, Poster, SOON, look_into, wait_until_done, with_account};
use support::client::Client;
use support::home::{TemporaryDirectory, make_people, write_config};
use support::http::get;
use support::model::{Act, Model};
use support::process::status;
use support::program::Program;
use support::receiver::Receiver;

/// Memory that the process may have resident, in MiB.
const MOST_MEMORY: u64 = 64;
/// Turns of accounts that may wait: `limits.waiting_turns` without those that are kept for
/// people.
const WAITING: usize = 1000 - 200;
/// Turns that may run beside them: all workers but those for callbacks.
const WORKERS: usize = 16;

/// Fills the queue with messages of `bytes` bytes while the model stalls.
pub fn stalled_model(bytes: usize) {
    let model = Model::start(|request, _| {
        let is_stuck = request["messages"].to_string().contains("xxxx");
        match is_stuck {
            true => Act::Stall("at last".into()),
            false => Act::say("at once"),
        }
    });
    let receiver = Receiver::start();
    let folder = TemporaryDirectory::new();
    write_config(folder.path(), with_account(&model, receiver.url()));
    let tokens = make_people(folder.path());
    let program = Program::serve(folder.path());
    let before = resident(&program);

    let body = json!({ "message": "x".repeat(bytes) });
    let began = Instant::now();
    let accepted: usize = std::thread::scope(|scope| {
        let posters: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| post_until_refused(&program, &body)))
            .collect();
        posters.into_iter().map(|one| one.join().unwrap()).sum()
    });
    let filled = began.elapsed();
    assert!(
        (WAITING..=WAITING + WORKERS).contains(&accepted),
        "{accepted} were accepted"
    );
    let poster = Poster::new(program.address);
    for _ in 0..100 {
        let posted = poster.post(&[], &body);
        assert!(matches!(posted, Posted::Answered(503, _)), "{posted:?}");
    }
    let full = resident(&program);
    assert!(full < MOST_MEMORY, "{full} MiB with a full queue");

    // The other ways in still answer, while the model stalls.
    let began = Instant::now();
    assert_eq!(get(program.address, "/health").status, 200);
    let mut client = Client::websocket(program.address);
    client.authenticate(&tokens.user);
    client.ask(json!({ "type": "ping" }));
    client.ask(json!({ "type": "list_conversations" }));
    assert_eq!(client.chat("hello")["response"], "at once");
    let mut lines = Client::lines(program.address);
    lines.authenticate(&tokens.viewer);
    lines.ask(json!({ "type": "get_config" }));
    let answered = began.elapsed();
    assert!(answered < SOON, "{answered:?}");

    model.release();
    wait_until_done(folder.path(), Duration::from_secs(120));
    let after = resident(&program);
    assert!(after < MOST_MEMORY, "{after} MiB when all was answered");
    assert_eq!(receiver.callbacks().len(), accepted);
    let stored = super::count(
        &look_into(folder.path()),
        "SELECT count(*) FROM turns WHERE state = 'done'",
    );
    assert_eq!(stored as usize, accepted + 1);
    println!(
        "pressure: {accepted} messages of {bytes} bytes accepted in {:.1} s with the model \
         stalled, then 503; memory {before} MiB idle, {full} MiB full, {after} MiB after all were \
         answered; 6 requests of bystanders in {answered:?}",
        filled.as_secs_f64(),
    );
}

fn post_until_refused(program: &Program, body: &serde_json::Value) -> usize {
    let poster = Poster::new(program.address);
    let mut accepted = 0;
    loop {
        match poster.post(&[], body) {
            Posted::Answered(202, _) => accepted += 1,
            Posted::Answered(503, refusal) => {
                assert_eq!(refusal["code"], "server_error");
                assert!(refusal["retry_after"].is_number(), "{refusal}");
                return accepted;
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Resident memory in MiB.
fn resident(program: &Program) -> u64 {
    status(program.id(), "VmRSS").unwrap() / 1024
}
