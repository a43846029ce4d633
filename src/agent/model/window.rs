//! How many tokens a model's window has, in the words of its server. It is asked once,
//! and again after a day, after a failed request, and soon if it could not be asked. When it
//! refuses a request, it may name less.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::endpoint::Endpoint;
use super::failure::Failure;
use super::learned::Learned;
use super::profile::WindowQuestion;
use net::cancel::Cancel;
use store::Snapshot;

/// Longest that all questions may take: a turn waits for them.
const PATIENCE: Duration = Duration::from_secs(1);
/// Most bytes of an answer.
const ANSWER_LIMIT: usize = 1024 * 1024;
/// What a window may be; anything else is no answer.
const CREDIBLE: std::ops::RangeInclusive<u64> = 512..=10_000_000;

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Answer {
    tokens: usize,
    /// Whether it holds until the server is started anew.
    is_lasting: bool,
}

/// Asks one server.
pub struct Asker<'a> {
    /// The server.
    pub endpoint: &'a Endpoint,
    /// What every request needs.
    pub headers: Vec<(&'static str, String)>,
    /// In this order.
    pub questions: &'a [WindowQuestion],
    /// The window of models that need not be loaded with all of theirs.
    pub usual: usize,
}

/// The window of a model at the time `now`, as far as it is known; asks for it if necessary.
pub fn known_window(
    learned: &Learned,
    model: &str,
    now: Instant,
    asker: &Asker<'_>,
) -> Option<usize> {
    let known = learned.window(model);
    if known.until.is_some_and(|until| now < until) {
        return known.tokens;
    }
    let (answer, was_asked) = asker.ask(model);
    if let Some(Answer { tokens, .. }) = answer {
        let subject = &asker.endpoint.subject;
        log::info!("{subject}: the window of {model:?} has {tokens} tokens");
    }
    let tokens = answer.map(|answer| answer.tokens);
    // Where it does not know the questions, it will not by the next turn.
    let is_lasting = answer.is_none_or(|answer| answer.is_lasting);
    learned.learn_window(model, (tokens, is_lasting), was_asked, now)
}

impl Asker<'_> {
    /// The answer, and whether the server has taken every question that was asked.
    fn ask(&self, model: &str) -> (Option<Answer>, bool) {
        let deadline = Instant::now() + PATIENCE;
        let mut was_asked = true;
        for question in self.questions {
            let said = self.put(*question, model, deadline);
            was_asked &= said.is_some();
            let answer = said.and_then(|said| self.read(*question, model, &said));
            if answer.is_some() {
                return (answer, was_asked);
            }
        }
        (None, was_asked)
    }

    /// The JSON of a successful answer, `null` of a refusal; `None` if there was none, or
    /// the server was not ready.
    fn put(&self, question: WindowQuestion, model: &str, deadline: Instant) -> Option<Value> {
        let base_url = &self.endpoint.base_url;
        let root = base_url.strip_suffix("/v1").unwrap_or(base_url);
        let (url, body) = match question {
            WindowQuestion::Props => (format!("{root}/props"), None),
            WindowQuestion::Models => (format!("{base_url}/models"), None),
            WindowQuestion::LmStudio => (format!("{root}/api/v0/models"), None),
            WindowQuestion::Show => {
                let body = json!({ "model": model }).to_string();
                (format!("{base_url}/api/show"), Some(body))
            }
        };
        let (body, cancel) = (body.as_deref().map(str::as_bytes), Cancel::default());
        let mut request = self.endpoint.request("", body, deadline, &cancel);
        request.url = url;
        request.headers.clone_from(&self.headers);
        Snapshot::none_open();
        match self.endpoint.json(&request, ANSWER_LIMIT) {
            Ok(said) => Some(said),
            Err(Failure::NotJson(_)) => Some(Value::Null),
            Err(Failure::Reported(response)) if (400..500).contains(&response.status) => {
                Some(Value::Null)
            }
            Err(_) => None,
        }
    }

    /// What an answer says.
    fn read(&self, question: WindowQuestion, model: &str, said: &Value) -> Option<Answer> {
        match question {
            WindowQuestion::Props => lasting(said.pointer("/default_generation_settings/n_ctx")),
            WindowQuestion::Models => {
                let item = item_of(said, model)?;
                let members = ["/max_model_len", "/meta/n_ctx", "/context_length"];
                lasting(members.iter().find_map(|member| item.pointer(member)))
            }
            WindowQuestion::LmStudio => {
                let item = item_of(said, model)?;
                lasting(item.get("loaded_context_length")).or_else(|| {
                    // It is loaded with the first request, seldom with all of its window.
                    let most = credible(item.get("max_context_length"))?;
                    Some(Answer {
                        tokens: most.min(self.usual),
                        is_lasting: false,
                    })
                })
            }
            WindowQuestion::Show => self.shown(said),
        }
    }

    /// Ollama loads a model with the window that a request names, but not with more
    /// than the model has. Its owner may have chosen one (`PARAMETER num_ctx`).
    fn shown(&self, shown: &Value) -> Option<Answer> {
        let mut info = shown["model_info"].as_object().into_iter().flatten();
        let length = info.find(|(name, _)| name.ends_with(".context_length"));
        let most = credible(length.map(|(_, tokens)| tokens));
        let parameters = shown["parameters"].as_str().unwrap_or_default();
        let chosen = parameters.lines().find_map(|line| {
            let tokens: u64 = line.trim().strip_prefix("num_ctx")?.trim().parse().ok()?;
            CREDIBLE.contains(&tokens).then_some(tokens as usize)
        });
        chosen.or(most)?;
        let wanted = chosen.unwrap_or(self.usual);
        Some(Answer {
            tokens: most.map_or(wanted, |most| most.min(wanted)),
            is_lasting: true,
        })
    }
}

/// The model's item in a list, or the only one: some servers answer to any name.
fn item_of<'v>(list: &'v Value, model: &str) -> Option<&'v Value> {
    let items = list["data"].as_array()?;
    let named = items.iter().find(|item| item["id"] == model);
    named.or_else(|| items.first().filter(|_| items.len() == 1))
}

fn credible(tokens: Option<&Value>) -> Option<usize> {
    let tokens = tokens?.as_u64().filter(|tokens| CREDIBLE.contains(tokens));
    tokens.map(|tokens| tokens as usize)
}

fn lasting(tokens: Option<&Value>) -> Option<Answer> {
    credible(tokens).map(|tokens| Answer {
        tokens,
        is_lasting: true,
    })
}

#[cfg(test)]
mod tests;
