//! How much of a long conversation's input a provider reads from its cache, by the rules
//! that services document. All requests come within the lifetime of the cache.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex};

use base::clock::Clock;
use serde_json::{Value, json};
use store::{NewMemory, Store};

use crate::client::Client;
use crate::home::Home;
use crate::served::{Served, ok};

/// Most keep nothing shorter.
const LEAST_TOKENS: usize = 1_024;
/// Anthropic: how many blocks, that of a mark included, are compared with earlier marks.
const LOOKED_BACK: usize = 20;
/// Tool calls in a round of many.
const MANY_CALLS: usize = 14;

/// Whose rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rules {
    Anthropic,
    OpenAi,
    Gemini,
    DeepSeek,
    /// A Claude there.
    OpenRouter,
}

impl Rules {
    pub const ALL: [Rules; 5] = [
        Rules::Anthropic,
        Rules::OpenAi,
        Rules::Gemini,
        Rules::DeepSeek,
        Rules::OpenRouter,
    ];

    /// The fewest tokens that are kept, and in steps of how many they are read (each
    /// service's documentation of its cache, November 2026; Gemini names no steps, and its
    /// largest models keep nothing shorter).
    fn steps(self) -> (usize, usize) {
        match self {
            Rules::Gemini => (4_096, 1_024),
            Rules::DeepSeek => (64, 64),
            _ => (LEAST_TOKENS, 128),
        }
    }

    fn provider(self) -> &'static str {
        match self {
            Rules::Anthropic => "anthropic",
            Rules::OpenAi => "openai",
            Rules::Gemini => "gemini",
            Rules::DeepSeek => "deepseek",
            Rules::OpenRouter => "openrouter",
        }
    }
}

/// The input of a conversation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Share {
    pub requests: usize,
    /// Tokens of all requests, of four bytes each.
    pub input: usize,
    /// Those that were read from the cache.
    pub cached: usize,
    /// Those that an earlier request to the same model began with: all that a cache could have.
    pub repeated: usize,
    /// Requests with results of tools for which not all of the request before was read.
    pub lost_rounds: usize,
}

impl Share {
    /// The percentage that was read from the cache.
    pub fn percent(self) -> f64 {
        100.0 * self.cached as f64 / self.input.max(1) as f64
    }

    /// The percentage that a cache without blocks, marks and a least length would have read.
    pub fn most_percent(self) -> f64 {
        100.0 * self.repeated as f64 / self.input.max(1) as f64
    }
}

/// The parts of a request in the order in which they are compared, and whether each is
/// marked.
fn blocks(request: &Value) -> Vec<(String, bool)> {
    let mut blocks = Vec::new();
    let mut add = |role: &Value, block: &Value| {
        let mut block = block.clone();
        let mark = block
            .as_object_mut()
            .and_then(|block| block.remove("cache_control"));
        blocks.push((format!("{role}{block}"), mark.is_some()));
    };
    let nobody = Value::Null;
    for tool in request["tools"].as_array().into_iter().flatten() {
        add(&nobody, tool);
    }
    for block in request["system"].as_array().into_iter().flatten() {
        add(&nobody, block);
    }
    for message in request["messages"].as_array().into_iter().flatten() {
        match message["content"].as_array() {
            Some(content) => content
                .iter()
                .for_each(|block| add(&message["role"], block)),
            None => {
                // The same as one part.
                let text = json!({ "type": "text", "text": message["content"] });
                add(&message["role"], &text);
                // Each call becomes a block of its own.
                for call in message["tool_calls"].as_array().into_iter().flatten() {
                    add(&nobody, call);
                }
            }
        }
    }
    // One mark for the whole request stands at its end.
    let is_marked = request.get("cache_control").is_some();
    if let Some(last) = blocks.last_mut().filter(|_| is_marked) {
        last.1 = true;
    }
    blocks
}

/// What a provider keeps of the requests to one model.
#[derive(Default)]
struct Cache {
    /// The beginnings of earlier requests that can be read.
    beginnings: HashSet<u64>,
    /// The tokens of the last request.
    last: usize,
    /// The last requests, the newest first.
    texts: VecDeque<String>,
}

/// So many requests before one, it may go on with: summaries come between.
const EARLIER: usize = 4;

impl Cache {
    /// Adds a request to the `share`.
    fn ask(&mut self, rules: Rules, request: &Value, share: &mut Share) {
        let blocks = blocks(request);
        let (input, cached) = match rules {
            Rules::Anthropic | Rules::OpenRouter => self.by_marks(&blocks),
            _ => self.by_steps(&blocks, rules.steps()),
        };
        let text: String = blocks.iter().map(|(text, _)| text.as_str()).collect();
        let same = |earlier: &String| {
            let both = text.bytes().zip(earlier.bytes());
            both.take_while(|(one, other)| one == other).count() / 4
        };
        let repeated = self.texts.iter().map(same).max().unwrap_or_default();
        share.repeated += repeated;
        self.texts.push_front(text);
        self.texts.truncate(EARLIER);
        let is_round = answers_calls(request) && self.last >= rules.steps().0;
        share.requests += 1;
        share.input += input;
        share.cached += cached;
        share.lost_rounds += usize::from(is_round && cached + rules.steps().1 < self.last);
        self.last = input;
    }

    fn by_marks(&mut self, blocks: &[(String, bool)]) -> (usize, usize) {
        let mut hasher = DefaultHasher::new();
        let mut bytes = 0;
        let ends: Vec<(u64, usize)> = blocks
            .iter()
            .map(|(text, _)| {
                text.hash(&mut hasher);
                bytes += text.len();
                (hasher.finish(), bytes / 4)
            })
            .collect();
        let marked = || (0..blocks.len()).filter(|place| blocks[*place].1);
        assert!(marked().count() <= 4, "no more marks are taken");
        let read = marked()
            .flat_map(|place| (place + 1).saturating_sub(LOOKED_BACK)..=place)
            .filter(|place| self.beginnings.contains(&ends[*place].0))
            .map(|place| ends[place].1)
            .max();
        let kept = marked().filter(|place| ends[*place].1 >= LEAST_TOKENS);
        self.beginnings.extend(kept.map(|place| ends[place].0));
        (bytes / 4, read.unwrap_or(0))
    }

    fn by_steps(
        &mut self,
        blocks: &[(String, bool)],
        (least, size): (usize, usize),
    ) -> (usize, usize) {
        let text: String = blocks.iter().map(|(text, _)| text.as_str()).collect();
        let mut hasher = DefaultHasher::new();
        let (mut read, mut hits) = (0, true);
        for (step, part) in text.as_bytes().chunks(size * 4).enumerate() {
            if part.len() < size * 4 {
                break;
            }
            part.hash(&mut hasher);
            let tokens = (step + 1) * size;
            hits &= !self.beginnings.insert(hasher.finish());
            if hits && tokens >= least {
                read = tokens;
            }
        }
        (text.len() / 4, read)
    }
}

fn last_message(request: &Value) -> String {
    let last = request["messages"].as_array().and_then(|all| all.last());
    last.map(Value::to_string).unwrap_or_default()
}

/// Whether a request ends with results of tools.
fn answers_calls(request: &Value) -> bool {
    let last = last_message(request);
    last.contains("tool_result") || last.contains("\"role\":\"tool\"")
}

/// What the model answers: one tool call, or many, where the message asks for it.
fn answer(rules: Rules, request: &Value) -> Value {
    let last = last_message(request);
    let calls = match () {
        _ if answers_calls(request) => 0,
        // A summary quotes such messages.
        _ if request["tools"].is_null() => 0,
        _ if last.contains("please recall all") => MANY_CALLS,
        _ if last.contains("please recall") => 1,
        _ => 0,
    };
    let arguments = |call| json!({ "query": format!("keys and lamps of box {call}") });
    let text = "That is noted; ask me again whenever you want to know more of it.";
    match rules {
        Rules::Anthropic => {
            let call = |call| {
                json!({
                    "type": "tool_use", "id": format!("toolu_{call}"), "name": "recall",
                    "input": arguments(call),
                })
            };
            let said = (calls != 1).then(|| json!({ "type": "text", "text": text }));
            let content: Vec<Value> = said.into_iter().chain((0..calls).map(call)).collect();
            let reason = if calls > 0 { "tool_use" } else { "end_turn" };
            json!({ "content": content, "stop_reason": reason, "usage": {} })
        }
        _ if calls > 0 => {
            let call = |call| {
                json!({
                    "id": format!("call_{call}"), "type": "function",
                    "function": { "name": "recall", "arguments": arguments(call).to_string() },
                })
            };
            let calls: Vec<Value> = (0..calls).map(call).collect();
            json!({ "choices": [{ "finish_reason": "tool_calls", "message": {
                "role": "assistant", "content": "", "tool_calls": calls,
            }}]})
        }
        _ => json!({ "choices": [{ "finish_reason": "stop", "message": {
            "role": "assistant", "content": text,
        }}]}),
    }
}

/// Plays so many turns of one conversation, with memories that fit some of the messages,
/// rounds of tools, summaries, a restart, and another model for a while.
pub fn play(rules: Rules, turns: usize) -> Share {
    let share = Arc::new(Mutex::new(Share::default()));
    let caches: Arc<Mutex<HashMap<String, Cache>>> = Arc::default();
    let served = Served::answering({
        let share = Arc::clone(&share);
        move |_, body| {
            let request: Value = serde_json::from_slice(body).ok()?;
            let mut caches = caches.lock().unwrap();
            let cache = caches.entry(request["model"].to_string()).or_default();
            cache.ask(rules, &request, &mut share.lock().unwrap());
            Some(
                ok("application/json", &answer(rules, &request).to_string())
                    .into_bytes()
                    .into(),
            )
        }
    });
    let (window, vendor) = match rules {
        Rules::Anthropic => (200_000, ""),
        Rules::OpenRouter => (200_000, "anthropic/claude-"),
        _ => (128_000, ""),
    };
    let model = |name: &str| format!("{vendor}{name}");
    let mut home = Home::start(json!({
        "provider": rules.provider(), "base_url": format!("http://{}/v1", served.address),
        "api_key": "k", "model": model("one"), "permission_mode": "allow", "context_tokens": window,
        "limits": { "commands_per_second": 10_000, "commands_burst": 10_000 },
    }));
    remember(&home, (0..120).map(|number| fact(number, "old")));
    let mut client = home.admin();
    let mut conversation = Value::Null;
    for number in 0..turns {
        match number {
            _ if number == turns / 3 => {
                home.restart();
                client = home.admin();
            }
            _ if number == turns / 2 => set_model(&mut client, &model("two")),
            _ if number == turns / 2 + turns / 50 => set_model(&mut client, &model("one")),
            _ if number % 40 == 39 => remember(&home, [fact(number, "new")]),
            _ => {}
        }
        let thing = THINGS[number * 7 % THINGS.len()];
        let message = match number % 6 {
            0 => format!("Where did I put the {thing} of box {}?", number % 120),
            3 if number % 24 == 3 => format!("Number {number}: please recall all of it."),
            3 => format!("Number {number}: please recall what you know of it."),
            _ => format!("Number {number}: it was a quiet day, and we had soup for dinner."),
        };
        let mut chat = json!({ "type": "chat", "message": message });
        if !conversation.is_null() {
            chat["conversation_id"] = conversation.clone();
        }
        conversation = client.ask(chat)["conversation_id"].clone();
    }
    drop(home);
    let share = share.lock().unwrap();
    *share
}

const THINGS: [&str; 5] = ["key", "lamp", "manual", "receipt", "warranty"];

fn fact(number: usize, age: &str) -> String {
    let thing = THINGS[number % THINGS.len()];
    format!(
        "The {age} {thing} of box {number} lies on shelf {} in the cellar.",
        number % 9
    )
}

/// Writes memories straight into the database of a server that runs.
pub fn remember(home: &Home, facts: impl IntoIterator<Item = String>) {
    let store = Store::open(&home.folder.path().join("hearth.db"), Clock::system()).unwrap();
    for content in facts {
        let new = NewMemory {
            content,
            ..NewMemory::default()
        };
        store.remember(new).unwrap();
    }
    store.close();
}

fn set_model(client: &mut Client, model: &str) {
    client.ask(json!({ "type": "update_config", "config": { "model": model } }));
}
