//! The wire types: envelopes, commands, records and events. No I/O happens here, and the
//! domain does not use these types: they are converted at the edge.
//!
//! # The walk of a message
//!
//! 1. [`command::Request::parse`] reads a client's text: its `id`
//!    ([`envelope::RequestId::from_member`]) and its [`command::Command`], whose fields
//!    [`fields::Fields`] takes out one by one.
//! 2. [`command::Request::declaration`] says who may send it.
//! 3. [`envelope::success`] or [`envelope::failure`] makes the response's text.
//! 4. [`event::Event::to_text`] makes that of an event.

pub mod attachment;
pub mod command;
pub mod envelope;
pub mod event;
pub mod fields;
pub mod public_key;
pub mod push;
pub mod record;
pub mod registration;
pub mod relay;
pub mod schema;

use serde_json::{Map, Value, json};

use record::{Callback, FailedCallback, WebhookMessage};
use schema::{Definitions, Schema};

/// The version of the protocol, as `auth` reports it.
pub const VERSION: u32 = 1;

/// The schema of all that goes over the wire: for each command its `request` and the data
/// of its `response`, each event, and what webhooks post and are posted. The handbook holds
/// it as it is here, so that the program need not.
pub fn json_schema() -> Value {
    let mut definitions = Definitions::new();
    let commands: Map<String, Value> = command::DECLARATIONS
        .iter()
        .zip(command::SCHEMAS)
        .map(|(one, schema)| (one.name.to_owned(), schema.schema(one, &mut definitions)))
        .collect();
    let events: Map<String, Value> = event::DECLARATIONS
        .iter()
        .zip(event::SCHEMAS)
        .map(|(one, schema)| (one.name.to_owned(), one.schema(*schema, &mut definitions)))
        .collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": format!("Hearth's protocol, version {}", VERSION),
        "commands": commands,
        "events": events,
        "webhook": {
            "request": WebhookMessage::schema(&mut definitions),
            "callback": Callback::schema(&mut definitions),
            "failure": FailedCallback::schema(&mut definitions),
        },
        "$defs": definitions,
    })
}
