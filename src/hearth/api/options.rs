//! What a request asks for beside the messages: passed on to the model, or refused. What has
//! no effect here is named in a header of the response.

use std::collections::BTreeSet;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::service::Service;
use crate::service::programs::ProgramOptions;
use agent::model::ToolSpec;
use agent::model::client_options::{ClientOptions, Format, MustCall};
use agent::model::estimate::request_tokens;
use agent::model::estimate::tool_tokens;
use base::error::{Error, Result};
use config::{Api, Config, Preset};

/// The header of responses that names what had no effect.
pub const IGNORED: &str = "X-Hearth-Ignored";
/// Most tools of a request.
const MOST_TOOLS: usize = 128;
/// Most bytes of that header. Proxies take 4 or 8 KiB of all headers.
const IGNORED_BYTES: usize = 1024;
/// What stands at its end if there is more.
const MORE: &str = "...";
/// The name of a schema that has none.
const UNNAMED: &str = "reply";
/// How tokens are chosen, and the value that means nothing.
const SAMPLING: [(&str, Option<f64>); 8] = [
    ("top_p", Some(1.0)),
    ("top_k", None),
    ("min_p", Some(0.0)),
    ("seed", None),
    ("presence_penalty", Some(0.0)),
    ("frequency_penalty", Some(0.0)),
    ("repeat_penalty", Some(1.0)),
    ("logit_bias", None),
];
/// What would change the answer and cannot be passed on.
const REFUSED: [&str; 13] = [
    "logprobs",
    "top_logprobs",
    "audio",
    "prediction",
    "web_search_options",
    "functions",
    "function_call",
    "echo",
    "suffix",
    "template",
    "raw",
    "context",
    "background",
];

/// What was read of a request.
#[derive(Debug, Default, PartialEq)]
pub struct OptionsRead {
    /// What is passed on.
    pub program: ProgramOptions,
    /// Names of what has no effect.
    pub ignored: Vec<String>,
}

/// Reads the members of a request of OpenAI's interface, without those that have been
/// read.
///
/// # Errors
/// `invalid_request` naming what cannot be passed on.
pub fn of_openai(members: Map<String, Value>) -> Result<OptionsRead> {
    let mut read = OptionsRead::default();
    for (name, value) in members {
        if value.is_null() {
            continue;
        }
        match name.as_str() {
            "max_tokens" | "max_completion_tokens" | "max_output_tokens" => {
                read.limit(&name, &value)?
            }
            "response_format" => read.format(value)?,
            _ => read.take(name, value)?,
        }
    }
    read.checked()
}

/// Takes a wish out of a request that the form of the answer fulfils; whether it was made.
pub fn take_wish(members: &mut Map<String, Value>, name: &str) -> bool {
    let is_made = |value: &Value| !matches!(value, Value::Null | Value::Bool(false));
    let wish = members.get(name).is_some_and(is_made);
    if wish {
        members.remove(name);
    }
    wish
}

/// The same for Ollama's interface.
///
/// # Errors
/// As [`of_openai`].
pub fn of_ollama(members: Map<String, Value>) -> Result<OptionsRead> {
    let mut read = OptionsRead::default();
    for (name, value) in members {
        match (name.as_str(), value) {
            (_, Value::Null) => {}
            ("options", Value::Object(options)) => {
                for (name, value) in options.into_iter().filter(|(_, value)| !value.is_null()) {
                    match name.as_str() {
                        "num_predict" if value.as_i64().is_some_and(|most| most < 1) => {}
                        "num_predict" => read.limit(&name, &value)?,
                        "stop" | "temperature" => read.take(name, value)?,
                        _ if is_sampling(&name) => read.take(name, value)?,
                        _ => read.ignored.push(name),
                    }
                }
            }
            ("format", Value::String(text)) if text.is_empty() => {}
            ("format", Value::String(text)) if text == "json" => {
                read.program.reply.format = Some(Format::Json);
            }
            ("format", schema @ Value::Object(_)) => {
                read.program.reply.format = Some(Format::Schema {
                    name: UNNAMED.to_owned(),
                    description: None,
                    schema,
                    is_strict: false,
                });
            }
            ("format", _) => return Err(must_be("format", "\"json\" or a JSON Schema")),
            (_, value) => read.take(name, value)?,
        }
    }
    read.checked()
}

impl OptionsRead {
    fn take(&mut self, name: String, value: Value) -> Result<()> {
        let client = &mut self.program.reply;
        match name.as_str() {
            "tools" => self.tools(value)?,
            "tool_choice" => {
                let choice = value.as_str().or_else(|| value["type"].as_str());
                match choice {
                    Some("none") => client.may_not_call = true,
                    Some("auto") => {}
                    Some("required" | "any") => client.must_call = Some(MustCall::Any),
                    Some("function") => {
                        let tool = value["function"]["name"]
                            .as_str()
                            .or(value["name"].as_str());
                        let tool =
                            tool.ok_or_else(|| must_be("tool_choice", "a function's name"))?;
                        client.must_call = Some(MustCall::Tool(tool.to_owned()));
                    }
                    _ => return Err(must_be("tool_choice", "none, auto, required or a function")),
                }
            }
            "stop" => client.stop = stop(value)?,
            "temperature" => {
                let temperature = value.as_f64().filter(|one| (0.0..=2.0).contains(one));
                client.temperature = Some(temperature.ok_or_else(|| must_be(&name, "0 to 2"))?);
            }
            "modalities" if value == serde_json::json!(["text"]) => {}
            "modalities" => return Err(cannot(&name)),
            _ if is_sampling(&name) => {
                let neutral = SAMPLING.iter().find(|(known, _)| *known == name);
                let neutral = neutral.and_then(|(_, neutral)| *neutral);
                if neutral.is_none() || value.as_f64() != neutral {
                    client.sampling.insert(name, value);
                }
            }
            known if REFUSED.contains(&known) => {
                let is_nothing = value == false || value == "" || value == 0;
                let is_empty = value.as_array().is_some_and(Vec::is_empty);
                if !is_nothing && !is_empty {
                    return Err(cannot(&name));
                }
            }
            _ => self.ignored.push(name),
        }
        Ok(())
    }

    fn limit(&mut self, name: &str, value: &Value) -> Result<()> {
        let most = value.as_u64().filter(|most| *most > 0);
        let most = most.ok_or_else(|| must_be(name, "a whole number of at least 1"))?;
        // No model writes more, whatever is asked for.
        self.program.reply.max_tokens = Some(u32::try_from(most).unwrap_or(u32::MAX));
        Ok(())
    }

    fn format(&mut self, value: Value) -> Result<()> {
        const NAME: &str = "response_format";
        let mut format = Nested::of(NAME, value)?;
        self.program.reply.format = match format.text("type")?.as_deref() {
            Some("text") => None,
            Some("json_object") => Some(Format::Json),
            Some("json_schema") => {
                // Flat in the Responses API.
                let mut of = match format.take("json_schema") {
                    Value::Null => std::mem::replace(&mut format, Nested(NAME, Map::new())),
                    of => Nested::of(NAME, of)?,
                };
                let schema = of.object("schema")?;
                let read = Format::Schema {
                    name: of.text("name")?.unwrap_or_else(|| UNNAMED.to_owned()),
                    description: of.text("description")?,
                    schema: schema.ok_or_else(|| must_be(NAME, "with a \"schema\""))?,
                    is_strict: of.flag("strict")?,
                };
                of.leave(&mut self.ignored);
                Some(read)
            }
            _ => {
                return Err(must_be(
                    NAME,
                    "of the type text, json_object or json_schema",
                ));
            }
        };
        format.leave(&mut self.ignored);
        Ok(())
    }

    fn tools(&mut self, value: Value) -> Result<()> {
        const NAME: &str = "tools";
        let Value::Array(list) = value else {
            return Err(must_be(NAME, "an array"));
        };
        if list.len() > MOST_TOOLS {
            return Err(must_be(NAME, &format!("at most {MOST_TOOLS}")));
        }
        for tool in list {
            let mut tool = Nested::of(NAME, tool)?;
            // A service's own tools, such as its search of the web: nobody here runs them.
            let kind = tool.text("type")?;
            if let Some(kind) = kind.filter(|kind| kind != "function") {
                self.ignored.push(format!("{NAME}.{kind}"));
                continue;
            }
            // Flat in the Responses API.
            let mut function = match tool.take("function") {
                Value::Null => tool,
                function => {
                    tool.leave(&mut self.ignored);
                    Nested::of(NAME, function)?
                }
            };
            let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
            let name = function.text("name")?.unwrap_or_default();
            if !(1..=64).contains(&name.len()) || !name.bytes().all(letter) {
                let what = "functions with names of 1 to 64 letters, digits, _, - or .";
                return Err(must_be(NAME, what));
            }
            let parameters = function.object("parameters")?;
            let mut parameters =
                parameters.unwrap_or_else(|| serde_json::json!({ "type": "object" }));
            if !parameters["properties"].is_object() {
                parameters["properties"] = Value::Object(Map::new());
            }
            if function.flag("strict")? {
                self.program.reply.strict.push(name.clone());
            }
            self.program.tools.push(ToolSpec {
                name,
                description: function.text("description")?.unwrap_or_default(),
                parameters: parameters.into(),
            });
            function.leave(&mut self.ignored);
        }
        Ok(())
    }

    fn checked(self) -> Result<OptionsRead> {
        let is_known = |name: &String| self.program.tools.iter().any(|tool| tool.name == *name);
        match &self.program.reply.must_call {
            Some(MustCall::Tool(name)) if !is_known(name) => {
                return Err(must_be("tool_choice", "one of \"tools\""));
            }
            Some(MustCall::Any) if self.program.tools.is_empty() => {
                return Err(must_be(
                    "tool_choice",
                    "\"auto\" where there are no \"tools\"",
                ));
            }
            _ => {}
        }
        Ok(self)
    }
}

fn is_sampling(name: &str) -> bool {
    SAMPLING.iter().any(|(known, _)| *known == name)
}

fn must_be(name: &str, what: &str) -> Error {
    Error::invalid_request(format!("{name:?} must be {what}"))
}

fn cannot(name: &str) -> Error {
    Error::invalid_request(format!(
        "{name:?} cannot be passed on to the model: leave it out"
    ))
}

fn stop(value: Value) -> Result<Vec<String>> {
    match value {
        Value::String(text) => Ok(vec![text]),
        texts => serde_json::from_value(texts)
            .map_err(|_| must_be("stop", "a text, or an array of texts")),
    }
}

/// The members of a parameter, taken one by one.
struct Nested(&'static str, Map<String, Value>);

impl Nested {
    fn of(name: &'static str, value: Value) -> Result<Nested> {
        match value {
            Value::Object(members) => Ok(Nested(name, members)),
            _ => Err(must_be(name, "of objects")),
        }
    }

    fn take(&mut self, key: &str) -> Value {
        self.1.remove(key).unwrap_or_default()
    }

    fn member<T: DeserializeOwned>(&mut self, key: &str, what: &str) -> Result<Option<T>> {
        let read = serde_json::from_value(self.take(key));
        read.map_err(|_| must_be(&self.name_of(key), what))
    }

    fn text(&mut self, key: &str) -> Result<Option<String>> {
        self.member(key, "a text")
    }

    fn flag(&mut self, key: &str) -> Result<bool> {
        Ok(self.member(key, "true or false")?.unwrap_or_default())
    }

    fn object(&mut self, key: &str) -> Result<Option<Value>> {
        let members = self.member(key, "an object")?;
        Ok(members.map(Value::Object))
    }

    /// What was not taken has no effect.
    fn leave(self, ignored: &mut Vec<String>) {
        let left = self.1.iter().filter(|(_, value)| !value.is_null());
        ignored.extend(left.map(|(key, _)| self.name_of(key)));
    }

    fn name_of(&self, key: &str) -> String {
        format!("{}.{key}", self.0)
    }
}

/// The options that are only hints to the household's services, which have no place for them.
pub fn only_hints(config: &Config, client: &ClientOptions) -> Vec<String> {
    let others = config.fallback.iter().map(|choice| &choice.provider);
    let all = others.chain([&config.provider]);
    let apis: Vec<Api> = all
        .filter_map(|name| Preset::of(name))
        .map(|preset| preset.api)
        .collect();
    let mut hints = Vec::new();
    let takes_strict = |api: &Api| matches!(api, Api::OpenAi | Api::Anthropic);
    if !client.strict.is_empty() && !apis.iter().all(takes_strict) {
        hints.push("tools.strict".to_owned());
    }
    let is_described = matches!(
        &client.format,
        Some(Format::Schema {
            description: Some(_),
            ..
        })
    );
    if is_described && apis.iter().any(|api| *api != Api::OpenAi) {
        hints.push("response_format.description".to_owned());
    }
    hints
}

/// The value of the header [`IGNORED`], with each name once.
pub fn ignored_header(names: &[String]) -> String {
    let mut header = String::new();
    let mut seen = BTreeSet::new();
    let is_plain = |name: &str| name.bytes().all(|byte| byte.is_ascii_graphic());
    let mut is_cut = false;
    for name in names.iter().filter(|name| seen.insert(*name)) {
        if !is_plain(name) || header.len() + name.len() > IGNORED_BYTES {
            is_cut = true;
            continue;
        }
        header += name;
        header += ", ";
    }
    if is_cut {
        header += MORE
    } else {
        header.truncate(header.len().saturating_sub(2))
    }
    header
}

/// Refuses tools beside which nothing of a conversation would fit: the model would be shown
/// none of what was said before.
///
/// # Errors
/// `invalid_request` with what to do.
pub fn check_room(service: &Service, config: &Config, tools: &[ToolSpec]) -> Result<()> {
    let taken = tool_tokens(tools);
    let window = service.assistant().servers.first(&config.model).window();
    if taken <= request_tokens(window, config.max_tokens) / 4 * 3 {
        return Ok(());
    }
    Err(Error::invalid_request(format!(
        "the descriptions of \"tools\" take about {taken} tokens, and the model takes {window} \
         in all: offer it fewer, or set context_tokens if it takes more",
    )))
}

#[cfg(test)]
mod tests;
