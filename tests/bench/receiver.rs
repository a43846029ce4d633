//! A receiver of webhook callbacks that takes each at once and counts them.

use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use support::served::{Served, ok};

#[derive(Default)]
struct Count {
    count: Mutex<usize>,
    came: Condvar,
}

/// The running receiver.
pub struct Receiver {
    served: Served,
    counted: Arc<Count>,
}

impl Receiver {
    pub fn start() -> Receiver {
        let counted = Arc::new(Count::default());
        let count = Arc::clone(&counted);
        let taken: Arc<[u8]> = ok("application/json", "{}").into_bytes().into();
        let served = Served::answering(move |_, _| {
            *count.count.lock().ok()? += 1;
            count.came.notify_all();
            Some(Arc::clone(&taken))
        });
        Receiver { served, counted }
    }

    pub fn address(&self) -> SocketAddr {
        self.served.address
    }

    pub fn url(&self) -> String {
        format!("http://{}/callback", self.address())
    }

    /// Waits until so many callbacks have come; returns when that was.
    pub fn wait_for(&self, count: usize, most: Duration) -> Instant {
        let came = self.counted.count.lock().unwrap();
        let (came, waited) = self
            .counted
            .came
            .wait_timeout_while(came, most, |came| *came < count)
            .unwrap();
        assert!(
            !waited.timed_out(),
            "{came} of {count} callbacks came within {most:?}"
        );
        Instant::now()
    }
}
