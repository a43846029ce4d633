//! How many tokens a model's window has, in the words of its server. It is asked once,
//! and again after a day, after a failed request, and soon if it could not be asked. When it
//! refuses a request, it may name less.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::endpoint::Endpoint;
use super::facts::WindowQuestion;
use base::sync::lock;
use net::cancel::Cancel;
use net::http_client::{ClientError, ClientRequest, HttpClient};

/// Longest that all questions may take: a turn waits for them.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long an answer holds.
const LASTING: Duration = Duration::from_secs(24 * 60 * 60);
/// How long it holds that a server could not be asked, and what is about to change.
const BRIEF: Duration = Duration::from_secs(60);
/// Most bytes of an answer.
const ANSWER_LIMIT: usize = 1024 * 1024;
/// What a window may be; anything else is no answer.
const CREDIBLE: std::ops::RangeInclusive<u64> = 512..=10_000_000;
/// Models whose windows are remembered.
const MODELS: usize = 64;

/// The windows of a server's models.
#[derive(Default)]
pub struct Windows {
    known: Mutex<BTreeMap<String, Known>>,
    /// What refusals named, and until when that holds.
    limits: Mutex<BTreeMap<String, (usize, Instant)>>,
}

#[derive(Clone, Copy)]
struct Known {
    /// `None` if the server did not say.
    tokens: Option<usize>,
    /// Whether it took the questions.
    was_asked: bool,
    /// When to ask again.
    until: Instant,
}

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Answer {
    tokens: usize,
    /// Whether it holds until the server is started anew.
    is_lasting: bool,
}

/// Asks one server.
pub struct Asker<'a> {
    /// Asks over this.
    pub http_client: &'a HttpClient,
    /// The server.
    pub endpoint: &'a Endpoint,
    /// What every request needs.
    pub headers: Vec<(&'static str, String)>,
    /// In this order.
    pub questions: &'a [WindowQuestion],
    /// The window of models that need not be loaded with all of theirs.
    pub usual: usize,
}

impl Windows {
    /// The window of a model, as far as it is known.
    pub fn known(&self, model: &str) -> Option<usize> {
        self.lock().get(model)?.tokens
    }

    /// Whether the server has not said yet how large the window of a model is.
    pub fn is_guess(&self, model: &str) -> bool {
        let known = self.lock().get(model).copied();
        known.is_none_or(|known| known.tokens.is_none() && !known.was_asked)
    }

    /// The window of a model at the time `now`; asks for it if necessary.
    pub fn of(&self, model: &str, now: Instant, asker: &Asker<'_>) -> Option<usize> {
        let before = self.lock().get(model).copied();
        if let Some(known) = before
            && now < known.until
        {
            return known.tokens;
        }
        let (answer, was_asked) = asker.ask(model);
        if let Some(Answer { tokens, .. }) = answer {
            let subject = &asker.endpoint.subject;
            log::info!("{subject}: the window of {model:?} has {tokens} tokens");
        }
        let is_other =
            |answer: Answer| before.is_some_and(|known| known.tokens != Some(answer.tokens));
        if answer.is_some_and(is_other) {
            // It was started anew, with another window.
            lock(&self.limits).remove(model);
        }
        let known = Known {
            tokens: answer
                .map(|answer| answer.tokens)
                .or_else(|| before?.tokens),
            was_asked,
            until: match answer {
                Some(Answer {
                    is_lasting: false, ..
                }) => now + BRIEF,
                // It does not know the questions, and will not by the next turn.
                _ if was_asked => now + LASTING,
                _ => now + BRIEF,
            },
        };
        let mut windows = self.lock();
        if windows.len() >= MODELS {
            windows.clear();
        }
        windows.insert(model.to_owned(), known);
        known.tokens
    }

    /// Has the next turn ask again: a request failed, perhaps because the server was
    /// started anew with another window.
    pub fn doubt(&self, model: &str, now: Instant) {
        if let Some(known) = self.lock().get_mut(model) {
            known.until = match known.tokens {
                Some(_) => now,
                None => known.until.min(now + BRIEF),
            };
        }
    }

    /// The window that the server named when it refused a request, if it did that within
    /// the last day.
    pub fn limit(&self, model: &str, now: Instant) -> Option<usize> {
        let limits = lock(&self.limits);
        let (tokens, until) = limits.get(model)?;
        (now < *until).then_some(*tokens)
    }

    /// Notes such a window.
    pub fn note_limit(&self, model: &str, tokens: usize, now: Instant) {
        let mut limits = lock(&self.limits);
        if limits.len() >= MODELS {
            limits.clear();
        }
        limits.insert(model.to_owned(), (tokens, now + LASTING));
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Known>> {
        lock(&self.known)
    }
}

impl Asker<'_> {
    /// The answer, and whether the server has taken every question that was asked.
    fn ask(&self, model: &str) -> (Option<Answer>, bool) {
        let was_asked = Cell::new(true);
        let deadline = Instant::now() + PATIENCE;
        let exchange = |url: &str, body: Option<&str>| {
            let said = self.exchange(url, body, deadline);
            was_asked.set(was_asked.get() && said.is_some());
            said
        };
        let mut questions = self.questions.iter();
        let answer = questions.find_map(|question| self.put(*question, model, &exchange));
        (answer, was_asked.get())
    }

    /// Puts one question.
    fn put(
        &self,
        question: WindowQuestion,
        model: &str,
        exchange: &dyn Fn(&str, Option<&str>) -> Option<Value>,
    ) -> Option<Answer> {
        let base_url = &self.endpoint.base_url;
        let root = base_url.strip_suffix("/v1").unwrap_or(base_url);
        match question {
            WindowQuestion::Props => {
                let props = exchange(&format!("{root}/props"), None)?;
                lasting(props.pointer("/default_generation_settings/n_ctx"))
            }
            WindowQuestion::Models => {
                let list = exchange(&format!("{base_url}/models"), None)?;
                let item = item_of(&list, model)?;
                let tokens = item.get("max_model_len");
                lasting(tokens.or_else(|| item.pointer("/meta/n_ctx")))
            }
            WindowQuestion::LmStudio => {
                let list = exchange(&format!("{root}/api/v0/models"), None)?;
                let item = item_of(&list, model)?;
                lasting(item.get("loaded_context_length")).or_else(|| {
                    // It is loaded with the first request, seldom with all of its window.
                    let most = credible(item.get("max_context_length"))?;
                    Some(Answer {
                        tokens: most.min(self.usual),
                        is_lasting: false,
                    })
                })
            }
            WindowQuestion::Show => {
                let body = json!({ "model": model }).to_string();
                self.shown(&exchange(&format!("{base_url}/api/show"), Some(&body))?)
            }
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

    /// The JSON of a successful answer, `null` of a refusal; `None` if there was none, or
    /// the server was not ready.
    fn exchange(&self, url: &str, body: Option<&str>, deadline: Instant) -> Option<Value> {
        let mut headers = vec![
            ("accept", "application/json"),
            ("content-type", "application/json"),
        ];
        headers.extend(self.headers.iter().map(|(name, value)| (*name, &**value)));
        let request = ClientRequest {
            method: if body.is_some() { "POST" } else { "GET" },
            url,
            headers: &headers,
            body: body.map(str::as_bytes),
            deadline,
            cancel: &Cancel::default(),
        };
        let answer = self.http_client.exchange(&request, |answer| {
            Ok::<_, ClientError>((answer.status(), answer.read_all(ANSWER_LIMIT)?))
        });
        match answer.ok()? {
            (200..300, body) => Some(serde_json::from_slice(&body).unwrap_or_default()),
            (400..500, _) => Some(Value::Null),
            _ => None,
        }
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
