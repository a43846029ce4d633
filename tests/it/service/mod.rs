//! Who may sign in, who sees what, and what each may do.

pub mod attachments;
mod calendar_peers;
mod calendars;
mod chat;
mod display_names;
mod home;
mod languages;
mod lists;
mod managing;
mod memories;
mod notifications;
mod people;
mod people_limits;
pub mod privacy;
mod reminders;
mod removal;
mod roles;
mod routines;
mod tokens_for_others;
mod versions;
mod voice;
mod web_push;
mod web_push_peers;
