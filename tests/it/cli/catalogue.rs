//! The catalogue of tools: each entry is added by the program, tried and called against a
//! server that answers in the form that its makers document (tests/data/tools).

use std::collections::HashSet;
use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use base::language::Words;
use hearth::catalogue::Entry;
use support::home::{Home, TemporaryDirectory, make_people, write_config};
use support::http::post;
use support::mcp_http::{Kind, McpServer};
use support::program::{Program, finish, hearth, output_of, printed, run};
use support::served::Served;

const ENTRIES: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/src/hearth/catalogue/entries.json"
);
/// Entries that are MCP servers.
const SERVERS: [&str; 3] = ["home-assistant-mcp", "calendar", "ics"];

fn scripts() -> Vec<(String, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tools");
    let read = |entry: Result<fs::DirEntry, _>| {
        let path = entry.unwrap().path();
        let script: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        (
            path.file_stem().unwrap().to_str().unwrap().to_owned(),
            script,
        )
    };
    fs::read_dir(folder).unwrap().map(read).collect()
}

fn texts(list: &Value) -> Vec<String> {
    let items = list.as_array().unwrap().iter();
    items.map(|one| one.as_str().unwrap().to_owned()).collect()
}

/// Whether a request is the one that a script expects.
fn fits(expected: &Value, head: &str, body: &[u8]) -> bool {
    let has = |(name, value): (&String, &Value)| {
        let line = format!("{name}: {}", value.as_str().unwrap());
        head.lines().any(|one| one.eq_ignore_ascii_case(&line))
    };
    let line = format!("{} HTTP/1.1\r\n", expected["request"].as_str().unwrap());
    let body: Option<Value> = serde_json::from_slice(body).ok();
    head.starts_with(&line)
        && expected["headers"]
            .as_object()
            .into_iter()
            .flatten()
            .all(has)
        && expected.get("body") == body.as_ref()
}

/// A server that answers the requests of a script; what else comes is noted.
fn scripted(script: &Value) -> (Served, Arc<Mutex<Vec<String>>>) {
    let requests = script["requests"].as_array().unwrap().clone();
    let strays: Arc<Mutex<Vec<String>>> = Arc::default();
    let noted = Arc::clone(&strays);
    let served = Served::answering(move |head, body| {
        let found = requests.iter().find(|one| fits(one, head, body));
        let (status, text) = match found {
            Some(one) => {
                let json = || one["answer"].to_string();
                (
                    "200 OK",
                    one["text"].as_str().map_or_else(json, str::to_owned),
                )
            }
            None => {
                let body = String::from_utf8_lossy(body);
                noted.lock().unwrap().push(format!("{head}{body}"));
                ("404 Not Found", String::new())
            }
        };
        let length = text.len();
        let whole = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{text}");
        Some(whole.into_bytes().into())
    });
    (served, strays)
}

/// Runs `hearth tool ...` with this line on its standard input.
fn tool(folder: &Path, words: &[&str], input: &str) -> (bool, String) {
    let mut command = hearth(folder);
    let path = format!("{}:/usr/bin:/bin", folder.join("programs").display());
    command.arg("tool").args(words).env("PATH", path);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // It may end without reading.
    let _ = writeln!(child.stdin.take().unwrap(), "{input}");
    let output = output_of(child);
    (output.status.success(), printed(&output))
}

fn file(folder: &Path) -> Value {
    serde_json::from_slice(&fs::read(folder.join("config.json")).unwrap()).unwrap()
}

#[test]
fn every_tool_is_added_tried_called_and_removed() {
    let folder = TemporaryDirectory::new();
    write_config(folder.path(), json!({"provider": "offline"}));
    make_people(folder.path());
    let _program = Program::serve(folder.path());
    let before = file(folder.path());
    let mut tested: HashSet<String> = SERVERS.map(str::to_owned).into();
    for (name, script) in scripts() {
        let entry = script["entry"].as_str().unwrap_or(&name);
        tested.insert(entry.to_owned());
        let (served, strays) = scripted(&script);
        let server = format!("http://{}", served.address);
        let words: Vec<String> = texts(&script["add"])
            .iter()
            .map(|word| word.replace("SERVER", &server))
            .collect();
        let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
        words.splice(..0, ["add", entry]);
        let input = script["input"].as_str().unwrap_or_default();
        let (added, said) = tool(folder.path(), &words, input);
        assert!(added, "{name}: {said} {:?}", strays.lock().unwrap());
        for part in texts(&script["says"]) {
            assert!(said.contains(&part), "{name}: {part}: {said}");
        }
        assert!(input.is_empty() || !said.contains(input), "{name}: {said}");
        let (_, listed) = tool(folder.path(), &["list"], "");
        for call in script["calls"].as_array().unwrap() {
            let (tool, arguments) = (call[0].as_str().unwrap(), &call[1]);
            assert!(listed.contains(tool), "{name}: {listed}");
            let key = format!("tool_permissions.{tool}");
            run(folder.path(), &["config", "set", &key, "allow"]);
            let line = format!("run {tool} {arguments}");
            let said = printed(&run(folder.path(), &["chat", "--new", &line]));
            let expected = call[2].as_str().unwrap();
            assert!(said.contains(expected), "{name}: {expected}: {said}");
        }
        assert_eq!(*strays.lock().unwrap(), [""; 0], "{name}");
        let alias = words.iter().skip_while(|word| **word != "--as").nth(1);
        let (removed, said) = tool(folder.path(), &["remove", alias.unwrap_or(&entry)], "");
        assert!(removed && said.contains("reloaded it"), "{name}: {said}");
        let mut left = file(folder.path());
        assert_eq!(left["tools"]["custom"], json!([]), "{name}");
        assert_eq!(left["tool_permissions"], json!({}), "{name}");
        for key in ["tools", "tool_permissions"] {
            left.as_object_mut().unwrap().remove(key);
        }
        assert_eq!(left, before, "{name}");
    }
    let all: HashSet<String> = Entry::all().into_iter().map(|entry| entry.name).collect();
    assert_eq!(tested, all, "each entry has a script in tests/data/tools");
}

#[test]
fn mcp_servers_are_started_once_and_their_tools_named() {
    let folder = TemporaryDirectory::new();
    write_config(folder.path(), json!({}));
    let stub = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/mcp_stub.sh");
    let programs = folder.path().join("programs");
    fs::create_dir(&programs).unwrap();
    for name in ["npx", "uvx"] {
        let program = programs.join(name);
        let notes = programs.join("notes");
        let script = format!(
            "#!/bin/sh\nexport STUB_NOTES='{0}'\n(echo \"$@\"; env) > '{0}.started'\nexec sh '{1}'\n",
            notes.display(),
            stub.display()
        );
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    }
    let home = McpServer::start(Kind::Sessions);
    let address = format!("address=http://{}/", home.address);
    for (words, input, says, started) in [
        (
            vec!["home-assistant-mcp", &address, "key=-"],
            "open sesame",
            "mcp_assist_echo",
            &[][..],
        ),
        (
            vec![
                "calendar",
                "address=https://dav.example/",
                "user=ada",
                "key=-",
            ],
            "dav-secret",
            "mcp_calendar_echo",
            &[
                "-y caldav-mcp@0.10.0\n",
                "CALDAV_USERNAME=ada\n",
                "CALDAV_PASSWORD=dav-secret\n",
                "CALDAV_BASE_URL=https://dav.example/\n",
            ],
        ),
        (
            vec!["ics", "key=-", "zone=Europe/Oslo"],
            "https://calendar.example/secret.ics",
            "mcp_events_echo",
            &[
                "--with mcp<2 ics-calendar-mcp@0.1.0\n",
                "ICS_TIMEZONE=Europe/Oslo\n",
                "ICS_CALENDAR_URL=https://calendar.example/secret.ics\n",
            ],
        ),
    ] {
        let (added, said) = tool(folder.path(), &[&["add"], &words[..]].concat(), input);
        assert!(added && said.contains(says), "{words:?}: {said}");
        assert!(!said.contains(input), "{said}");
        // Home Assistant is the household's own.
        let is_outside = words[0] != "home-assistant-mcp";
        let trusts = ["calendar", "events"].map(|name| format!("mcp_servers.{name}.trusted true"));
        let warned = trusts.iter().any(|one| said.contains(one));
        assert_eq!(warned, is_outside, "{said}");
        let notes = fs::read_to_string(programs.join("notes.started")).unwrap_or_default();
        for part in started {
            assert!(notes.contains(part), "{part}: {notes}");
        }
        let shown = printed(&run(folder.path(), &["config", "get", "mcp_servers"]));
        assert!(!shown.contains(input), "{shown}");
    }
    assert!(
        home.requests("initialize")[0]
            .0
            .starts_with("POST /api/mcp ")
    );
    let rights = &file(folder.path())["tool_permissions"];
    assert_eq!(rights["mcp_assist_HassLightSet"], "allow");
    assert_eq!(rights["mcp_assist_HassTurnOn"], "ask");
    for name in ["home-assistant-mcp", "calendar", "ics"] {
        let (removed, said) = tool(folder.path(), &["remove", name], "");
        assert!(removed, "{said}");
    }
    assert_eq!(file(folder.path())["mcp_servers"], json!({}));
    assert_eq!(file(folder.path())["tool_permissions"], json!({}));
}

#[test]
fn what_does_not_work_is_not_written() {
    let folder = TemporaryDirectory::new();
    write_config(folder.path(), json!({}));
    let before = file(folder.path());
    let refusing = Served::answering(|_, _| {
        let text = "HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno";
        Some(text.as_bytes().into())
    });
    let server = format!("address=http://{}", refusing.address);
    let geocoding = format!("geocoding_{server}");
    for (words, says) in [
        (vec!["brave", &server, "key=-"], "Is the key right"),
        (vec!["brave", &server, "key=abc"], "key=- reads it from"),
        (vec!["brave", &server], "key is missing"),
        (vec!["searxng", "address=nas"], "must begin with http://"),
        (vec!["searxng", "adress=http://nas"], "it has address"),
        (vec!["searxng", "nas"], "is not FIELD=VALUE"),
        (vec!["weather", "place=x", &server, &geocoding], "401"),
        (vec!["wether"], "did you mean \"weather\"?"),
    ] {
        let (added, said) = tool(folder.path(), &[&["add"], &words[..]].concat(), "secret");
        assert!(!added && said.contains(says), "{words:?}: {said}");
        assert_eq!(file(folder.path()), before, "{words:?}");
    }
    let page = Served::answering(|_, _| {
        let text = "HTTP/1.1 200 OK\r\nContent-Length: 18\r\n\r\n<html>login</html>";
        Some(text.as_bytes().into())
    });
    let page = format!("address=http://{}", page.address);
    let query = format!("{page}/?x=1");
    let geocoding = format!("geocoding_{page}");
    for (words, says) in [
        (
            vec!["searxng", &page],
            "something else than it reads: <html>login",
        ),
        (vec!["home-assistant", &page, "key=-"], "something else"),
        (vec!["ntfy", "topic=x", &page], "something else"),
        (vec!["rss", &page], "something else"),
        (
            vec!["weather", "place=x", &geocoding],
            "place was not answered with JSON",
        ),
        (vec!["searxng", &query], "must end before its ?"),
        // A feed's address is whole.
        (vec!["rss", &query], "something else"),
    ] {
        let (added, said) = tool(folder.path(), &[&["add"], &words[..]].concat(), "secret");
        assert!(!added && said.contains(says), "{words:?}: {said}");
        assert_eq!(file(folder.path()), before, "{words:?}");
    }
    let words = ["tool", "add", "brave", &server, "key=${A_KEY}", "--no-test"];
    let unset = run(folder.path(), &words[..5]);
    let said = printed(&unset);
    assert!(said.contains("A_KEY is not set here"), "{said}");
    assert!(!unset.status.success() && file(folder.path()) == before);
    // A server that runs without it refuses it.
    for (running, says) in [
        (false, "next start"),
        (true, "variable A_KEY, which is not set"),
    ] {
        let program = running.then(|| Program::serve(folder.path()));
        let mut command = hearth(folder.path());
        let output = finish(command.args(words).env("A_KEY", "k"));
        let said = printed(&output);
        assert!(said.contains(says), "{said}");
        assert_eq!(output.status.success(), !running, "{said}");
        let key = "/tools/custom/0/http/headers/X-Subscription-Token";
        let file = file(folder.path());
        let key = file.pointer(key).and_then(Value::as_str);
        assert_eq!(key, (!running).then_some("${A_KEY}"), "{file}");
        let (listed, said) = tool(folder.path(), &["list"], "");
        assert!(listed && said.contains("web_search") != running, "{said}");
        let (removed, said) = tool(folder.path(), &["remove", "brave"], "");
        assert!(removed != running, "{said}");
        drop(program);
    }
    let (removed, said) = tool(folder.path(), &["remove", "weather"], "");
    assert!(!removed && said.contains("there are none"), "{said}");
    for name in ["weather", "cabin"] {
        let place = "place=x latitude=1 longitude=2 address=http://127.0.0.1:1/{a}";
        let mut words = vec!["add", "weather", "--as", name, "--no-test"];
        words.extend(place.split(' '));
        let (added, said) = tool(folder.path(), &words, "");
        assert!(added, "{said}");
    }
    let text = file(folder.path()).to_string();
    assert!(
        text.contains("http://127.0.0.1:1/%7Ba%7D/v1/forecast"),
        "{text}"
    );
    for name in ["weather", "cabin"] {
        assert!(tool(folder.path(), &["remove", name], "").0);
    }
    let words = ["add", "brave", &server, "key=-", "--no-test"];
    assert!(tool(folder.path(), &words, "secret").0);
    let (added, said) = tool(folder.path(), &["add", "searxng", &server, "--no-test"], "");
    assert!(!added && said.contains("\"web_search\" already"), "{said}");
    assert!(tool(folder.path(), &["remove", "web_search"], "").0);
    assert_eq!(file(folder.path())["tools"]["custom"], json!([]));
}

#[test]
fn a_list_counts_the_tools_with_other_rights() {
    let folder = TemporaryDirectory::new();
    let config = json!({
        "mcp_servers": {"home": {"command": "true"}},
        "tool_permissions": {"mcp_home_open": "allow"},
    });
    write_config(folder.path(), config);
    let (_, listed) = tool(folder.path(), &["list"], "");
    assert!(listed.contains("ask (otherwise for 1 tool)"), "{listed}");
}

#[test]
fn rights_go_with_a_tool_and_those_of_others_stay() {
    let folder = TemporaryDirectory::new();
    let own = json!({
        "tools": ["recall", "home_state", "mcp_home_open"],
        "tool_permissions": {"home_service": "allow", "mcp_home_garage_open": "deny"},
    });
    let mut account = own.clone();
    account["incoming_path"] = json!("/webhook/ci");
    account["outgoing_url"] = json!("http://127.0.0.1:1/");
    let server = json!({"url": "http://127.0.0.1:1/", "disabled": true});
    write_config(
        folder.path(),
        json!({
            "mcp_servers": {"home": server, "home_garage": server, "my.cal": server},
            "tool_permissions": {
                "mcp_home_open": "allow", "mcp_home_garage_open": "deny", "mcp_my_cal_open": "allow",
            },
            "people": {"ben": own, "ann": {"approves": ["home_light", "recall"]}},
            "channels": {"lan": {"type": "tcp"}, "webhook": {"accounts": {"ci": account}}},
        }),
    );
    let add = ["add", "home-assistant", "key=-", "--no-test"];
    let (added, said) = tool(folder.path(), &add, "token");
    assert!(
        added && said.contains("home_service: asks first, except ben"),
        "{said}"
    );
    for name in ["home", "my.cal"] {
        assert!(tool(folder.path(), &["remove", name], "").0);
    }
    let (removed, said) = tool(folder.path(), &["remove", "home-assistant"], "");
    assert!(
        removed && said.contains("rights to it of ben, ann, ci are gone"),
        "{said}"
    );
    let left = file(folder.path());
    let kept = json!({"mcp_home_garage_open": "deny"});
    assert_eq!(left["tool_permissions"], kept);
    for holder in ["/people/ben", "/channels/webhook/accounts/ci"] {
        let holder = left.pointer(holder).unwrap();
        assert_eq!(holder["tool_permissions"], kept, "{holder}");
        assert_eq!(holder["tools"], json!(["recall"]), "{holder}");
    }
    assert_eq!(left["people"]["ann"]["approves"], json!(["recall"]));
    let (added, said) = tool(folder.path(), &add, "token");
    assert!(
        added && said.contains("home_service: asks first\n"),
        "{said}"
    );
}

#[test]
fn accounts_read_the_house_only_where_they_name_it() {
    let folder = TemporaryDirectory::new();
    let account = |path: &str| {
        json!({
            "incoming_path": path, "outgoing_url": "http://127.0.0.1:1/", "audience": "household",
        })
    };
    let mut named = account("/webhook/named");
    named["tools"] = json!(["home_states"]);
    write_config(
        folder.path(),
        json!({"provider": "offline", "channels": {
            "lan": {"type": "tcp"},
            "webhook": {"accounts": {"plain": account("/webhook/plain"), "named": named}},
        }}),
    );
    make_people(folder.path());
    let program = Program::serve(folder.path());
    let found = scripts()
        .into_iter()
        .find(|(name, _)| name == "home-assistant");
    let (served, _) = scripted(&found.unwrap().1);
    let address = format!("address=http://{}", served.address);
    let (added, said) = tool(
        folder.path(),
        &["add", "home-assistant", &address, "key=-"],
        "ha-token",
    );
    assert!(
        added && said.contains("Webhook accounts that may use it: named\n"),
        "{said}"
    );
    for (path, reads) in [("/webhook/named", true), ("/webhook/plain", false)] {
        let body = json!({"message": "run home_states {}"});
        let answer = post(program.address, path, &[("Prefer", "wait=60")], &body);
        let text = answer.body;
        assert_eq!(text.contains("lock.front"), reads, "{path}: {text}");
    }
}

/// Every text of the catalogue is among the words, and every word of it is used.
#[test]
fn the_catalogue_is_listed_in_the_language_of_who_asks() {
    let entries = Entry::all();
    let mut said = HashSet::new();
    for entry in &entries {
        said.insert(format!("catalogue.{}", entry.name));
        let steps = format!("catalogue.{}.steps", entry.name);
        said.extend(entry.steps(Words::ENGLISH).map(|_| steps));
    }
    let listed = fs::read_to_string(ENTRIES).unwrap();
    let questions = listed.split("\"question\": \"").skip(1);
    let questions = questions.map(|rest| rest.split('"').next().unwrap());
    said.extend(questions.map(|name| format!("catalogue.ask.{name}")));
    let words = Words::ENGLISH.keys();
    let words: HashSet<String> = words
        .filter(|key| key.starts_with("catalogue."))
        .map(str::to_owned)
        .collect();
    assert_eq!(said, words);

    let home = Home::offline();
    let mut admin = home.admin();
    admin.ask(json!({"type": "set_language", "language": "de"}));
    let listed = admin.ask(json!({"type": "list_available_tools"}));
    let mut tools = listed["tools"].as_array().unwrap().iter();
    let tavily = tools.find(|one| one["name"] == "tavily").unwrap();
    assert_eq!(tavily["about"], "Websuche mit Tavily, mit Schlüssel");
    let steps = "Den Schlüssel gibt es unter https://app.tavily.com.";
    assert_eq!(tavily["steps"], steps);
    assert_eq!(tavily["fields"][0]["question"], "API-Schlüssel");
}

/// What the page does: it lists, tries, chooses, adds and removes.
#[test]
fn an_admin_adds_a_tool_in_the_page() {
    let home = Home::offline();
    let (_, script) = scripts()
        .into_iter()
        .find(|(name, _)| name == "weather")
        .unwrap();
    let (served, _) = scripted(&script);
    let server = format!("http://{}", served.address);
    let mut admin = home.admin();
    let listed = admin.ask(json!({"type": "list_available_tools"}));
    let weather = &listed["tools"][0];
    assert_eq!(weather["name"], "weather");
    assert_eq!(weather["fields"].as_array().unwrap().len(), 1, "{weather}");
    let mut request = json!({"type": "add_tool", "name": "weather", "test": true, "answers": {
        "place": "Bergen", "address": server, "geocoding_address": server,
    }});
    let tried = admin.ask(request.clone());
    assert_eq!(tried["works"], true, "{tried}");
    assert!(
        tried["message"].as_str().unwrap().contains("4.5 °C"),
        "{tried}"
    );
    let choices = tried["choices"].as_array().unwrap();
    assert_eq!(choices[1]["label"], "Bergen, New York, United States");
    let chosen = choices[0]["answers"].as_object().unwrap().clone();
    request["answers"].as_object_mut().unwrap().extend(chosen);
    request["test"] = json!(false);
    let added = admin.ask(request.clone());
    assert_eq!(added["tool_permissions"]["weather"], "allow", "{added}");
    let reply = admin.chat("run weather {}").to_string();
    assert!(reply.contains("4.5 °C"), "{reply}");
    let removed = admin.ask(json!({"type": "remove_tool", "name": "weather"}));
    assert_eq!(removed["tools"], json!(["weather", "weather_find_place"]));
    let reply = admin.chat("run weather {}").to_string();
    assert!(!reply.contains("4.5 °C"), "{reply}");

    for (answers, alias, says) in [
        (
            json!({"topic": "${HOME}"}),
            "x",
            "the environment is read by",
        ),
        (json!({"topic": ["${HOME}"]}), "x", "topic must be a text"),
        (
            json!({"topic": {"x": "${HOME}"}}),
            "x",
            "topic must be a text",
        ),
        (
            json!({"topic": {"${HOME}": 1}}),
            "x",
            "topic must be a text",
        ),
        (json!({"topic": "x"}), "${HOME}", "cannot be the name"),
        (json!({"topic": "a{message}"}), "x", "must not have braces"),
        (
            json!({"topic": "x", "key": "pa{x}ss"}),
            "x",
            "must not have braces",
        ),
    ] {
        for test in [true, false] {
            let mut request = json!({"type": "add_tool", "name": "ntfy", "test": test});
            request["answers"] = answers.clone();
            request["answers"]["address"] = json!(server);
            request["alias"] = json!(alias);
            admin.send(&request);
            let refused = admin.response()["error"].to_string();
            assert!(refused.contains(says), "{answers}: {refused}");
        }
    }
    let drawn = admin.ask(json!({"type": "draw_address", "url": "http://192.0.2.7:5000/"}));
    assert_eq!(
        drawn["qr"][0].as_str().unwrap().len(),
        drawn["qr"].as_array().unwrap().len()
    );
}
