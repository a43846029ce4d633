//! A request as it arrives.

use super::{Command, DECLARATIONS, Declaration};
use crate::envelope::RequestId;
use crate::fields::Fields;
use base::error::{Error, Result};

/// One request: a command and the client's own name for it.
#[derive(Debug)]
pub struct Request {
    /// Returned with the response. Without one, responses keep request order.
    pub id: Option<RequestId>,
    /// Whether it is a command other than `auth`, known or not: its sender must be
    /// signed in to learn anything about it.
    pub needs_identity: bool,
    /// How the command is declared, if there is one of its name, also where its fields are
    /// malformed.
    pub declaration: Option<&'static Declaration>,
    /// What to do, or why it cannot be done.
    pub command: Result<Command>,
}

impl Request {
    /// Parses one message. A message whose `id` can be read keeps it even when
    /// the rest is wrong, so that the client can match the error.
    pub fn parse(text: &str) -> Request {
        let (mut id, mut needs_identity) = (None, false);
        let mut read = || {
            let mut fields = Fields::parse(text)?;
            id = RequestId::from_member(fields.get("id"))?;
            let name = fields.string("type")?;
            needs_identity = name != "auth";
            Command::read(&name, &mut fields)
        };
        let (declaration, command) = match read() {
            Ok((declaration, command)) => (Some(declaration), command),
            Err(error) => (None, Err(error)),
        };
        Request {
            id,
            needs_identity,
            declaration,
            command,
        }
    }
}

/// The error for a command that does not exist.
pub(super) fn unknown(name: &str) -> Error {
    let shown: String = name.chars().take(64).collect();
    let names: Vec<&str> = DECLARATIONS.iter().map(|one| one.name).collect();
    Error::invalid_request(format!(
        "there is no command {shown:?}; the commands are {}",
        names.join(", ")
    ))
}
