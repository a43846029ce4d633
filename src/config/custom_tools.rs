//! `tools.custom`: programs and HTTP requests that the model may use.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::collections::{Json, filled_list, list, map_of, object, object_as};
use super::declaration::{Rule, section};
use super::key_path::{KeyPath, is_comment, texts};
use super::problems::suggestion;
use super::reader::Reader;
use super::rules::{
    Choice, DIRECTORY, Flag, HEADER, Parsed, SecretText, TOOL_NAME, Text, VARIABLE, integer, words,
};
use super::webhook_map::{TEMPLATE, Template};
use base::language::Said;
use base::secret::Secret;
use base::url::Url;

/// Names of the built-in tools, which no other tool may take.
pub const BUILTIN_TOOLS: [&str; 16] = [
    "current_time",
    "remember",
    "recall",
    "forget",
    "search_conversations",
    "schedule",
    "lists",
    "find_events",
    "edit_events",
    "notify",
    "web_fetch",
    "list_files",
    "read_file",
    "write_file",
    "run_command",
    "read_skill",
];

/// Finds tools that are not shown to a model, because its window has no room for all of them.
/// It is there where it is needed, for everybody, and no other tool may take its name.
pub const FIND_TOOLS: &str = "find_tools";

/// The built-in tools that reach nothing of the household. The others reach memories,
/// conversations, schedules, lists, phones, files and skills: a webhook account has them only
/// if its `tools` names them.
pub(super) const UNRELATED_TOOLS: [&str; 2] = ["current_time", "web_fetch"];

/// A tool from the configuration (`tools.custom`).
#[derive(Clone, Debug)]
pub struct CustomTool {
    /// Name for the model: 1 to 64 of `A-Z a-z 0-9 _ -`.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON Schema of its arguments (an object schema), made from the short
    /// form `name -> type name` where the file uses that.
    pub parameters: Value,
    /// How it runs.
    pub run: CustomRun,
    /// Whether it only reads, so that it can run twice, or in parallel.
    pub read_only: bool,
    /// Longest run, in seconds.
    pub timeout_seconds: u64,
    /// Most bytes of output that are kept.
    pub output_bytes: usize,
    /// Whether its results do not count as outside text.
    pub trusted: bool,
    /// Whether it reaches what belongs to the household.
    pub household: bool,
}

/// How a custom tool runs.
#[derive(Clone, Debug)]
pub enum CustomRun {
    /// A program.
    Command(CustomCommand),
    /// An HTTP request.
    Http(CustomHttp),
}

/// A program and its arguments; the tool's arguments arrive as JSON on its
/// standard input.
#[derive(Clone, Debug)]
pub struct CustomCommand {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Its variables in addition to PATH, HOME, LANG and TZ.
    pub environment: BTreeMap<String, Secret>,
    /// Where it runs, if not in the workspace or the data directory.
    pub directory: Option<PathBuf>,
    /// Whether it reaches only a part of the file system.
    pub sandbox: bool,
}

section! {
    /// A tool as the file has it.
    struct Declaration {
        /// The tool's name, for the model.
        name: String = TOOL_NAME.required();
        /// What the tool does and when to use it, for the model.
        description: String = Text(1..=4_000).required();
        /// The tool's arguments: an object from names to type names (string, integer, number,
        /// boolean, array, object; a ? at the end makes one optional) or JSON Schemas, whose `default`
        /// stands for an argument that is absent, or one JSON Schema of type object.
        parameters: Value = Parameters.or_shown(empty_schema(), "{}");
        /// Program and arguments. The tool's arguments arrive as JSON on its standard input.
        command: Option<Vec<String>> = filled_list(Text(0..=10_000)).optional("none");
        /// Request to make instead of running a program.
        http: Option<CustomHttp> = object().optional("none");
        /// Environment variables of the program, in addition to PATH, HOME, LANG and TZ.
        env: BTreeMap<String, Secret> = map_of(VARIABLE, SecretText)
            .or_shown(BTreeMap::new(), "{}");
        /// Where the program runs.
        directory: Option<PathBuf> = DIRECTORY
            .optional("the workspace; without `sandbox` the data directory");
        /// Whether the program may only read the directories of the system and its own, and only
        /// write to the workspace and the temporary directory, where the kernel has Landlock.
        sandbox: bool = Flag.or(true);
        /// Whether the tool only reads. Such tools run side by side, and again after a crash.
        read_only: bool = Flag.or(false);
        /// Whether what the tool answers is trusted: it does not count as text from outside, after
        /// which tools with an effect ask again.
        trusted: bool = Flag.or(false);
        /// Whether the tool reaches what belongs to the household: a webhook account has it only if
        /// its `tools` names it.
        household: bool = Flag.or(false);
        /// Longest run, in seconds.
        timeout_seconds: u64 = integer(1..=3_600).or(30);
        /// Longest output that is kept, in bytes. The model is shown it in parts.
        output_bytes: usize = integer(256..=1024 * 1024).or(1024 * 1024);
    }
}

section! {
    /// An HTTP request.
    #[derive(Clone, Debug)]
    pub struct CustomHttp {
        /// HTTP method.
        pub method: &'static str = METHODS.or("GET");
        /// URL. `{name}` is replaced by the argument of that name.
        pub url: String = Text(8..=4_000).required();
        /// Headers by name. `{name}` is replaced by the argument of that name.
        pub headers: Vec<(String, Secret)> = map_of(HEADER, SecretText).or_shown(Vec::new(), "{}");
        /// JSON body. In its strings, `{name}` is replaced by the argument of that name.
        pub body: Option<Value> = Json.optional("the arguments");
        /// What the model is shown of a JSON or XML answer: the first of these forms whose list
        /// is there. Of any other answer it is shown all.
        pub show: Vec<AnswerForm> = list(object::<AnswerForm>()).or_shown(Vec::new(), "[]");
    }
}

section! {
    /// A form of answers, of which a part is shown.
    #[derive(Clone, Debug)]
    pub struct AnswerForm {
        /// JSON pointer to a list in the answer: `text` is shown for each of its items.
        pub each: Option<String> = LIST_POINTER.optional("`text` is shown once, for the answer");
        /// Text with JSON pointers in braces, such as "{/title}: {/url}". Empty lines are
        /// left out.
        pub text: Template = TEMPLATE.required();
        /// How many of the items are shown at most.
        pub most: usize = integer(1..=1_000).or(20);
    }
}

const LIST_POINTER: Parsed<String> = Parsed {
    expected: "a JSON pointer such as /results, or \"\" for the answer itself",
    parse: |text| (text.is_empty() || text.starts_with('/')).then(|| text.to_owned()),
};

const METHODS: Choice<&str> = Choice(&words(["GET", "POST", "PUT", "PATCH", "DELETE"]));

/// One tool.
pub(super) fn custom_tool() -> impl Rule<Output = CustomTool> {
    object_as::<Declaration>("an object that declares a tool", &[]).then(
        |reader, path, value, declared| {
            let before = reader.problems.len();
            let run = match (declared.command, declared.http) {
                (Some(argv), None) => {
                    if argv[0].trim().is_empty() {
                        reader.refuse(&path.key("command").index(0), "must be a program");
                    }
                    let words = path.key("command");
                    reader
                        .private
                        .extend((1..argv.len()).map(|place| words.index(place)));
                    CustomRun::Command(CustomCommand {
                        argv,
                        environment: declared.env,
                        directory: declared.directory,
                        sandbox: declared.sandbox,
                    })
                }
                (None, Some(http)) => {
                    check_templates(reader, &path.key("http"), &http, &declared.parameters);
                    reader.private.push(path.key("http").key("url"));
                    for key in ["env", "directory", "sandbox"] {
                        if value.get(key).is_some() {
                            reader.refuse(&path.key(key), "needs \"command\"");
                        }
                    }
                    CustomRun::Http(http)
                }
                (command, _) => {
                    let found = if command.is_some() { "both" } else { "neither" };
                    reader.refuse(
                        path,
                        format_args!("must have either \"command\" or \"http\"; it has {found}"),
                    );
                    return None;
                }
            };
            (reader.problems.len() == before).then_some(CustomTool {
                name: declared.name,
                description: declared.description,
                parameters: declared.parameters,
                run,
                read_only: declared.read_only,
                timeout_seconds: declared.timeout_seconds,
                output_bytes: declared.output_bytes,
                trusted: declared.trusted,
                household: declared.household,
            })
        },
    )
}

/// Checks that the model cannot choose the host, and that every placeholder has a
/// parameter.
fn check_templates(reader: &mut Reader<'_>, path: &KeyPath, http: &CustomHttp, parameters: &Value) {
    let url = path.key("url");
    let host_start = http.url.find("://").map_or(0, |place| place + 3);
    let host_length = http.url[host_start..].find(['/', '?', '#']);
    let host_end = host_length.map_or(http.url.len(), |length| host_start + length);
    let fixed = Url::parse(&http.url[..host_end])
        .is_ok_and(|url| matches!(url.scheme.as_str(), "http" | "https"));
    if !fixed {
        reader.refuse(
            &url,
            "must be a URL that begins with https:// or http:// and whose host \
                 holds no {name}",
        );
    }
    let known = parameters.get("properties").and_then(Value::as_object);
    let mut checked: Vec<(KeyPath, &str)> = vec![(url, http.url.as_str())];
    for (name, value) in &http.headers {
        checked.push((path.key("headers").key(name), value.expose()));
    }
    if let Some(body) = &http.body {
        checked.extend(texts(&path.key("body"), body));
    }
    for (path, text) in checked {
        for name in placeholders(text) {
            let known = || known.into_iter().flatten().map(|(name, _)| name.as_str());
            if !known().any(|known| known == name) {
                let hint = suggestion(name, known());
                reader.refuse(
                    &path,
                    format_args!("has {{{name}}}, but \"parameters\" has no {name:?}{hint}"),
                );
            }
        }
    }
}

/// The names in braces of a template. Braces around anything but a name are text.
fn placeholders(template: &str) -> impl Iterator<Item = &str> {
    template.split('{').skip(1).filter_map(|after| {
        let (name, _) = after.split_once('}')?;
        TOOL_NAME.fits(name).then_some(name)
    })
}

/// The rule for `parameters`: the short form or a whole schema.
struct Parameters;

/// Type names of the short form, which are those of JSON Schema.
const TYPES: [&str; 6] = ["string", "integer", "number", "boolean", "array", "object"];

/// The schema of a tool without arguments.
fn empty_schema() -> Value {
    json!({"type": "object", "properties": {}})
}

impl Rule for Parameters {
    type Output = Value;

    fn expected(&self) -> Said {
        "an object from parameter names to type names or JSON Schemas, or a JSON Schema whose \
         type is object"
            .into()
    }

    fn schema(&self) -> Value {
        json!({ "type": "object" })
    }

    fn read(&self, reader: &mut Reader<'_>, path: &KeyPath, value: &Value) -> Option<Value> {
        let members = reader.members(path, &self.expected(), value)?;
        if members.get("type").and_then(Value::as_str) == Some("object") {
            return check_schema(reader, path, members).then(|| value.clone());
        }
        let before = reader.problems.len();
        let mut properties = Map::new();
        let mut required = Vec::new();
        for (name, kind) in members.iter().filter(|(name, _)| !is_comment(name)) {
            let path = path.key(name);
            if !TOOL_NAME.fits(name) {
                let message = format!("{name:?} is not a parameter name (A-Z a-z 0-9 _ -)");
                reader.problem(&path, message);
            }
            let (schema, optional) = match kind {
                Value::String(word) => {
                    let (word, optional) = match word.strip_suffix('?') {
                        Some(word) => (word, true),
                        None => (word.as_str(), false),
                    };
                    if !TYPES.contains(&word) {
                        let hint = suggestion(word, TYPES);
                        let types = TYPES.join(", ");
                        reader.refuse(
                            &path,
                            format_args!(
                                "must be one of {types}, or a JSON Schema, not \
                                 {word:?}{hint}"
                            ),
                        );
                    }
                    (json!({"type": word}), optional)
                }
                Value::Object(schema) => (kind.clone(), schema.contains_key("default")),
                other => {
                    reader.mistyped(&path, &"a type name or a JSON Schema".into(), other);
                    continue;
                }
            };
            properties.insert(name.clone(), schema);
            if !optional {
                required.push(Value::from(name.as_str()));
            }
        }
        let mut schema = Map::new();
        schema.insert("type".to_owned(), "object".into());
        schema.insert("properties".to_owned(), properties.into());
        if !required.is_empty() {
            schema.insert("required".to_owned(), required.into());
        }
        (reader.problems.len() == before).then_some(schema.into())
    }
}

/// Checks the parts of a JSON Schema that Hearth relies on.
fn check_schema(reader: &mut Reader<'_>, path: &KeyPath, schema: &Map<String, Value>) -> bool {
    let before = reader.problems.len();
    let none = Map::new();
    let properties = match schema.get("properties") {
        None => &none,
        Some(Value::Object(properties)) => properties,
        Some(other) => {
            reader.mistyped(&path.key("properties"), &"an object".into(), other);
            &none
        }
    };
    for (name, property) in properties {
        if !property.is_object() {
            let path = path.key("properties").key(name);
            reader.mistyped(&path, &"a JSON Schema".into(), property);
        }
    }
    if let Some(required) = schema.get("required") {
        let path = path.key("required");
        let known = |item: &Value| {
            item.as_str()
                .is_some_and(|name| properties.contains_key(name))
        };
        if !required
            .as_array()
            .is_some_and(|items| items.iter().all(known))
        {
            reader.refuse(&path, "must be an array of names that \"properties\" has");
        }
    }
    reader.problems.len() == before
}
