//! The one declaration of every setting, with its default and its sentence of
//! documentation.
//!
//! [`Config`] is the typed and validated configuration, with `${NAME}` read from the
//! environment. [`Settings`] is the shared handle on the file.
//!
//! - [`Settings::load`] reads the file: `Document::read` parses it, and
//!   `Config::read` reads each setting by its rule; problems get their lines
//!   (`Lines`).
//! - [`Settings::current`] returns the current [`Config`].
//! - [`Settings::update`] and [`Settings::set`] change the file as it is on disk,
//!   validate the whole, save it atomically with comments and order, and put it in
//!   force.
//! - [`documentation`] lists the settings for the handbook and `hearth config keys`, and
//!   [`schema`] describes them to editors.
//!
//! A new setting is one entry in a `section!`, from which the struct's field, the
//! reader, the default and the documentation are made.

mod address_patterns;
mod assistant;
mod channels;
mod collections;
mod config;
mod custom_tools;
mod data;
mod declaration;
mod document;
mod file;
mod first_run;
mod grants;
mod key_path;
mod limits;
mod lines;
mod mcp_servers;
mod memory;
mod notifications;
mod people;
mod problems;
mod providers;
mod readable;
mod reader;
mod relay;
mod rules;
mod secrets;
mod settings;
mod tls;
mod tools;
mod voice;
mod webhook_accounts;
mod webhook_map;

#[cfg(test)]
mod tests;

pub use address_patterns::AddressPatterns;
pub use assistant::Identity;
pub use channels::{
    Channel, DEFAULT_PORT, Encryption, RelayChannel, TELEGRAM, TcpChannel, TelegramChannel,
    WebhookChannel,
};
pub use config::{
    Config, McpApi, Metrics, OpenAiApi, PROVIDER_TEMPERATURE, SYSTEM_PROMPT,
    declared_documentation, documentation, schema,
};
pub use custom_tools::{
    AnswerForm, BUILTIN_TOOLS, CustomCommand, CustomHttp, CustomRun, CustomTool, FIND_TOOLS,
};
pub use data::{Backup, Retention, TimeOfDay};
pub use declaration::SettingDoc;
pub use file::read;
pub use first_run::{first_run, write_first_run};
pub use grants::Grantee;
pub use key_path::quoted;
pub use limits::Limits;
pub use mcp_servers::{McpServer, McpWay, ReadOnly, permitted_name, server_of};
pub use memory::{Embeddings, MemorySettings};
pub use notifications::{
    Gotify, Notifications, Ntfy, PushService, QuietHours, WebPush, quiet_until,
};
pub use people::{OWN_TOOLS, Person, Privacy};
pub use problems::{Problem, Problems};
pub use providers::{
    Api, Budget, ModelChoice, OFFLINE, OPENAI_COMPATIBLE, PRESETS, Preset, Price, Quirks,
};
pub use reader::variable;
pub use relay::RelaySettings;
pub use secrets::{Reunited, reunite, without_secrets};
pub use settings::{Edit, Settings};
pub use tls::{AUTHORITY, AUTHORITY_KEY, HOUSEHOLD_CERTIFICATE, HOUSEHOLD_KEY, Tls};
pub use tools::{Files, Permission, Reachable, RunCommand, Tools, WebFetch};
pub use voice::{Speech, Transcription, Voice};
pub use webhook_accounts::{WebhookAccount, WebhookFormat, is_at_or_below};
pub use webhook_map::{Template, WebhookFilter, WebhookMap, misfit};
