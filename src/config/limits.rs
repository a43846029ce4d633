//! The limits of protocol section 7: what a client may cost the server.

use serde::Serialize;

use super::collections::object;
use super::declaration::{Declared, Rule, Setting, section};
use super::rules::integer;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const GIB: u64 = 1024 * MIB;
/// Longest time that any limit may name, in seconds.
const MONTH: u64 = 30 * 24 * 60 * 60;

section! {
    /// Limits of protocol section 7, each a key under `limits`. Names end in
    /// their unit; what has none is a count.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize)]
    pub struct Limits {
        /// Connections in total. The oldest that has not signed in makes way for another.
        pub connections: usize = integer(1..=1_000_000).or(1_024);
        /// Connections from one address. The addresses of a /64 network count as one where it is
        /// IPv6 of the internet, and each by itself at home: on the server's own network, and
        /// unique-local and link-local ones.
        pub connections_per_address: usize = integer(1..=1_000_000).or(64);
        /// Connections from one address that have not signed in yet.
        pub unauthenticated_per_address: usize = integer(1..=1_000_000).or(16);
        /// Bytes of the head of an HTTP request: request line and headers.
        pub head_bytes: usize = integer(KIB..=MIB).or(16 * 1024);
        /// Headers of an HTTP request.
        pub head_count: usize = integer(16..=1_024).or(64);
        /// Seconds until the head of a request must be complete, however slowly it arrives.
        pub head_seconds: u64 = integer(1..=3_600).or(10);
        /// Bytes of the body of any HTTP request.
        pub body_bytes: usize = integer(KIB..=64 * MIB).or(1024 * 1024);
        /// Bytes of the body of a webhook request.
        pub webhook_body_bytes: usize = integer(KIB..=64 * MIB).or(256 * 1024);
        /// Bytes of the body of a request to the interfaces of OpenAI and Ollama, with all
        /// that was said before and the pictures in it.
        pub model_api_body_bytes: usize = integer(KIB..=64 * MIB).or(8 * 1024 * 1024);
        /// Bytes of the body of a sign-in request.
        pub auth_body_bytes: usize = integer(256..=MIB).or(4 * 1024);
        /// Seconds until the body of a request must be complete. Uploads and imports take as
        /// long as they need, but none may stand still for longer.
        pub body_seconds: u64 = integer(1..=3_600).or(15);
        /// Seconds that an idle HTTP connection is kept open for its next request.
        pub idle_seconds: u64 = integer(1..=3_600).or(30);
        /// Seconds between two pings on a WebSocket connection.
        pub ping_seconds: u64 = integer(1..=3_600).or(30);
        /// Seconds of silence after which a connection is closed; more than `ping_seconds`.
        pub dead_seconds: u64 = integer(2..=7_200).or(75);
        /// Seconds within which a new connection must sign in.
        pub auth_seconds: u64 = integer(1..=3_600).or(10);
        /// Bytes of a WebSocket or TCP message before signing in.
        pub unauthenticated_message_bytes: usize = integer(256..=MIB).or(4 * 1024);
        /// Bytes of a WebSocket or TCP message after signing in.
        pub message_bytes: usize = integer(KIB..=64 * MIB).or(1024 * 1024);
        /// Bytes that may wait to be sent to one client before it is disconnected.
        pub outbox_bytes: usize = integer(64 * KIB..=256 * MIB).or(1024 * 1024);
        /// Unanswered requests of one connection.
        pub in_flight: usize = integer(1..=10_000).or(32);
        /// Commands per second of one connection, on average.
        pub commands_per_second: u32 = integer(1..=1_000_000).or(50);
        /// Commands of one connection in a burst.
        pub commands_burst: u32 = integer(1..=1_000_000).or(100);
        /// Turns that may wait for a worker, in total.
        pub waiting_turns: usize = integer(1..=1_000_000).or(1_000);
        /// How many of `waiting_turns`, at most half of them, are kept for people when webhook
        /// accounts have many turns waiting. Of these, nobody takes more than they leave for the
        /// others.
        pub waiting_turns_for_people: usize = integer(0..=1_000_000).or(200);
        /// Turns that may wait in one conversation, for their turn or for an approval.
        pub waiting_turns_per_conversation: usize = integer(1..=1_000_000).or(16);
        /// Reminders and routines of one person, but for reminders that were told.
        pub schedules_per_person: usize = integer(1..=1_000).or(100);
        /// Seconds that a turn may run, not counting the time it waits for approvals.
        pub turn_seconds: u64 = integer(1..=86_400).or(300);
        /// Rounds of tool calls in one turn.
        pub tool_rounds: usize = integer(1..=1_000).or(16);
        /// Webhook requests per second of one account, on average.
        pub webhook_per_second: u32 = integer(1..=1_000_000).or(20);
        /// Webhook requests of one account in a burst.
        pub webhook_burst: u32 = integer(1..=1_000_000).or(100);
        /// Webhook requests that may wait for their reply (`Prefer: wait`) at the same time; the
        /// others get theirs by callback.
        pub webhook_waiting: usize = integer(0..=10_000).or(64);
        /// Seconds until a receiver must have answered a callback.
        pub callback_seconds: u64 = integer(1..=60).or(15);
        /// Failed sign-ins within 5 minutes, of an address or a user, before further ones have to
        /// wait.
        pub login_failures: u32 = integer(1..=10_000).or(5);
        /// Lines of one kind that one address may cause in the log within 10 minutes. The others
        /// are counted, and the log says then how many there were.
        pub log_lines_per_address: u32 = integer(1..=1_000_000).or(10);
        /// Bytes of one attachment.
        pub attachment_bytes: u64 = integer(KIB..=4 * GIB).or(20 * MIB);
        /// Bytes of all attachments together; further ones are refused.
        pub attachments_total_bytes: u64 = integer(KIB..=16 * 1024 * GIB).or(2 * GIB);
        /// Bytes of a file that is imported. Its attachments count towards
        /// `attachments_total_bytes`, too.
        pub import_bytes: u64 = integer(MIB..=1024 * GIB).or(2 * GIB);
        /// Seconds until an attachment must have arrived.
        pub attachment_seconds: u64 = integer(1..=86_400).or(300);
        /// Seconds after which a tool call that waits for approval is denied.
        pub approval_seconds: u64 = integer(1..=MONTH).or(86_400);
    }
}

/// The setting `limits`: each in its range, and consistent.
pub(super) fn limits() -> Setting<impl Rule<Output = Limits>, Limits> {
    object::<Limits>()
        .then(|reader, path, _, limits| {
            let (dead, ping) = (limits.dead_seconds, limits.ping_seconds);
            if dead <= ping {
                reader.refuse(
                    &path.key("dead_seconds"),
                    format_args!("must be more than \"{path}.ping_seconds\" ({ping}), not {dead}"),
                );
                return None;
            }
            Some(limits)
        })
        .or_shown(Limits::absent(), "the defaults of its members")
}
