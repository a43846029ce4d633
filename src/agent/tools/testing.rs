//! A database in a temporary directory, for the tests of the tools.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::attached::PdfTexts;
use super::definition::{Origin, ResultDetails, Start, Tool, ToolContext};
use super::schema::check_arguments;
use super::toolbox::Toolbox;
use crate::tools::wording::Approver;
use base::clock::Clock;
use base::ids::{ConversationId, TurnId, UserId};
use base::language::Words;
use base::testing::TemporaryDirectory;
use config::Config;
use net::cancel::Cancel;
use store::{Audience, Begun, NewAttachments, NewTurn, Readers, Store, Target, UserRole, Viewer};

/// A database in a temporary directory, removed at the end.
pub struct Household {
    directory: TemporaryDirectory,
    clock: Clock,
    store: Store,
    /// The settings.
    pub config: Config,
    /// Who asks.
    ann: UserId,
    /// Where tools are called.
    pub conversation_id: ConversationId,
    /// Where the message came from that they are called for.
    pub channel: &'static str,
    /// Whether Ann may do less than others.
    pub is_narrowed: bool,
    /// Whether an address leads to no other host.
    pub stays_on_host: bool,
    /// The PDFs that were read.
    pub pdfs: PdfTexts,
}

impl Household {
    /// With an empty database.
    pub fn new() -> Household {
        let directory = TemporaryDirectory::new();
        let clock = Clock::system();
        let store = Store::open(&directory.join("hearth.db"), clock.clone()).unwrap();
        let ann = store.add_user("Ann", UserRole::User, "a hash").unwrap().id;
        let mut household = Household {
            directory,
            clock,
            store,
            config: Config::default(),
            ann,
            conversation_id: ConversationId::from(0),
            channel: "websocket",
            is_narrowed: false,
            stays_on_host: false,
            pdfs: PdfTexts::default(),
        };
        household.conversation_id = household.say("hello");
        household
    }

    /// Where the database is, and the workspace.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// An approver who sees what this viewer does.
    pub fn approver<'a>(&'a self, viewer: &'a Viewer) -> Approver<'a> {
        Approver {
            words: Words::ENGLISH,
            store: self.store(),
            viewer,
        }
    }

    /// The database.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Runs a built-in tool with arguments that pass its own schema.
    pub fn run(&self, name: &str, arguments: Value) -> Result<String, String> {
        let toolbox = Toolbox::from_config(&Config::default());
        self.run_tool(toolbox.get(name).unwrap().as_ref(), arguments)
    }

    /// Runs any tool so.
    pub fn run_tool(&self, tool: &dyn Tool, arguments: Value) -> Result<String, String> {
        self.run_with_details(tool, arguments).0
    }

    /// Where the result of a built-in tool comes from.
    pub fn origin_of(&self, name: &str, arguments: Value) -> Origin {
        let toolbox = Toolbox::from_config(&Config::default());
        let tool = toolbox.get(name).unwrap().as_ref();
        self.run_with_details(tool, arguments).1.origin
    }

    fn run_with_details(
        &self,
        tool: &dyn Tool,
        arguments: Value,
    ) -> (Result<String, String>, ResultDetails) {
        let arguments = match check_arguments(tool.spec(), &arguments.to_string()) {
            Ok(arguments) => arguments,
            Err(why) => return (Err(why), ResultDetails::default()),
        };
        let cancel = Cancel::default();
        let context = ToolContext {
            start: Start::for_test(),
            store: &self.store,
            config: &self.config,
            embedder: None,
            clock: &self.clock,
            viewer: Viewer::readers_of(self.conversation_id, &Readers::Household)
                .asked_by(Some(self.ann), None),
            conversation_id: Some(self.conversation_id),
            turn_id: Some(TurnId::from(0)),
            channel: self.channel,
            account: self.channel.strip_prefix("webhook:"),
            user_id: Some(self.ann),
            speaker: Some("Ann"),
            deadline: Instant::now() + Duration::from_secs(20),
            cancel: &cancel,
            data_dir: &self.directory,
            pdfs: &self.pdfs,
            is_narrowed: self.is_narrowed,
            reminds_alone: false,
            stays_on_host: self.stays_on_host,
            is_outside: false,
            details: ResultDetails::of(tool.definition()),
        };
        let result = tool.run(&arguments, &context);
        (result, context.into_details())
    }

    /// Stores a message in a conversation of its own.
    pub fn say(&self, message: &str) -> ConversationId {
        self.say_with(message, NewAttachments::default())
    }

    /// The same with files.
    pub fn say_with(&self, message: &str, attachments: NewAttachments) -> ConversationId {
        let begun = self
            .store
            .begin_turn(NewTurn {
                owner: Some(self.ann),
                speaker: Some("Ann".to_owned()),
                attachments,
                ..NewTurn::new(
                    Viewer::server(),
                    Target::New,
                    Audience::Household,
                    "websocket",
                    message.to_owned(),
                )
            })
            .unwrap();
        match begun.into_inner() {
            Begun::New { turn, .. } | Begun::Repeat(turn) | Begun::Again(turn) => {
                turn.conversation_id
            }
        }
    }
}

impl Drop for Household {
    fn drop(&mut self) {
        self.store.close();
    }
}
