//! Conversations: their messages, turns, steps and approvals, their history and versions,
//! search, export and import.

pub(crate) mod approvals;
pub(crate) mod conversation_list;
pub(crate) mod conversation_marks;
pub(crate) mod conversations;
pub(crate) mod excerpt;
pub(crate) mod export;
pub(crate) mod history;
pub(crate) mod import;
pub(crate) mod kept_results;
pub(crate) mod messages;
pub(crate) mod new_turn;
pub(crate) mod repeats;
pub(crate) mod replayed_history;
pub(crate) mod search;
pub(crate) mod search_words;
pub(crate) mod shown;
pub(crate) mod steps;
pub(crate) mod turn_end;
pub(crate) mod turns;
pub(crate) mod versions;
