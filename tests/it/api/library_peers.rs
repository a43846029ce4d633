//! The libraries that programs are made with, against the model interfaces. They are installed
//! by these tests, so they run only when asked for: `make test-peers`.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use support::home::Home;
use support::model::{Act, Model};
use support::peers::{self, Node, Python};

/// Counts what was said; turns on the light if it may; gives a cat where JSON is wanted.
pub fn model() -> Model {
    Model::start(|request, _| {
        let messages = request["messages"].as_array().unwrap();
        let last = messages.last().unwrap();
        let tools = request["tools"].as_array().map_or(&[][..], Vec::as_slice);
        let has_light = tools
            .iter()
            .any(|tool| tool["function"]["name"] == "turn_on");
        let said = last["content"].as_str().unwrap_or_default();
        if last["role"] == "tool" {
            Act::say("It is on.")
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
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/peers");
    peers::script(
        Command::new(program)
            .arg(scripts.join(script))
            .current_dir(folder)
            // It would be asked for on the internet.
            .env("LITELLM_LOCAL_MODEL_COST_MAP", "True")
            .env("HEARTH", format!("http://{}", home.address()))
            .env("TOKEN", &home.tokens.user),
    );
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
