//! Commands on people and tokens. All need the role `admin`.

use std::time::Duration;

use super::fields::Fields;
use base::error::Result;
use base::ids::TokenId;
use base::secret::Secret;

/// Longest time that a token is given, in seconds: ten years.
const LONGEST: u64 = 3_650 * 24 * 3_600;

/// What an admin does with people and tokens. Roles are checked by the service.
#[derive(Debug)]
pub enum PeopleCommand {
    /// Everybody who may sign in.
    ListUsers,
    /// Adds a person.
    AddUser {
        /// 1 to 64 characters, without white space.
        name: String,
        /// `viewer`, `user` (when absent) or `admin`.
        role: Option<String>,
        /// 8 characters to 1,024 bytes.
        password: Secret,
    },
    /// Sets somebody's password and ends their sessions.
    SetPassword {
        /// As `list_users` has it.
        name: String,
        /// 8 characters to 1,024 bytes.
        password: Secret,
    },
    /// Removes a person with all their tokens and schedules.
    RemoveUser {
        /// As `list_users` has it; not the last admin.
        name: String,
    },
    /// The API tokens.
    ListTokens {
        /// Whether sessions are listed, too.
        sessions: bool,
    },
    /// Makes an API token, which is shown once.
    CreateToken {
        /// What it is for: 1 to 64 characters.
        name: String,
        /// Not more than its user's own, which it is when absent.
        role: Option<String>,
        /// Whose it is; the caller's when absent.
        user: Option<String>,
        /// How long it is valid; until it is revoked when absent.
        expires_in: Option<Duration>,
    },
    /// Revokes a token or session and closes its connections.
    RevokeToken {
        /// As `list_tokens` has it.
        token_id: TokenId,
    },
}

/// Their names on the wire.
pub const NAMES: [&str; 7] = [
    "list_users",
    "add_user",
    "set_password",
    "remove_user",
    "list_tokens",
    "create_token",
    "revoke_token",
];

impl PeopleCommand {
    /// The command of this name; nothing where it is none of these.
    pub(super) fn from_fields(name: &str, fields: &mut Fields) -> Result<Option<PeopleCommand>> {
        Ok(Some(match name {
            "list_users" => PeopleCommand::ListUsers,
            "add_user" => PeopleCommand::AddUser {
                name: fields.string("name")?,
                role: fields.optional_string("role")?,
                password: Secret::new(fields.string("password")?),
            },
            "set_password" => PeopleCommand::SetPassword {
                name: fields.string("name")?,
                password: Secret::new(fields.string("password")?),
            },
            "remove_user" => PeopleCommand::RemoveUser {
                name: fields.string("name")?,
            },
            "list_tokens" => PeopleCommand::ListTokens {
                sessions: fields.optional_bool("sessions")?.unwrap_or(false),
            },
            "create_token" => PeopleCommand::CreateToken {
                name: fields.string("name")?,
                role: fields.optional_string("role")?,
                user: fields.optional_string("user")?,
                expires_in: fields
                    .optional_integer("expires_in", 1..=LONGEST)?
                    .map(Duration::from_secs),
            },
            "revoke_token" => PeopleCommand::RevokeToken {
                token_id: fields.string("token_id")?.parse()?,
            },
            _ => return Ok(None),
        }))
    }
}
