//! What a request asks for beside the messages: passed on to the model, or refused. What has
//! no effect here is named in a header of the response.

use serde_json::{Map, Value};

use crate::service::Service;
use crate::service::programs::ProgramWishes;
use agent::context::estimate::tool_tokens;
use agent::context::window::request_tokens;
use agent::model::ToolSpec;
use agent::wishes::{Format, MustCall, Wishes};
use base::error::{Error, Result};
use config::Config;

/// The header of responses that names what had no effect.
pub const IGNORED: &str = "X-Hearth-Ignored";
/// Most tools of a request.
const MOST_TOOLS: usize = 128;
/// Most names in the header.
const MOST_IGNORED: usize = 16;
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
const REFUSED: [&str; 12] = [
    "logprobs",
    "top_logprobs",
    "audio",
    "prediction",
    "web_search_options",
    "functions",
    "function_call",
    "suffix",
    "template",
    "raw",
    "context",
    "background",
];

/// What was read of a request.
#[derive(Debug, Default, PartialEq)]
pub struct Read {
    /// What is passed on; none if there is nothing.
    pub program: Option<ProgramWishes>,
    /// Names of what has no effect.
    pub ignored: Vec<String>,
}

/// Reads the members of a request of OpenAI's interface, without those that have been
/// read.
///
/// # Errors
/// `invalid_request` naming what cannot be passed on.
pub fn of_openai(members: Map<String, Value>) -> Result<Read> {
    let mut reader = Reader::default();
    for (name, value) in members {
        if value.is_null() {
            continue;
        }
        match name.as_str() {
            "max_tokens" | "max_completion_tokens" | "max_output_tokens" => {
                reader.limit(&name, &value)?
            }
            "response_format" => reader.wants.wishes.format = response_format(&value)?,
            _ => reader.take(name, value)?,
        }
    }
    reader.finish()
}

/// The same for Ollama's interface.
///
/// # Errors
/// As [`of_openai`].
pub fn of_ollama(members: Map<String, Value>) -> Result<Read> {
    let mut reader = Reader::default();
    for (name, value) in members {
        match (name.as_str(), value) {
            (_, Value::Null) => {}
            ("options", Value::Object(options)) => {
                for (name, value) in options {
                    match name.as_str() {
                        "num_predict" if value.as_i64().is_some_and(|most| most < 1) => {}
                        "num_predict" => reader.limit(&name, &value)?,
                        "stop" | "temperature" => reader.take(name, value)?,
                        _ if is_sampling(&name) => reader.take(name, value)?,
                        _ => reader.ignored.push(name),
                    }
                }
            }
            ("format", Value::String(text)) if text.is_empty() => {}
            ("format", Value::String(text)) if text == "json" => {
                reader.wants.wishes.format = Some(Format::Json);
            }
            ("format", schema @ Value::Object(_)) => {
                let name = "reply".to_owned();
                reader.wants.wishes.format = Some(Format::Schema { name, schema });
            }
            ("format", _) => return Err(must_be("format", "\"json\" or a JSON Schema")),
            (_, value) => reader.take(name, value)?,
        }
    }
    reader.finish()
}

#[derive(Default)]
struct Reader {
    wants: ProgramWishes,
    ignored: Vec<String>,
}

impl Reader {
    fn take(&mut self, name: String, value: Value) -> Result<()> {
        let wishes = &mut self.wants.wishes;
        match name.as_str() {
            "tools" => self.wants.tools = tools(&value)?,
            "tool_choice" => {
                let choice = value.as_str().or_else(|| value["type"].as_str());
                match choice {
                    Some("none") => wishes.may_not_call = true,
                    Some("auto") => {}
                    Some("required" | "any") => wishes.must_call = Some(MustCall::Any),
                    Some("function") => {
                        let tool = value["function"]["name"]
                            .as_str()
                            .or(value["name"].as_str());
                        let tool =
                            tool.ok_or_else(|| must_be("tool_choice", "a function's name"))?;
                        wishes.must_call = Some(MustCall::Tool(tool.to_owned()));
                    }
                    _ => return Err(must_be("tool_choice", "none, auto, required or a function")),
                }
            }
            "stop" => wishes.stop = stop(&value)?,
            "temperature" => {
                let temperature = value.as_f64().filter(|one| (0.0..=2.0).contains(one));
                wishes.temperature = Some(temperature.ok_or_else(|| must_be(&name, "0 to 2"))?);
            }
            "modalities" if value == serde_json::json!(["text"]) => {}
            "modalities" => return Err(cannot(&name)),
            _ if is_sampling(&name) => {
                let neutral = SAMPLING.iter().find(|(known, _)| *known == name);
                let neutral = neutral.and_then(|(_, neutral)| *neutral);
                if neutral.is_none() || value.as_f64() != neutral {
                    wishes.sampling.insert(name, value);
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
        let most = value.as_u64().and_then(|most| u32::try_from(most).ok());
        let most = most.filter(|most| *most > 0);
        self.wants.wishes.max_tokens =
            Some(most.ok_or_else(|| must_be(name, "a positive number"))?);
        Ok(())
    }

    fn finish(mut self) -> Result<Read> {
        let is_known = |name: &String| self.wants.tools.iter().any(|tool| tool.name == *name);
        match &self.wants.wishes.must_call {
            Some(MustCall::Tool(name)) if !is_known(name) => {
                return Err(must_be("tool_choice", "one of \"tools\""));
            }
            Some(MustCall::Any) if self.wants.tools.is_empty() => {
                return Err(must_be(
                    "tool_choice",
                    "\"auto\" where there are no \"tools\"",
                ));
            }
            _ => {}
        }
        let is_plain =
            |name: &String| name.len() <= 64 && name.bytes().all(|byte| byte.is_ascii_graphic());
        self.ignored.retain(is_plain);
        self.ignored.truncate(MOST_IGNORED);
        let is_empty = self.wants.tools.is_empty() && self.wants.wishes == Wishes::default();
        Ok(Read {
            program: (!is_empty).then_some(self.wants),
            ignored: self.ignored,
        })
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

fn stop(value: &Value) -> Result<Vec<String>> {
    let error = || must_be("stop", "a text, or an array of texts");
    match value {
        Value::String(text) => Ok(vec![text.clone()]),
        Value::Array(texts) => texts
            .iter()
            .map(|text| text.as_str().map(str::to_owned).ok_or_else(error))
            .collect(),
        _ => Err(error()),
    }
}

fn response_format(value: &Value) -> Result<Option<Format>> {
    match value["type"].as_str() {
        Some("text") => Ok(None),
        Some("json_object") => Ok(Some(Format::Json)),
        Some("json_schema") => {
            // Flat in the Responses API.
            let of = value.get("json_schema").unwrap_or(value);
            Ok(Some(Format::Schema {
                name: of["name"].as_str().unwrap_or("reply").to_owned(),
                schema: of["schema"].clone(),
            }))
        }
        _ => Err(must_be(
            "response_format",
            "of the type text, json_object or json_schema",
        )),
    }
}

fn tools(value: &Value) -> Result<Vec<ToolSpec>> {
    let list = value
        .as_array()
        .ok_or_else(|| must_be("tools", "an array"))?;
    if list.len() > MOST_TOOLS {
        return Err(must_be("tools", &format!("at most {MOST_TOOLS}")));
    }
    list.iter()
        .map(|tool| {
            if tool["type"].as_str().is_some_and(|kind| kind != "function") {
                return Err(must_be("tools", "of the type function"));
            }
            // Flat in the Responses API.
            let function = tool.get("function").unwrap_or(tool);
            let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
            let name = function["name"].as_str().unwrap_or_default();
            if !(1..=64).contains(&name.len()) || !name.bytes().all(letter) {
                let what = "functions with names of 1 to 64 letters, digits, _, - or .";
                return Err(must_be("tools", what));
            }
            let mut parameters = function["parameters"].clone();
            if !parameters.is_object() {
                parameters = serde_json::json!({ "type": "object" });
            }
            if !parameters["properties"].is_object() {
                parameters["properties"] = Value::Object(Map::new());
            }
            Ok(ToolSpec {
                name: name.to_owned(),
                description: function["description"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned(),
                parameters: parameters.into(),
            })
        })
        .collect()
}

/// Refuses tools beside which nothing of a conversation would fit: the model would be shown
/// none of what was said before.
///
/// # Errors
/// `invalid_request` with what to do.
pub fn check_room(service: &Service, config: &Config, tools: &[ToolSpec]) -> Result<()> {
    let taken = tool_tokens(tools);
    let window = service.assistant().provider.window(&config.model);
    if taken <= request_tokens(window, config.max_tokens) / 4 * 3 {
        return Ok(());
    }
    Err(Error::invalid_request(format!(
        "the descriptions of \"tools\" take about {taken} tokens, and the model takes {window} \
         in all: offer it fewer, or set context_tokens if it takes more",
    )))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn openai(value: Value) -> Result<Read> {
        of_openai(value.as_object().unwrap().clone())
    }

    #[test]
    fn what_a_program_wants_is_passed_on() {
        let tool =
            json!({ "type": "function", "function": { "name": "light", "description": "x" } });
        let read = openai(json!({
            "tools": [tool], "tool_choice": "required", "stop": "END", "max_tokens": 5,
            "temperature": 0.5, "top_p": 1, "seed": 7, "logprobs": false, "user": "ada",
            "response_format": { "type": "json_schema",
                "json_schema": { "name": "a", "schema": { "type": "object" } } },
        }));
        let Read { program, ignored } = read.unwrap();
        let ProgramWishes { wishes, tools } = program.unwrap();
        assert_eq!(tools[0].name, "light");
        assert_eq!(
            *tools[0].parameters,
            json!({ "type": "object", "properties": {} })
        );
        let schema = json!({ "type": "object" });
        let name = "a".to_owned();
        assert_eq!(
            wishes,
            Wishes {
                stop: vec!["END".to_owned()],
                format: Some(Format::Schema { name, schema }),
                must_call: Some(MustCall::Any),
                may_not_call: false,
                max_tokens: Some(5),
                temperature: Some(0.5),
                sampling: json!({ "seed": 7 }).as_object().unwrap().clone(),
            }
        );
        assert_eq!(ignored, ["user"]);
        assert_eq!(
            openai(json!({ "top_p": 1.0, "n": null })).unwrap(),
            Read::default()
        );
        let none = json!({ "tools": [{ "function": { "name": "a" } }], "tool_choice": "none" });
        let ProgramWishes { wishes, tools } = openai(none).unwrap().program.unwrap();
        assert!(wishes.may_not_call && tools.len() == 1);

        let options = json!({ "format": "json", "options":
            { "stop": ["a", "b"], "num_predict": 9, "num_ctx": 8192, "top_k": 4 }, "think": true });
        let Read { program, ignored } = of_ollama(options.as_object().unwrap().clone()).unwrap();
        let wishes = program.unwrap().wishes;
        assert_eq!(wishes.stop, ["a", "b"]);
        assert_eq!(
            (wishes.max_tokens, wishes.format),
            (Some(9), Some(Format::Json))
        );
        assert_eq!(ignored, ["num_ctx", "think"]);
    }

    #[test]
    fn what_cannot_be_passed_on_is_refused() {
        for (value, says) in [
            (
                json!({ "logprobs": true }),
                "\"logprobs\" cannot be passed on",
            ),
            (json!({ "functions": [{}] }), "\"functions\" cannot"),
            (json!({ "modalities": ["text", "audio"] }), "\"modalities\""),
            (
                json!({ "tools": [{ "type": "web_search" }] }),
                "of the type function",
            ),
            (
                json!({ "tools": [{ "function": { "name": "a b" } }] }),
                "with names",
            ),
            (json!({ "tool_choice": "required" }), "\"tool_choice\""),
            (json!({ "stop": 7 }), "\"stop\""),
            (json!({ "max_tokens": 0 }), "\"max_tokens\""),
            (json!({ "temperature": 9 }), "\"temperature\""),
            (
                json!({ "response_format": { "type": "grammar" } }),
                "\"response_format\"",
            ),
        ] {
            let error = openai(value.clone()).unwrap_err();
            assert!(error.message().contains(says), "{value}: {error}");
        }
    }
}
