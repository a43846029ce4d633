//! The public clients of OpenAI and Ollama, and Prometheus's own parser. They
//! are installed by these tests, so they run only when asked for:
//! `make test-peers`. Without Python or a network they say so and are skipped.

use std::process::Command;

use serde_json::{Value, json};

use support::home::Home;
use support::model::{Act, Model};
use support::peers;
use support::recorded::Recorder;
use support::voice::VoiceServer;

/// Runs a script against a home; a failed assertion in it fails the test. `name` is that of the
/// table of what it sends.
fn run(home: &Home, name: &str, script: &str) {
    let Some(programs) = peers::LIBRARIES.installed() else {
        return;
    };
    let recorder = Recorder::before(name, home.address());
    peers::script(
        Command::new(programs.join("python"))
            .arg("-c")
            .arg(script)
            .env("HEARTH", format!("http://{}", recorder.address()))
            .env("TOKEN", &home.tokens.user),
    );
    recorder.check();
}

fn home(model: &Model, voice: Value) -> Home {
    let mut config = model.config();
    config["voice"] = voice;
    config["openai_api"] = json!({ "enabled": true, "ollama_user": "user" });
    config["metrics"] = json!({ "enabled": true });
    Home::start(config)
}

/// Answers with the number of user messages that it was shown.
fn counting() -> Model {
    Model::start(|request, _| {
        let messages = request["messages"].as_array().unwrap();
        let users = messages.iter().filter(|one| one["role"] == "user").count();
        Act::say(&format!("You have said {users} things."))
    })
}

#[test]
#[ignore = "installs a client from PyPI: make test-peers"]
fn openais_own_library_talks_to_the_assistant() {
    let model = counting();
    let voice = VoiceServer::hearing("Is the door shut?");
    let server = json!({ "url": voice.url(), "model": "small" });
    let speech = json!({ "transcription": server, "speech": server });
    let home = home(&model, speech);
    run(
        &home,
        "openai-python",
        r#"
import os, openai
client = openai.OpenAI(base_url=os.environ["HEARTH"] + "/v1", api_key=os.environ["TOKEN"])
names = [model.id for model in client.models.list()]
assert names[:3] == ["hearth", "hearth-plain", "scripted"], names
assert set(names[3:]) == {"whisper-1", "tts-1"}, names
assert client.models.retrieve("hearth").owned_by == "hearth"

messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hello"}]
answer = client.chat.completions.create(model="hearth", messages=messages)
assert answer.choices[0].message.content == "You have said 1 things.", answer
assert answer.usage.total_tokens == 15, answer.usage

messages += [answer.choices[0].message, {"role": "user", "content": "hello again"}]
stream = client.chat.completions.create(
    model="hearth", messages=messages, stream=True, stream_options={"include_usage": True})
pieces, usage = [], None
for chunk in stream:
    usage = chunk.usage or usage
    pieces += [choice.delta.content or "" for choice in chunk.choices]
assert "".join(pieces) == "You have said 2 things.", pieces
assert len(pieces) > 3 and usage.total_tokens == 15, (pieces, usage)

text = client.completions.create(model="hearth-plain", prompt="hello").choices[0].text
assert text == "You have said 1 things.", text
stream = client.completions.create(model="hearth-plain", prompt="hello", stream=True)
assert "".join(chunk.choices[0].text for chunk in stream) == text

heard = client.audio.transcriptions.create(model="whisper-1", file=("a.wav", b"RIFF"))
assert heard.text == "Is the door shut?", heard
said = client.audio.speech.create(model="tts-1", voice="alloy", input="It is.")
assert said.content.startswith(b"RIFF"), said

for key, error in [("wrong", openai.AuthenticationError)]:
    try:
        openai.OpenAI(base_url=client.base_url, api_key=key).models.list()
        raise SystemExit("no error")
    except error as found:
        assert found.code == "invalid_api_key", found
try:
    client.chat.completions.create(model="gpt-5", messages=messages)
    raise SystemExit("no error")
except openai.NotFoundError as found:
    assert found.code == "model_not_found", found
print("openai", openai.__version__, "ok")
"#,
    );
    let mut user = home.websocket(&home.tokens.user);
    let listed = user.ask(json!({ "type": "list_conversations" }));
    assert_eq!(listed["conversations"].as_array().unwrap().len(), 1);
}

#[test]
#[ignore = "installs a client from PyPI: make test-peers"]
fn ollamas_own_library_talks_to_the_assistant() {
    let model = counting();
    let home = home(&model, json!({}));
    run(
        &home,
        "ollama-python",
        r#"
import os, importlib.metadata, ollama
token = {"Authorization": "Bearer " + os.environ["TOKEN"]}
for headers in [token, {}]:
    client = ollama.Client(host=os.environ["HEARTH"], headers=headers)
    names = [model.model for model in client.list().models]
    assert names == ["hearth:latest", "hearth-plain:latest", "scripted:latest"], names
    assert client.show("hearth").modelinfo["general.architecture"] == "hearth"
    assert client.ps().models == []

    tool = {"type": "function", "function": {"name": "HassTurnOn", "description": "x",
            "parameters": {"type": "object", "properties": {}}}}
    messages = [{"role": "system", "content": "You are a voice assistant."},
                {"role": "user", "content": "hello"}]
    answer = client.chat("hearth:latest", messages, tools=[tool], keep_alive="5m",
                         options={"num_ctx": 8192}, think=False)
    assert answer.message.content == "You have said 1 things.", answer
    assert answer.done and answer.eval_count == 5, answer
    messages += [answer.message, {"role": "user", "content": "hello again"}]
    parts = list(client.chat("hearth", messages, stream=True))
    assert "".join(part.message.content for part in parts) == "You have said 2 things.", parts
    assert parts[-1].done and not parts[0].done
    assert client.generate("hearth", "hello").response == "You have said 1 things."
try:
    ollama.Client(host=os.environ["HEARTH"], headers={"Authorization": "Bearer x"}).list()
    raise SystemExit("no error")
except ollama.ResponseError as found:
    assert found.status_code == 401, found
print("ollama", importlib.metadata.version("ollama"), "ok")
"#,
    );
}

#[test]
#[ignore = "installs a client from PyPI: make test-peers"]
fn prometheuss_own_parser_reads_the_metrics() {
    let model = counting();
    let home = home(&model, json!({}));
    home.admin().chat("hello");
    run(
        &home,
        "prometheus",
        r#"
import os, urllib.request, importlib.metadata
from prometheus_client.parser import text_string_to_metric_families as read
text = urllib.request.urlopen(os.environ["HEARTH"] + "/metrics").read().decode()
families = {family.name: family for family in read(text)}
assert families["hearth_turns_ended"].type == "counter", families
assert families["hearth_turn_duration_seconds"].type == "histogram"
print("prometheus-client", importlib.metadata.version("prometheus-client"), len(families), "families ok")
"#,
    );
}
