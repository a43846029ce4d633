//! HTTP requests that wait for the end of their turn (`Prefer: wait`).
//!
//! The response to such a request replaces the turn's callback. The callback is
//! still stored, but with a delay, and counts as delivered once the response has
//! been sent. After a crash in between it is sent: a reply may come twice, but is
//! never lost.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::hub::{Hub, TurnEnded, Watch, Watcher};
use base::ids::TurnId;
use base::sync::channel::{Receiver, RecvTimeoutError, Sender, bounded};

impl Watcher for Sender<TurnEnded> {
    fn ended(self: Box<Self>, end: &TurnEnded) {
        // It has room for one notice, and this is the only one.
        let _ = self.try_send(end.clone());
    }
}

/// A request's place among those that wait. Dropping it frees the place.
pub struct TurnWait<'a> {
    hub: &'a Hub,
    waiting: &'a AtomicUsize,
    watch: Watch,
    end: Receiver<TurnEnded>,
}

impl<'a> TurnWait<'a> {
    /// A place for a request that waits for this turn, counted in `waiting`; none
    /// when `most` wait already.
    pub fn new(
        hub: &'a Hub,
        waiting: &'a AtomicUsize,
        turn: TurnId,
        most: usize,
    ) -> Option<TurnWait<'a>> {
        let more = |count| (count < most).then_some(count + 1);
        waiting
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .ok()?;
        let (sender, end) = bounded(1);
        Some(TurnWait {
            hub,
            waiting,
            watch: hub.watch(turn, None, Box::new(sender)),
            end,
        })
    }

    /// The hub's number for the place.
    pub fn watch(&self) -> Watch {
        self.watch
    }

    /// Waits for the turn's end, at most this long. The caller must send on any
    /// notice that it gets: the turn's end relies on that.
    pub fn wait(self, longest: Duration) -> Option<TurnEnded> {
        match self.end.recv_timeout(longest) {
            Ok(end) => Some(end),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) if self.hub.unwatch(self.watch).is_some() => None,
            // The notice is on its way, or the server stops: neither takes long.
            Err(RecvTimeoutError::Timeout) => self.end.recv().ok(),
        }
    }
}

impl Drop for TurnWait<'_> {
    fn drop(&mut self) {
        self.hub.unwatch(self.watch);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::error::Error;
    use base::ids::DeliveryId;

    fn end() -> TurnEnded {
        TurnEnded {
            result: Err(Error::not_found("x")),
            delivery: Some(DeliveryId::from(9)),
        }
    }

    #[test]
    fn whoever_waits_is_notified_once() {
        let (hub, waiting, turn) = (Hub::after(0), AtomicUsize::new(0), TurnId::from(1));
        let place = |most| TurnWait::new(&hub, &waiting, turn, most);
        assert!(!hub.turn_ended(turn, &end()));
        let one = place(2).unwrap();
        let two = place(2).unwrap();
        assert!(place(2).is_none(), "no room");
        assert!(hub.turn_ended(turn, &end()) && !hub.is_watched(turn));
        for place in [one, two] {
            let end = place.wait(Duration::ZERO).unwrap();
            assert_eq!(end.delivery, Some(DeliveryId::from(9)));
        }
        assert!(!hub.turn_ended(turn, &end()));
        assert!(place(1).is_some(), "places are given back");
    }

    #[test]
    fn whoever_gives_up_is_forgotten() {
        let (hub, waiting, turn) = (Hub::after(0), AtomicUsize::new(0), TurnId::from(1));
        let place = || TurnWait::new(&hub, &waiting, turn, 1);
        assert!(place().unwrap().wait(Duration::from_millis(1)).is_none());
        assert!(!hub.is_watched(turn) && !hub.turn_ended(turn, &end()));
        drop(place().unwrap());
        let waits = place().unwrap();
        hub.close();
        let late = place();
        assert!(waits.wait(Duration::from_secs(9)).is_none());
        assert!(late.is_none(), "its place is taken");
        let late = place().unwrap();
        assert!(late.wait(Duration::from_secs(9)).is_none(), "it stops");
    }
}
