//! What the household keeps: memories, lists, schedules, calendars, notifications.

pub(crate) mod calendar_events;
pub(crate) mod calendar_reading;
pub(crate) mod calendars;
pub(crate) mod forgetting;
pub(crate) mod imported;
pub(crate) mod lists;
pub(crate) mod memories;
pub(crate) mod memory_index;
pub(crate) mod notifications;
pub(crate) mod recall;
pub(crate) mod run_history;
pub(crate) mod runs;
pub(crate) mod schedules;
pub(crate) mod trigger;
pub(crate) mod vector;
pub(crate) mod vectors;
