//! Round robin.

use std::collections::VecDeque;

/// Queues by their keys, the one that gives next first.
pub(super) struct Rounds<K, Q>(VecDeque<(K, Q)>);

impl<K, Q> Default for Rounds<K, Q> {
    fn default() -> Rounds<K, Q> {
        Rounds(VecDeque::new())
    }
}

impl<K: Clone + PartialEq, Q: Default> Rounds<K, Q> {
    /// The queue of a key; a new one gives last.
    pub fn of(&mut self, key: &K) -> &mut Q {
        let known = self.0.iter().position(|(known, _)| known == key);
        let place = known.unwrap_or(self.0.len());
        if known.is_none() {
            self.0.push_back((key.clone(), Q::default()));
        }
        &mut self.0[place].1
    }

    /// What the first queue gives that has something to give; it gives last in the next
    /// round.
    pub fn take<T>(&mut self, mut give: impl FnMut(&K, &mut Q) -> Option<T>) -> Option<T> {
        for place in 0..self.0.len() {
            let (key, queue) = &mut self.0[place];
            if let Some(given) = give(key, queue) {
                let queue = self.0.remove(place)?;
                self.0.push_back(queue);
                return Some(given);
            }
        }
        None
    }

    /// All queues.
    pub fn queues(&self) -> impl Iterator<Item = &Q> {
        self.0.iter().map(|(_, queue)| queue)
    }

    /// Drops the other queues.
    pub fn retain(&mut self, mut is_kept: impl FnMut(&mut Q) -> bool) {
        self.0.retain_mut(|(_, queue)| is_kept(queue));
    }

    /// How many queues there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}
