//! People, their tokens and invitations, and what else belongs to them.

pub(crate) mod actors;
pub(crate) mod belongings;
pub(crate) mod invitations;
pub(crate) mod machines;
pub(crate) mod push_subscriptions;
pub(crate) mod removals;
pub(crate) mod senders;
pub(crate) mod tokens;
pub(crate) mod user;
pub(crate) mod users;
