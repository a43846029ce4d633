//! What a tool is: its definition, what it may use while it runs, and how long.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::attached::PdfTexts;
use super::known_address::Address;
use super::output;
use super::wording::{Approver, Intent};
use crate::model::ToolSpec;
use crate::model::embedding::Embedder;
use base::clock::Clock;
use base::error::Error;
use base::ids::{CalendarId, ConversationId, MemoryId, ScheduleId, TurnId, UserId};
use base::sync::lock;
use config::{Config, CustomTool};
use net::cancel::Cancel;
use protocol::record::Annotations;
use store::{
    Durable, IncludedFile, PageRange, Readers, Snapshot, StartedCall, Store, Vector, Viewer,
};

/// Arguments by name.
pub type Arguments = Map<String, Value>;

/// Where a tool comes from, as `list_tools` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Part of the program.
    Builtin,
    /// Declared under `tools.custom` of the configuration.
    Custom,
    /// An MCP server of this name.
    Mcp(String),
}

/// What is known of a tool without running it.
#[derive(Clone, Debug)]
pub struct Definition {
    /// Name, description and parameters, for the model.
    pub spec: ToolSpec,
    /// Where it comes from.
    pub source: Source,
    /// Whether it only reads, so that running it twice, or in parallel, does no
    /// harm.
    pub is_read_only: bool,
    /// Where the text of its results comes from, unless a run says otherwise.
    pub origin: Origin,
    /// Whether its results depend on who may read the conversation.
    pub is_private: bool,
}

/// Where the text of a result comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// The tool's own words.
    #[default]
    Tool,
    /// From others, marked as such for the model, but nobody who is not trusted wrote
    /// it.
    Trusted,
    /// From outside the household, marked as such for the model.
    Outside,
}

impl Definition {
    /// A built-in tool that has an effect and answers in its own words.
    /// `properties` are the schemas of its parameters by name.
    pub(super) fn builtin(
        name: &str,
        description: &str,
        properties: Value,
        required: &[&str],
    ) -> Definition {
        let mut parameters = json!({"type": "object", "properties": properties});
        if !required.is_empty() {
            parameters["required"] = json!(required);
        }
        Definition {
            spec: ToolSpec {
                name: name.to_owned(),
                description: description.to_owned(),
                parameters: parameters.into(),
            },
            source: Source::Builtin,
            is_read_only: false,
            origin: Origin::Tool,
            is_private: false,
        }
    }

    /// A tool of the configuration.
    pub(super) fn custom(tool: &CustomTool) -> Definition {
        Definition {
            spec: ToolSpec {
                name: tool.name.clone(),
                description: tool.description.clone(),
                parameters: tool.parameters.clone().into(),
            },
            source: Source::Custom,
            is_read_only: tool.read_only,
            origin: match tool.trusted {
                true => Origin::Trusted,
                false => Origin::Outside,
            },
            is_private: false,
        }
    }

    /// Whether it finds what others have written: pages, and what tools that are not our
    /// own bring. What the household keeps may be what the model has said itself.
    pub fn looks_outside(&self) -> bool {
        self.source != Source::Builtin || self.spec.name == "web_fetch"
    }

    /// The same tool, with results that anybody may have written.
    pub(super) fn bringing_outside_text(mut self) -> Definition {
        self.origin = Origin::Outside;
        self
    }

    /// The same tool, with results that the readers of the conversation may see. Each run
    /// says whether they hold what somebody has written, and whether anybody may have.
    pub(super) fn for_readers(mut self) -> Definition {
        self.is_private = true;
        self
    }

    /// The same tool, which changes nothing.
    pub(super) fn read_only(mut self) -> Definition {
        self.is_read_only = true;
        self
    }
}

/// Why a tool may run now: a crash while it runs does not run it a second time, or
/// that does no harm.
///
/// ```
/// use agent::tools::Start;
/// use store::{Durable, StartedCall};
///
/// fn start(call: &Durable<StartedCall>) -> Start {
///     Start::stored(call)
/// }
/// ```
///
/// ```compile_fail
/// use agent::tools::Start;
/// use store::{Provisional, StartedCall};
///
/// fn start(call: &Provisional<StartedCall>) -> Start {
///     Start::stored(call)
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Start(());

impl Start {
    /// The start of a tool that only reads; none for one that has an effect.
    pub fn of_read_only(definition: &Definition) -> Option<Start> {
        definition.is_read_only.then_some(Start(()))
    }

    /// The start of a call that a person's own program makes, as it would send a command:
    /// no turn has it, so that nobody repeats it.
    pub fn by_program() -> Start {
        Start(())
    }

    /// The start of a tool whose test has no turn.
    #[cfg(test)]
    pub(super) fn for_test() -> Start {
        Start(())
    }

    /// The start of a call that is on disk.
    pub fn stored(_: &Durable<StartedCall>) -> Start {
        Start(())
    }
}

/// What there is to know of a result beside its text.
#[derive(Debug, Default)]
pub struct ResultDetails {
    /// Where the text comes from.
    pub origin: Origin,
    /// Whether only the readers of the conversation may see it.
    pub is_private: bool,
    /// The memories among it: it loses those that are forgotten.
    pub memories: Vec<MemoryId>,
    /// The part of a longer text that it shows.
    pub page: Option<PageRange>,
    /// What the run has changed, on disk.
    pub changes: Vec<Change>,
    /// The files that came with it, in the order in which it names them.
    pub files: Vec<IncludedFile>,
    /// Whether an admin can mend why there is none.
    pub needs_admin: bool,
}

impl ResultDetails {
    /// Those of a tool's results, as far as a run says nothing else.
    pub fn of(definition: &Definition) -> Mutex<ResultDetails> {
        Mutex::new(ResultDetails {
            origin: definition.origin,
            is_private: definition.is_private,
            ..ResultDetails::default()
        })
    }
}

/// What a tool may use while it runs.
pub struct ToolContext<'a> {
    /// Why it may run.
    pub start: Start,
    /// For memories, schedules and earlier conversations.
    pub store: &'a Store,
    /// The settings of the turn.
    pub config: &'a Config,
    /// Makes vectors of texts, if there is a model for that.
    pub embedder: Option<&'a Embedder>,
    /// The household's time.
    pub clock: &'a Clock,
    /// What the model sees and changes there.
    pub viewer: Viewer,
    /// The conversation in which it was called; none where a person's program calls it.
    pub conversation_id: Option<ConversationId>,
    /// The turn that calls it, in that conversation.
    pub turn_id: Option<TurnId>,
    /// Where the message came from, as [`Turn::channel`](store::Turn::channel).
    pub channel: &'a str,
    /// The webhook account that gets the reply.
    pub account: Option<&'a str>,
    /// The person who asked.
    pub user_id: Option<UserId>,
    /// Who asked, by name.
    pub speaker: Option<&'a str>,
    /// Whether the person who asked may do less than others.
    pub is_narrowed: bool,
    /// Whether they set reminders for themselves alone.
    pub reminds_alone: bool,
    /// Whether text from outside is among what the model is shown.
    pub is_outside: bool,
    /// Whether an address that the tool asks leads to no other host: a person would be
    /// asked about that one.
    pub stays_on_host: bool,
    /// What the run says of its result.
    pub details: Mutex<ResultDetails>,
    /// When the tool must be finished: its own limit or the turn's, whichever
    /// is sooner.
    pub deadline: Instant,
    /// Set when somebody stops the turn; a tool that waits must heed it.
    pub cancel: &'a Cancel,
    /// Where programs run by default.
    pub data_dir: &'a Path,
    /// The attached PDFs that were read.
    pub pdfs: &'a PdfTexts,
}

impl ToolContext<'_> {
    /// The conversation in which it was called.
    pub(super) fn conversation(&self) -> Result<ConversationId, String> {
        self.conversation_id
            .ok_or_else(|| "this works in a conversation only".to_owned())
    }

    /// The person whose files it works with: the only one who reads along. None for the
    /// household's.
    pub(super) fn files_of(&self) -> Result<Option<UserId>, String> {
        Ok(self.seen()?.only_reader()?)
    }

    /// Says that the result shows the files of this person, if of one: who reads the
    /// conversation later must not learn it.
    pub(super) fn shows_files_of(&self, owner: Option<UserId>) {
        lock(&self.details).is_private |= owner.is_some();
    }

    /// What the model sees at this moment.
    pub(super) fn seen(&self) -> Result<Snapshot<'_>, Error> {
        self.store.snapshot(&self.viewer)
    }

    /// The vector of what the model looks for, if the server makes it at once.
    pub(super) fn vector_of(&self, text: &str) -> Option<Vector> {
        let embedder = self.embedder?;
        embedder.of_message(text, self.deadline, self.cancel)
    }

    /// Says where the text of the result comes from.
    pub fn found(&self, origin: Origin) {
        lock(&self.details).origin = origin;
    }

    /// Says that the result shows what is kept here; anybody may have written it if it came
    /// from outside.
    pub(super) fn shows_kept(&self, is_outside: bool) {
        self.found(if is_outside {
            Origin::Outside
        } else {
            Origin::Trusted
        });
    }

    /// What the run has said of its result.
    pub fn into_details(self) -> ResultDetails {
        let details = self.details.into_inner();
        details.unwrap_or_else(PoisonError::into_inner)
    }

    /// The part of a long text that its arguments ask for; see [`output::page`].
    pub(super) fn page(&self, text: &str, arguments: &Arguments) -> Result<String, String> {
        let (shown, range) = output::page(text, arguments)?;
        lock(&self.details).page = range;
        Ok(shown)
    }

    /// Says what the run has changed, on disk.
    pub(super) fn changed(&self, changes: Vec<Change>) {
        lock(&self.details).changes = changes;
    }
}

/// A thing of people that a tool has made, changed or deleted.
#[derive(Clone, Debug)]
pub enum Change {
    /// The list of this name.
    List(String),
    /// A memory, and who sees it.
    Memory(MemoryId, Readers),
    /// A schedule, and who sees it.
    Schedule(ScheduleId, Readers),
    /// A calendar, and who sees it.
    Calendar(CalendarId, Readers),
}

/// Something that the model can do.
pub trait Tool: Send + Sync {
    /// What is known of it.
    fn definition(&self) -> &Definition;

    /// Name, description and parameters.
    fn spec(&self) -> &ToolSpec {
        &self.definition().spec
    }

    /// What its server says that it is, for people. None if it is of no server.
    fn annotations(&self) -> Option<&Annotations> {
        None
    }

    /// What the prompt says, once, about the server that has it and others. None if it is of
    /// no server.
    fn server_note(&self) -> Option<&str> {
        None
    }

    /// Whether it, or its server, says anything else of itself than when its owner chose it.
    fn is_changed(&self) -> bool {
        false
    }

    /// What a run with these arguments does, for the person who is asked about it. It may
    /// quote what they see. None if the tool's name and its arguments say as much.
    fn intent(&self, _arguments: &Arguments, _judge: &Approver<'_>) -> Option<Intent> {
        None
    }

    /// From where the text of a result that came from outside is, as a kind and a name: the
    /// server, the tool, the page's host. None if its owner trusts that.
    fn outside_source(&self, arguments: &str, config: &Config) -> Option<String> {
        let definition = self.definition();
        if definition.origin != Origin::Outside {
            return None;
        }
        let given = serde_json::from_str(arguments).unwrap_or_default();
        let name = &definition.spec.name;
        Some(
            match (&definition.source, self.asked_address(&given, config)) {
                (Source::Mcp(server), _) => format!("server {server}"),
                (Source::Custom, _) => format!("tool {}", name.replace('_', " ")),
                (Source::Builtin, Some(address)) => format!("page {}", address.host),
                (Source::Builtin, None) if name == "web_fetch" => return None,
                (Source::Builtin, None) if name == "run_command" => "command".to_owned(),
                (Source::Builtin, None) => "file".to_owned(),
            },
        )
    }

    /// The address outside that a run with these arguments asks, where the owner does
    /// not trust its host. Such a call takes the address along, and what the model has
    /// put in it. None where the owner chose the address.
    fn asked_address(&self, arguments: &Arguments, config: &Config) -> Option<Address> {
        let _ = (arguments, config);
        None
    }

    /// Runs it. `arguments` has passed [`check_arguments`](super::check_arguments).
    ///
    /// # Errors
    /// What went wrong, for the model: it is the result, and the turn continues.
    fn run(&self, arguments: &Arguments, context: &ToolContext<'_>) -> Result<String, String>;
}

/// When a run must end: after the tool's own limit or at the end of the turn,
/// whichever comes first.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunLimit {
    pub(super) deadline: Instant,
    /// The tool's own limit in seconds, where that is what ends it.
    own_seconds: Option<u64>,
}

impl RunLimit {
    pub(super) fn new(own_seconds: u64, turn_deadline: Instant) -> RunLimit {
        // A limit beyond what the clock can represent does not count.
        match Instant::now().checked_add(Duration::from_secs(own_seconds)) {
            Some(own) if own < turn_deadline => RunLimit {
                deadline: own,
                own_seconds: Some(own_seconds),
            },
            _ => RunLimit {
                deadline: turn_deadline,
                own_seconds: None,
            },
        }
    }

    /// What the model reads about a run that did not end in time.
    pub(super) fn exceeded(&self, tool: &str) -> String {
        match self.own_seconds {
            Some(seconds) => {
                format!("the tool {tool:?} was stopped: it did not finish within {seconds} seconds")
            }
            None => turn_is_over(tool),
        }
    }
}

/// What the model reads about a run that was stopped because the turn's time was up.
pub fn turn_is_over(tool: &str) -> String {
    format!("the tool {tool:?} was stopped: the time for this turn is up")
}

/// What the model reads about a run that a person stopped.
pub fn cancelled(tool: &str) -> String {
    format!("the tool {tool:?} was stopped because the turn was cancelled")
}

/// A string argument without white space around it; absent and blank are the
/// same.
pub(super) fn text<'a>(arguments: &'a Arguments, name: &str) -> Option<&'a str> {
    arguments
        .get(name)?
        .as_str()
        .map(str::trim)
        .filter(|text| !text.is_empty())
}

/// The strings of an argument that is an array.
pub(super) fn texts(arguments: &Arguments, name: &str) -> Vec<String> {
    let items = arguments.get(name).and_then(Value::as_array);
    let texts = items.into_iter().flatten().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

/// A string argument that must say something.
pub(super) fn required_text<'a>(arguments: &'a Arguments, name: &str) -> Result<&'a str, String> {
    text(arguments, name).ok_or_else(|| format!("the argument \"{name}\" must not be empty"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearer_limit_counts_and_a_huge_one_does_not_overflow() {
        let turn = Instant::now() + Duration::from_secs(60);
        let own = RunLimit::new(5, turn);
        assert!(own.deadline < turn);
        assert!(own.exceeded("x").contains("within 5 seconds"));
        for seconds in [600, u64::MAX] {
            let limit = RunLimit::new(seconds, turn);
            assert_eq!(limit.deadline, turn);
            assert!(limit.exceeded("x").contains("the time for this turn is up"));
        }
    }

    #[test]
    fn blank_is_absent() {
        let arguments = json!({"a": " x ", "b": " ", "c": 1});
        let arguments = arguments.as_object().unwrap();
        assert_eq!(text(arguments, "a"), Some("x"));
        for name in ["b", "c", "d"] {
            assert_eq!(text(arguments, name), None);
            assert!(required_text(arguments, name).is_err());
        }
    }
}
