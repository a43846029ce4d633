//! What the tables hold, as the rest of the house sees it. None of these types
//! goes over the wire.

mod approvals;
mod conversations;
mod deliveries;
mod people;
mod schedules;
mod turns;
mod usage;

pub use approvals::*;
pub use conversations::*;
pub use deliveries::*;
pub use people::*;
pub use schedules::*;
pub use turns::*;
pub use usage::*;

use base::clock::Timestamp;
use base::ids::MemoryId;

/// Something that the assistant was asked to remember.
#[derive(Clone, Debug)]
pub struct Memory {
    /// What `delete_memory` takes.
    pub id: MemoryId,
    /// One fact, as the model worded it; unique.
    pub content: String,
    /// Who said it.
    pub speaker: Option<String>,
    /// When it was first remembered.
    pub created_at: Timestamp,
}

/// Unfinished work and totals, for `server_info`.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Of all channels.
    pub conversations: u64,
    /// Unfinished turns by state.
    pub turns: Vec<(TurnState, u64)>,
    /// Deliveries that are not delivered, by state.
    pub deliveries: Vec<(DeliveryState, u64)>,
    /// Tokens used since the database was made.
    pub usage: Usage,
    /// Size of the database file, in bytes, without its write-ahead log.
    pub database_bytes: u64,
}
