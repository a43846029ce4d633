//! What the tests share: a server in a folder of its own, clients of each kind,
//! a scripted model server and a webhook receiver.

#![allow(
    clippy::should_implement_trait,
    clippy::new_without_default,
    reason = "`next` waits for a client's next message, and `new` starts something"
)]

pub mod calendar_server;
pub mod client;
pub mod control_group;
pub mod crowd;
pub mod home;
pub mod http;
pub mod mcp_http;
pub mod model;
pub mod pdf;
pub mod peers;
pub mod process;
pub mod program;
pub mod programs;
pub mod prompt_cache;
pub mod prompt_size;
pub mod push;
pub mod random;
pub mod recall;
pub mod receiver;
pub mod recorded;
#[cfg(feature = "relay")]
pub mod relay;
#[cfg(feature = "relay")]
pub mod relay_peers;
pub mod schema;
pub mod search;
pub mod served;
pub mod socket;
pub mod tap;
pub mod telegram;
#[cfg(feature = "tls")]
pub mod tls;
pub mod voice;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub use base::testing::{AT_ONCE, MAX_WAIT};

/// How often a state is looked at that no event announces: rarely enough for
/// `limits.commands_per_second`, which is 50.
const POLL_INTERVAL: Duration = Duration::from_millis(25);

/// Sets a flag when dropped, also by a failed assertion: threads of a scope that
/// run until it is set would keep the scope, and with it the failure, for ever.
pub struct SetOnDrop<'a>(pub &'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Waits until `condition` gives something, looking again and again until
/// [`MAX_WAIT`] is over. For states that no event announces.
pub fn eventually<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + MAX_WAIT;
    loop {
        if let Some(found) = condition() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what}: not within {MAX_WAIT:?}");
        std::thread::park_timeout(POLL_INTERVAL);
    }
}
