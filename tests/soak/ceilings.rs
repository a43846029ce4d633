//! A small machine: 64 MB of memory and one processor, as a control group, and
//! 500 people who chat at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use support::SetOnDrop;
use support::control_group::ControlGroup;
use support::crowd::Crowd;
use support::home::{TemporaryDirectory, make_people, write_config};
use support::http::get;
use support::model::Model;
use support::process::status;
use support::program::{Program, hearth, skipped};

/// Each sign-in with a password takes 19 MiB.
const CROWD: Crowd = Crowd {
    clients: 500,
    messages: 4,
    sign_ins: 8,
};
const MEMORY: u64 = 64_000_000;
/// Threads beside those of the connections and the workers: the writer, the
/// timekeeper, listeners, signals.
const MORE_THREADS: u64 = 16;
const WORKERS: u64 = 16;

#[test]
#[ignore = "long"]
fn five_hundred_clients_in_64_megabytes_on_one_processor() {
    let Some(group) = ControlGroup::new(MEMORY) else {
        skipped("this user cannot make control groups");
        return;
    };
    let folder = TemporaryDirectory::new();
    let model = Model::saying("Hello there.");
    let mut config = model.config();
    config["limits"] = json!({
        "connections_per_address": CROWD.clients + 16,
        "unauthenticated_per_address": CROWD.clients + 16,
    });
    write_config(folder.path(), config);
    let tokens = make_people(folder.path());
    let mut command = hearth(folder.path());
    command.args(["serve", "--bind", "127.0.0.1", "--port", "0"]);
    let program = Program::launch(group.wrap(&command), folder.path());

    let began = Instant::now();
    let over = AtomicBool::new(false);
    let (most_threads, most_resident) = std::thread::scope(|scope| {
        let sampler = scope.spawn(|| sample(program.id(), &over));
        let _over = SetOnDrop(&over);
        let answers = CROWD.come(program.address, &tokens.user, "Hello there.", || ());
        assert!(answers.contains(&200), "{answers:?}");
        assert_eq!(get(program.address, "/health").status, 200);
        over.store(true, Ordering::SeqCst);
        sampler.join().unwrap()
    });
    let took = began.elapsed();
    let ceiling = (CROWD.clients + CROWD.sign_ins) as u64 + WORKERS + MORE_THREADS;
    assert!(most_threads <= ceiling, "{most_threads} threads");
    assert!(most_resident * 1024 <= MEMORY, "{most_resident} KiB");
    println!(
        "ceilings: {} clients with {} messages each and {} sign-ins in {:.1} s \
         with {MEMORY} bytes and one processor; at most {most_threads} threads, {:.1} MiB \
         resident, {:.1} MiB in the group (with the kernel's and the page cache)",
        CROWD.clients,
        CROWD.messages,
        CROWD.sign_ins,
        took.as_secs_f64(),
        most_resident as f64 / 1024.0,
        group.most_used().unwrap_or(0) as f64 / (1024.0 * 1024.0),
    );
    assert_eq!(program.signal("TERM"), Some(0));
}

/// The most threads and the most resident memory in KiB until `over`.
fn sample(process: u32, over: &AtomicBool) -> (u64, u64) {
    let mut most = (0, 0);
    while !over.load(Ordering::SeqCst) {
        let number = |field: &str| status(process, field).unwrap();
        most = (most.0.max(number("Threads")), most.1.max(number("VmRSS")));
        std::thread::park_timeout(Duration::from_millis(5));
    }
    most
}
