//! The libraries that programs are made with, against the model interfaces. They are installed
//! by these tests, so they run only when asked for: `make test-peers`.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use support::home::{Home, TemporaryDirectory};
use support::model::{Act, Model};
use support::peers::{self, Node, Python};
use support::recorded::Recorder;

/// Counts what was said; turns on the lights if it may; sees pictures, and thinks where it is to;
/// gives a cat where JSON is wanted, and the same vector for each text.
pub fn model() -> Model {
    Model::start(|request, _| {
        let Some(messages) = request["messages"].as_array() else {
            let texts = request["input"].as_array().map_or(1, Vec::len);
            let item = |index| json!({ "index": index, "embedding": [0.5, -0.25] });
            let data: Vec<Value> = (0..texts).map(item).collect();
            return Act::json(&json!({ "object": "list", "model": "embed", "data": data,
                "usage": { "prompt_tokens": 3, "total_tokens": 3 } }));
        };
        let last = messages.last().unwrap();
        let tools = request["tools"].as_array().map_or(&[][..], Vec::as_slice);
        let has_light = tools
            .iter()
            .any(|tool| tool["function"]["name"] == "turn_on");
        let said = last["content"].as_str().unwrap_or_default();
        if last["role"] == "tool" {
            Act::say("It is on.")
        } else if last["content"].to_string().contains("image_url") {
            Act::say("A picture.")
        } else if said.contains("think") {
            Act::say("<think>It is wet.</think>Take a coat.")
        } else if said.contains("lights") && has_light {
            let light = |name| ("turn_on".to_owned(), json!({ "name": name }));
            Act::Call(vec![light("kitchen"), light("hall")])
        } else if said.contains("light") && has_light {
            Act::call("turn_on", json!({ "name": "kitchen" }))
        } else if request["response_format"].is_object() {
            Act::say(r#"{"name": "Milo", "age": 3}"#)
        } else if tools.iter().any(|tool| tool["function"]["name"] == "Cat") {
            Act::call("Cat", json!({ "name": "Milo", "age": 3 }))
        } else {
            let users = messages.iter().filter(|one| one["role"] == "user").count();
            Act::say(&format!("You have said {users} things."))
        }
    })
}

pub fn home(model: &Model) -> Home {
    Home::start(model.config_with(json!({ "openai_api": { "enabled": true } })))
}

/// Runs a script of tests/data/peers against a home.
fn run(program: &Path, folder: &Path, script: &str) {
    let model = model();
    let home = home(&model);
    let name = script
        .replace("_peer.py", "-python")
        .replace(".mjs", "-javascript");
    let recorder = Recorder::before(&name, home.address());
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/peers");
    peers::script(
        Command::new(program)
            .arg(scripts.join(script))
            .current_dir(folder)
            // It would be asked for on the internet.
            .env("LITELLM_LOCAL_MODEL_COST_MAP", "True")
            .env("HEARTH", format!("http://{}", recorder.address()))
            .env("TOKEN", &home.tokens.user),
    );
    recorder.check();
}

fn run_python(python: &Python, script: &str) {
    if let Some(programs) = python.installed() {
        run(&programs.join("python"), &programs, script);
    }
}

fn run_node(node: &Node, script: &str) {
    if let Some(folder) = node.installed() {
        run("node".as_ref(), &folder, script);
    }
}

#[test]
#[ignore = "installs langchain from PyPI: make test-peers"]
fn langchain_talks_to_the_assistant() {
    run_python(&peers::LIBRARIES, "langchain_peer.py");
}

#[test]
#[ignore = "installs anthropic from PyPI: make test-peers"]
fn anthropics_library_talks_to_the_assistant() {
    run_python(&peers::SERVICES, "anthropic_peer.py");
}

#[test]
#[ignore = "installs litellm from PyPI: make test-peers"]
fn litellm_talks_to_the_assistant() {
    run_python(&peers::LITELLM, "litellm_peer.py");
}

#[test]
#[ignore = "installs openai from npm: make test-peers"]
fn openais_library_for_javascript_talks_to_the_assistant() {
    run_node(&peers::NODE_LIBRARIES, "openai.mjs");
}

#[test]
#[ignore = "installs ai from npm: make test-peers"]
fn vercels_library_talks_to_the_assistant() {
    run_node(&peers::NODE_LIBRARIES, "vercel.mjs");
}

#[test]
#[ignore = "installs the Anthropic SDK from npm: make test-peers"]
fn anthropics_library_for_javascript_talks_to_the_assistant() {
    run_node(&peers::NODE_LIBRARIES, "anthropic.mjs");
}

#[test]
#[ignore = "installs llama-index and strands-agents from PyPI: make test-peers"]
fn llama_index_and_strands_talk_to_the_assistant() {
    run_python(&peers::FRAMEWORKS, "frameworks_peer.py");
}

#[test]
#[ignore = "installs ollama from npm: make test-peers"]
fn ollamas_library_for_javascript_talks_to_the_assistant() {
    run_node(&peers::NODE_LIBRARIES, "ollama.mjs");
}

#[test]
#[ignore = "installs Claude Code from npm: make test-peers"]
fn claude_code_reads_a_file_for_the_model() {
    let Some(folder) = peers::CLAUDE_CODE.installed() else {
        return;
    };
    let work = TemporaryDirectory::new();
    std::fs::write(work.path().join("note.txt"), "The cat is called Milo.").unwrap();
    let file = work.path().join("note.txt").display().to_string();
    let model = Model::start(move |request, _| {
        let messages = request["messages"].as_array().unwrap();
        match messages.iter().any(|one| one["role"] == "tool") {
            false => Act::call("Read", json!({ "file_path": file })),
            true => Act::say("I have read it."),
        }
    });
    let home = home(&model);
    let recorder = Recorder::before("claude-code", home.address());
    let printed = peers::script(
        Command::new(folder.join("node_modules/.bin/claude"))
            .args(["--print", "Read note.txt", "--model", "hearth-plain"])
            .current_dir(work.path())
            .env("HOME", work.path())
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .env(
                "ANTHROPIC_BASE_URL",
                format!("http://{}", recorder.address()),
            )
            .env("ANTHROPIC_AUTH_TOKEN", &home.tokens.user)
            .env("ANTHROPIC_DEFAULT_HAIKU_MODEL", "hearth-plain"),
    );
    assert!(printed.contains("I have read it."), "{printed}");
    let asked = model.requests().pop().unwrap()["messages"].to_string();
    assert!(asked.contains("The cat is called Milo."), "{asked}");
    recorder.check();
}

#[test]
#[ignore = "installs Codex CLI from npm: make test-peers"]
fn codex_gets_its_answer() {
    let Some(folder) = peers::CODEX.installed() else {
        return;
    };
    let work = TemporaryDirectory::new();
    let model = Model::saying("All is quiet.");
    let home = home(&model);
    let recorder = Recorder::before("codex", home.address());
    let provider = format!(
        "model_providers.hearth={{name=\"hearth\",base_url=\"http://{}/v1\",env_key=\"TOKEN\",\
         wire_api=\"responses\"}}",
        recorder.address()
    );
    let printed = peers::script(
        Command::new(folder.join("node_modules/.bin/codex"))
            .args(["exec", "--skip-git-repo-check", "--model", "hearth-plain"])
            .args([
                "--config",
                "model_provider=\"hearth\"",
                "--config",
                &provider,
            ])
            .arg("Is all quiet?")
            .current_dir(work.path())
            .env("HOME", work.path())
            .env("CODEX_HOME", work.path())
            .env("TOKEN", &home.tokens.user),
    );
    assert!(printed.contains("All is quiet."), "{printed}");
    let asked = model.requests().pop().unwrap();
    assert!(
        asked["messages"].to_string().contains("Is all quiet?"),
        "{asked}"
    );
    assert!(
        asked["tools"].is_array(),
        "its own tools are offered: {asked}"
    );
    recorder.check();
}

/// Makes a reminder, and fails as its message says: before the tool or after it, with a status.
fn failing_model() -> Model {
    Model::start(|request, _| {
        let messages = request["messages"].as_array().unwrap();
        let of = |role: &'static str| messages.iter().filter(move |one| one["role"] == role);
        let asked = of("user").next_back().unwrap()["content"].as_str().unwrap();
        let mut words = asked.rsplit(' ');
        let status = words.next().unwrap().parse().unwrap();
        let step: usize = words.next().unwrap().parse().unwrap();
        match of("tool").count() == step {
            // The library asks again, and Hearth does not.
            true => {
                let headers = "Retry-After: 1\r\nx-should-retry: false\r\n";
                Act::error(status, headers, "no such model")
            }
            false => Act::call(
                "schedule",
                json!({ "action": "create", "prompt": "water plants", "at": "+1h" }),
            ),
        }
    })
}

/// What a library that repeats requests leaves: of each question one conversation with one
/// message, and as many reminders as tools ran.
fn run_repeating(program: &Path, folder: &Path, script: &str, libraries: usize) {
    const STATUSES: [&str; 5] = ["400", "401", "404", "429", "503"];
    let model = failing_model();
    let home = home(&model);
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/peers");
    peers::script(
        Command::new(program)
            .arg(scripts.join(script))
            .current_dir(folder)
            .env("LITELLM_LOCAL_MODEL_COST_MAP", "True")
            .env("STATUSES", STATUSES.join(" "))
            .env("HEARTH", format!("http://{}", home.address()))
            .env("TOKEN", &home.tokens.user),
    );
    let mut user = home.websocket(&home.tokens.user);
    let asked = libraries * STATUSES.len() * 2 * 2;
    let listed = user.ask(json!({ "type": "list_conversations", "limit": 500 }));
    let listed = listed["conversations"].as_array().unwrap();
    assert_eq!(listed.len(), asked, "{listed:#?}");
    for one in listed {
        assert_eq!(one["message_count"], 1, "{one}");
    }
    let schedules = user.ask(json!({ "type": "list_schedules" }));
    let schedules = schedules["schedules"].as_array().unwrap();
    assert_eq!(schedules.len(), asked / 2, "{schedules:#?}");
}

#[test]
#[ignore = "installs openai, litellm and llama-index from PyPI: make test-peers"]
fn python_libraries_that_repeat_a_request_cause_an_effect_once() {
    if let Some(programs) = peers::REPEATING.installed() {
        run_repeating(&programs.join("python"), &programs, "once_peer.py", 3);
    }
}

#[test]
#[ignore = "installs ai and openai from npm: make test-peers"]
fn javascript_libraries_that_repeat_a_request_cause_an_effect_once() {
    if let Some(folder) = peers::NODE_LIBRARIES.installed() {
        run_repeating("node".as_ref(), &folder, "once.mjs", 3);
    }
}
