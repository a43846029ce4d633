//! The tools that every household has. All descriptions go with every request to a
//! model: they say when to use a tool, how, and what comes back, and nothing else.

mod clock;
mod conversations;
mod lists;
mod memory;
mod notify;
mod schedule;
mod schedule_request;

use std::sync::Arc;

use super::definition::Tool;
pub use schedule::when_triggered;
pub use schedule_request::{MOST_SNOOZE_MINUTES, ScheduleRequest};

/// The tool that tells phones something, offered where one is set up.
pub(super) fn notify() -> Arc<dyn Tool> {
    Arc::new(notify::notify())
}

/// All built-in tools that need no setting, in the order in which a model sees them.
pub(super) fn all() -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(clock::current_time()),
        Arc::new(memory::remember()),
        Arc::new(memory::recall()),
        Arc::new(memory::forget()),
        Arc::new(conversations::search()),
        Arc::new(schedule::schedule()),
        Arc::new(lists::lists()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_readers_are_read_only() {
        let readers: Vec<String> = all()
            .iter()
            .filter(|tool| tool.definition().is_read_only)
            .map(|tool| tool.spec().name.clone())
            .collect();
        assert_eq!(readers, ["current_time", "recall", "search_conversations"]);
    }
}
