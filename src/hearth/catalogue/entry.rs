//! An entry of the catalogue: what it asks, and the settings that its answers make.

use serde_json::{Map, Value, json};

use super::{ADDED_AS, Addition, REQUEST_TIME};
use agent::tools::try_once;
use base::error::{Error, Result};
use base::gzip::unpack;
use base::language::Words;
use base::nearest::nearest;
use base::url::Url;
use config::{CustomHttp, CustomRun, CustomTool, Template, variable};
use net::tls::Trust;
use protocol::record::Choice;

const ENTRIES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/entries.json.gz"));

/// Longest text of one choice, in bytes.
const LABEL_BYTES: usize = 200;
/// How the names of answers end that are addresses.
const ADDRESS: &str = "address";
/// Longest name under which an entry is added, in bytes: tools' names begin with it.
const NAME_BYTES: usize = 40;

/// Answers by the names of their fields.
pub type Answers = Map<String, Value>;

/// Something that can be added.
pub struct Entry {
    /// Its name in the catalogue.
    pub name: String,
    json: Value,
}

/// A question of an entry.
pub struct Field<'e> {
    /// The name of its answer.
    pub name: &'e str,
    /// What its question is called among the words; none where the default is right for
    /// nearly everybody.
    question: Option<&'e str>,
    /// The answer where none is given.
    pub default: Option<&'e str>,
    /// Whether the answer is a secret.
    pub is_secret: bool,
    /// Whether it needs no answer.
    pub is_optional: bool,
    /// How the answer is looked up.
    find: Option<&'e Value>,
}

impl Entry {
    /// All entries, in the order of the catalogue.
    pub fn all() -> Vec<Entry> {
        let entries: Map<String, Value> =
            serde_json::from_slice(&unpack(ENTRIES)).expect("a test reads the catalogue");
        let entry = |(name, json)| Entry { name, json };
        entries.into_iter().map(entry).collect()
    }

    /// The entry of this name.
    ///
    /// # Errors
    /// `not_found` when there is none; names the nearest, or all.
    pub fn named(name: &str) -> Result<Entry> {
        let mut all = Entry::all();
        if let Some(place) = all.iter().position(|entry| entry.name == name) {
            return Ok(all.swap_remove(place));
        }
        let names: Vec<&str> = all.iter().map(|entry| entry.name.as_str()).collect();
        let hint = match nearest(name, names.iter().copied()) {
            Some(near) => format!("did you mean {near:?}?"),
            None => format!("there are {}", names.join(", ")),
        };
        let problem = format!("the catalogue has no tool {name:?}; {hint}");
        Err(Error::not_found(problem))
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.json.get(key)?.as_str()
    }

    /// What it is, in a line.
    pub fn about(&self, words: Words) -> String {
        words.word(&format!("catalogue.{}", self.name))
    }

    /// What to do at the other side first.
    pub fn steps(&self, words: Words) -> Option<&'static str> {
        words.find(&format!("catalogue.{}.steps", self.name))
    }

    /// Whether it starts a program.
    pub fn starts_program(&self) -> bool {
        let servers = self.json.get("servers").and_then(Value::as_object);
        let mut servers = servers.into_iter().flat_map(Map::values);
        servers.any(|server| server.get("command").is_some())
    }

    /// Its questions.
    pub fn fields(&self) -> impl Iterator<Item = Field<'_>> {
        let fields = self.json["ask"].as_array().into_iter().flatten();
        fields.map(|field| {
            let text = |key| field.get(key).and_then(Value::as_str);
            let is = |key| field.get(key) == Some(&Value::Bool(true));
            Field {
                name: text("name").unwrap_or_default(),
                question: text("question"),
                default: text("default"),
                is_secret: is("secret"),
                is_optional: is("optional"),
                find: field.get("find"),
            }
        })
    }

    /// Checks answers, and completes them with the defaults.
    ///
    /// # Errors
    /// `invalid_request` naming what is missing, unknown, no text or no address.
    pub fn complete(&self, answers: &mut Answers) -> Result<()> {
        let names: Vec<&str> = self.fields().flat_map(|field| field.answers()).collect();
        if let Some(unknown) = answers.keys().find(|key| !names.contains(&key.as_str())) {
            let known = names.join(", ");
            let problem = format!("{} has no {unknown:?}; it has {known}", self.name);
            return Err(Error::invalid_request(problem));
        }
        if let Some((name, _)) = answers.iter().find(|(_, value)| !is_plain(value)) {
            return Err(Error::invalid_request(format!("{name} must be a text")));
        }
        answers.retain(|_, value| value.as_str() != Some(""));
        for field in self.fields() {
            if !answers.contains_key(field.name) {
                match field.default {
                    Some(default) => {
                        answers.insert(field.name.to_owned(), default.into());
                    }
                    None if field.is_optional => continue,
                    None => {
                        let name = field.name;
                        let question = field.question(Words::ENGLISH).unwrap_or_default();
                        let problem = format!("{name} is missing: {question}");
                        return Err(Error::invalid_request(problem));
                    }
                }
            }
            let value = answers[field.name].as_str().unwrap_or_default();
            let is_web = |url: Url| matches!(url.scheme.as_str(), "http" | "https");
            if field.is_address() && !Url::parse(value).is_ok_and(is_web) {
                let problem = format!("{} must begin with http:// or https://", field.name);
                return Err(Error::invalid_request(problem));
            }
            if self.extends(field.name) && value.contains(['?', '#']) {
                let problem = format!("{} must end before its ? or #", field.name);
                return Err(Error::invalid_request(problem));
            }
        }
        // In the texts of a request, braces stand for arguments.
        let is_request = self.json.get("tools").is_some();
        for (name, value) in answers.iter_mut().filter(|_| is_request) {
            let Value::String(text) = value else { continue };
            if !text.contains(['{', '}']) || variable(text).is_some() {
                continue;
            }
            if !name.ends_with(ADDRESS) {
                let problem =
                    format!("{name} must not have braces: in a request, they stand for arguments");
                return Err(Error::invalid_request(problem));
            }
            *text = text.replace('{', "%7B").replace('}', "%7D");
        }
        Ok(())
    }

    /// Whether a path is put behind this answer.
    fn extends(&self, name: &str) -> bool {
        self.json.to_string().contains(&format!("<{name}>/"))
    }

    /// What a complete answer may mean that has to be looked up; nothing where none has, or
    /// where the answers say so already.
    ///
    /// # Errors
    /// `invalid_request` when it cannot be looked up, or nothing has that name.
    pub fn choices(&self, answers: &Answers, trust: Trust) -> Result<Vec<Choice>> {
        let is_open = |field: &Field<'_>| {
            let mut names = field.answers().skip(1);
            field.find.is_some() && names.any(|name| !answers.contains_key(name))
        };
        let Some(field) = self.fields().find(is_open) else {
            return Ok(Vec::new());
        };
        let find = field.find.unwrap_or(&Value::Null);
        let text = |key: &str| find.get(key).and_then(Value::as_str).unwrap_or_default();
        let tool = CustomTool {
            name: self.name.clone(),
            description: String::new(),
            parameters: json!({"type": "object", "properties": {field.name: {}}}),
            run: CustomRun::Http(CustomHttp {
                method: "GET",
                url: filled_text(text("url"), answers).unwrap_or_default(),
                headers: Vec::new(),
                body: None,
                show: Vec::new(),
            }),
            read_only: true,
            timeout_seconds: REQUEST_TIME.as_secs(),
            output_bytes: 256 * 1024,
            trusted: false,
            household: false,
        };
        let answer =
            try_once(&tool, answers, trust, REQUEST_TIME).map_err(Error::invalid_request)?;
        let answer: Value = serde_json::from_str(&answer).map_err(|_| {
            let problem = format!("{} was not answered with JSON", field.name);
            Error::invalid_request(problem)
        })?;
        let label = Template::parse(text("text")).unwrap_or_default();
        let items = answer.pointer(text("each")).and_then(Value::as_array);
        let choice = |item: &Value| {
            let values = find["values"].as_object().into_iter().flatten();
            let values = values.map(|(name, pointer)| {
                let value = item.pointer(pointer.as_str()?)?;
                is_plain(value).then(|| (name.clone(), value.clone()))
            });
            let label = label.fill(item, LABEL_BYTES);
            let mut values: Answers = values.collect::<Option<_>>()?;
            values.insert(field.name.to_owned(), label.as_str().into());
            Some(Choice {
                label,
                answers: values,
            })
        };
        let found: Vec<Choice> = items.into_iter().flatten().filter_map(choice).collect();
        if found.is_empty() {
            Err(Error::invalid_request(format!(
                "{} knows no {} {}",
                self.name, field.name, answers[field.name]
            )))
        } else {
            Ok(found)
        }
    }

    /// The settings of complete answers, under the name `alias` or the entry's own.
    ///
    /// # Errors
    /// `invalid_request` when no tool can be named so.
    pub fn filled(&self, alias: Option<&str>, mut answers: Answers) -> Result<Addition> {
        if let Some(alias) = alias.filter(|alias| !is_tool_name(alias)) {
            return Err(Error::invalid_request(format!(
                "{alias:?} cannot be the name: it needs 1 to {NAME_BYTES} of A-Z a-z 0-9 _ -, and \
                 begins neither with _ nor with mcp_"
            )));
        }
        let prefix = alias.or(self.text("as")).unwrap_or(&self.name);
        let alias = alias.unwrap_or(&self.name);
        answers.insert("as".to_owned(), prefix.into());
        let part = |key| filled(self.json.get(key)?, &answers);
        let object = |key| match part(key) {
            Some(Value::Object(members)) => members,
            _ => Map::new(),
        };
        let mut tools = match part("tools") {
            Some(Value::Array(tools)) => tools,
            _ => Vec::new(),
        };
        let mut servers = object("servers");
        for one in tools.iter_mut().chain(servers.values_mut()) {
            one[ADDED_AS] = alias.into();
        }
        Ok(Addition {
            alias: alias.to_owned(),
            tools,
            servers,
            rights: object("rights"),
            trial: part("try"),
        })
    }
}

impl<'e> Field<'e> {
    /// The question; none where the default is right for nearly everybody.
    pub fn question(&self, words: Words) -> Option<String> {
        let name = self.question?;
        Some(words.word(&format!("catalogue.ask.{name}")))
    }

    /// The names of its answers: its own, and those of what is looked up.
    fn answers(&self) -> impl Iterator<Item = &'e str> + use<'e> {
        let values = self.find.and_then(|find| find["values"].as_object());
        let values = values.into_iter().flat_map(Map::keys).map(String::as_str);
        std::iter::once(self.name).chain(values)
    }

    /// Whether the answer is an address.
    fn is_address(&self) -> bool {
        self.name.ends_with(ADDRESS)
    }
}

/// A part of an entry with the answers in their places; none if one was not given.
fn filled(template: &Value, answers: &Answers) -> Option<Value> {
    Some(match template {
        Value::String(text) => {
            let whole = text
                .strip_prefix('<')
                .and_then(|text| text.strip_suffix('>'));
            match whole.filter(|name| is_name(name)) {
                Some(name) => answers.get(name)?.clone(),
                None => filled_text(text, answers)?.into(),
            }
        }
        Value::Array(items) => items
            .iter()
            .filter_map(|item| filled(item, answers))
            .collect(),
        Value::Object(members) => {
            let member = |(key, value): (&String, &Value)| {
                Some((filled_text(key, answers)?, filled(value, answers)?))
            };
            members.iter().filter_map(member).collect()
        }
        other => other.clone(),
    })
}

fn filled_text(template: &str, answers: &Answers) -> Option<String> {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('<') {
        text.push_str(before);
        rest = after;
        match after.split_once('>') {
            Some((name, after)) if is_name(name) => {
                let value = match answers.get(name)? {
                    Value::String(value) => value.clone(),
                    other => other.to_string(),
                };
                let value = if after.starts_with('/') {
                    value.trim_end_matches('/')
                } else {
                    &value
                };
                text.push_str(value);
                rest = after;
            }
            _ => text.push('<'),
        }
    }
    text.push_str(rest);
    Some(text)
}

/// Whether a value is a text or a number. Nothing else may hold a text that is not seen.
fn is_plain(value: &Value) -> bool {
    value.is_string() || value.is_number()
}

/// Whether tools can be named so. A name that begins with mcp_ would have the rights of an
/// MCP server's tools.
fn is_tool_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    (1..=NAME_BYTES).contains(&name.len())
        && name.bytes().all(fits)
        && !["_", "mcp_"].iter().any(|start| name.starts_with(start))
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}
