//! `hearth doctor` on whole and on broken data directories.

use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;

use rustix::process::geteuid;
use serde_json::{Value, json};

use agent::tools::pdf_obstacle;
use net::process::has_landlock;
use support::home::{TemporaryDirectory, make_people, write_config};
use support::http::post;
use support::mcp_http::shell_server;
use support::model::{Act, Model};
use support::program::{Program, finish, hearth, printed, run};

fn prepare(config: Value) -> TemporaryDirectory {
    let folder = TemporaryDirectory::new();
    write_config(folder.path(), config);
    make_people(folder.path());
    fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).unwrap();
    folder
}

/// The exit code, and level and text of each line.
fn doctor(folder: &Path) -> (Option<i32>, Vec<(String, String, String)>) {
    doctor_in(folder, &[])
}

/// The same with these environment variables.
fn doctor_in(
    folder: &Path,
    environment: &[(&str, &str)],
) -> (Option<i32>, Vec<(String, String, String)>) {
    let mut command = hearth(folder);
    command.args(["doctor", "--json"]);
    let output = finish(command.envs(environment.iter().copied()));
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = |check: &Value, key: &str| check[key].as_str().unwrap().to_owned();
    let checks = shown["checks"].as_array().unwrap().iter();
    let lines = checks
        .map(|check| {
            if check["level"] != "ok" && check["check"] != "configuration" {
                assert!(!check["advice"].as_array().unwrap().is_empty(), "{check}");
            }
            (
                text(check, "check"),
                text(check, "level"),
                text(check, "text"),
            )
        })
        .collect();
    (output.status.code(), lines)
}

#[test]
fn everything_is_looked_at_once() {
    let folder = prepare(json!({}));
    let _program = Program::serve(folder.path());
    let (code, lines) = doctor(folder.path());
    assert_eq!(code, Some(0), "{lines:?}");
    let checks: Vec<&str> = lines.iter().map(|line| line.0.as_str()).collect();
    assert_eq!(
        checks,
        [
            "configuration",
            "exposure",
            "household",
            // Reminders to oneself ask.
            "household",
            // A guest whom no conversation names.
            "household",
            "provider",
            "backup",
            "sandbox",
            // Whether PDFs are read.
            "sandbox",
            "data directory",
            "database",
            "disk space",
            "log",
            "clock",
            "server"
        ]
    );
    for (check, level, text) in &lines {
        let is_of_root = geteuid().is_root() && has_landlock();
        if check == "sandbox" && is_of_root && !text.starts_with("PDFs") {
            assert!(
                level == "warning" && text.contains("root"),
                "{level}: {text}"
            );
            continue;
        }
        let is_well = level == "ok" || check == "provider" || check == "disk space";
        assert!(is_well, "{check}: {level}: {text}");
    }
    let pdfs = pdf_obstacle().unwrap_or("are read as text");
    let is_said = |text: &str| text.starts_with("PDFs") && text.contains(pdfs);
    assert!(lines.iter().any(|(_, _, text)| is_said(text)), "{lines:?}");
}

#[cfg(feature = "tls")]
#[test]
fn what_is_wrong_with_the_authority_of_the_household_is_said() {
    let folder = prepare(json!({}));
    let path = folder.path();
    assert!(
        run(path, &["tls", "household", "--name", "pi.example"])
            .status
            .success()
    );
    let of_tls = || {
        let (_, lines) = doctor(path);
        let lines = lines.into_iter().filter(|line| line.0 == "tls");
        let lines: Vec<String> = lines
            .map(|line| format!("{}: {}", line.1, line.2))
            .collect();
        lines
    };
    let found = of_tls();
    assert!(
        found.len() == 1 && found[0].starts_with("ok: "),
        "{found:?}"
    );

    let key = path.join("authority.key.pem");
    fs::set_permissions(&key, Permissions::from_mode(0o640)).unwrap();
    let config = path.join("config.json");
    let mut text: Value = serde_json::from_slice(&fs::read(&config).unwrap()).unwrap();
    text["allowed_hosts"] = json!(["pi.example", "moved.example"]);
    fs::write(&config, text.to_string()).unwrap();
    let found = of_tls().join("\n");
    for part in [
        "problem: ",
        "authority.key.pem can be read by other users",
        "warning: the certificate is not for moved.example",
    ] {
        assert!(found.contains(part), "{part}: {found}");
    }
    fs::remove_file(&key).unwrap();
    let found = of_tls().join("\n");
    assert!(
        found.contains("warning: the server cannot renew its certificate"),
        "{found}"
    );
    assert!(
        found.contains("authority.key.pem cannot be read"),
        "{found}"
    );

    let now = base::clock::Clock::system().now();
    let long_ago = now.minus(std::time::Duration::from_secs(3_600 * 24 * 3_640));
    let names = ["pi.local".to_owned()];
    net::tls::household::make(path, "pi", &names, long_ago).unwrap();
    net::tls::household::renew(path, now).unwrap();
    let found = of_tls().join("\n");
    assert!(
        found.contains("warning: the household's authority ends in 9 days"),
        "{found}"
    );
    assert!(
        found.contains("warning: the certificate expires in 9 days"),
        "{found}"
    );
}

/// What is done to a data directory, the check that notices it, how bad it is,
/// and a part of what it says.
type Case = (fn(&Path), &'static str, &'static str, &'static str);

const CASES: [Case; 7] = [
    (|_| {}, "server", "warning", "no server is running"),
    (
        |folder| fs::set_permissions(folder, Permissions::from_mode(0o755)).unwrap(),
        "data directory",
        "warning",
        "can read",
    ),
    (
        |folder| {
            let path = folder.join("config.json");
            fs::set_permissions(path, Permissions::from_mode(0o666)).unwrap();
        },
        "data directory",
        "warning",
        "others can write",
    ),
    (
        |folder| {
            let path = folder.join("hearth.db");
            let file = fs::OpenOptions::new().write(true).open(path).unwrap();
            let pages = file.metadata().unwrap().len() / 4096;
            for page in 2..pages {
                file.write_all_at(&[0xff; 4096], page * 4096).unwrap();
            }
        },
        "database",
        "problem",
        "hearth.db",
    ),
    (
        |folder| {
            let log = fs::File::create(folder.join("hearth.log.1")).unwrap();
            log.set_len(40_000_000).unwrap();
        },
        "log",
        "warning",
        "40.0 MB",
    ),
    (
        |folder| fs::create_dir(folder.join("hearth.log")).unwrap(),
        "data directory",
        "problem",
        "hearth.log is not a file that this user may write",
    ),
    (
        |folder| fs::write(folder.join("config.json"), "{ nonsense").unwrap(),
        "configuration",
        "problem",
        "config.json",
    ),
];

#[test]
fn a_variable_that_the_server_alone_has_leaves_the_rest_to_be_checked() {
    let folder = prepare(json!({
        "provider": "openai-compatible", "base_url": "http://127.0.0.1:1/v1", "model": "m",
        "api_key": "${MYKEY}",
    }));
    let serve = ["serve", "--bind", "127.0.0.1", "--port", "0"];
    let program = Program::start_in(folder.path(), &serve, &[("MYKEY", "a secret")]);
    let (code, checks) = doctor(folder.path());
    let unset = checks.iter().find(|(_, _, text)| text.contains("MYKEY"));
    let (_, level, text) = unset.unwrap();
    assert!(
        level == "warning" && text.contains("not set in this shell"),
        "{text}"
    );
    assert!(
        checks.iter().all(|(check, _, _)| check != "provider"),
        "{checks:?}"
    );
    for wanted in ["backup", "exposure", "database", "server"] {
        assert!(
            checks.iter().any(|(check, _, _)| check == wanted),
            "{wanted}: {checks:?}"
        );
    }
    assert_eq!(code, Some(0), "{checks:?}");
    drop(program);
    // A start from this shell would fail.
    assert_eq!(doctor(folder.path()).0, Some(1));
    let avahi = run(folder.path(), &["avahi"]);
    assert!(avahi.status.success(), "{}", printed(&avahi));
}

#[test]
fn what_is_wrong_is_named_and_a_problem_has_code_1() {
    for (harm, check, level, says) in CASES {
        let folder = prepare(json!({}));
        harm(folder.path());
        let (code, lines) = doctor(folder.path());
        let found = lines
            .iter()
            .find(|line| line.0 == check && line.1 == level)
            .unwrap_or_else(|| panic!("{check} {level}: {lines:?}"));
        assert!(found.2.contains(says), "{says}: {found:?}");
        let expected = if level == "problem" { 1 } else { 0 };
        assert_eq!(code, Some(expected), "{lines:?}");
    }
}

#[test]
fn a_port_that_another_program_has_is_named_while_no_server_runs() {
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = other.local_addr().unwrap().port();
    let folder = prepare(json!({ "channels": [
        { "name": "lan", "type": "tcp", "bind": "127.0.0.1", "port": port },
    ] }));
    let found = || {
        let (_, lines) = doctor(folder.path());
        let mut named = lines.into_iter().filter(|line| line.0 == "port");
        named
            .next()
            .map(|(_, level, text)| format!("{level}: {text}"))
    };
    let taken = found().unwrap_or_default();
    let says = format!("warning: port {port} is in use by another program");
    assert!(taken.starts_with(&says), "{taken}");
    drop(other);
    let _program = Program::serve(folder.path());
    assert_eq!(found(), None, "its own");
}

#[test]
fn the_user_of_programs_without_a_token_must_be_there_and_may_chat() {
    for (name, says) in [
        ("nobody", Some("there is no such user")),
        ("viewer", Some("cannot chat")),
        ("User", None),
    ] {
        let api = json!({ "enabled": true, "ollama_user": name });
        let folder = prepare(json!({ "openai_api": api }));
        let (code, lines) = doctor(folder.path());
        let found = lines.iter().find(|line| line.0 == "openai_api");
        match says {
            None => assert!(found.is_none() && code == Some(0), "{lines:?}"),
            Some(says) => {
                let (_, level, text) = found.unwrap_or_else(|| panic!("{lines:?}"));
                assert_eq!((level.as_str(), code), ("problem", Some(1)));
                assert!(text.contains(says) && text.contains(name), "{text}");
            }
        }
    }
}

#[test]
fn mcp_servers_are_started_and_relays_called() {
    let stub = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/mcp_stub.sh");
    let folder = prepare(json!({
        "mcp_servers": {
            "good": { "command": "sh", "args": [stub] },
            "gone": { "command": "/nonexistent/program" },
        },
        "channels": [
            { "name": "lan", "type": "tcp", "port": 0 },
            { "name": "away", "type": "websocket", "url": "ws://127.0.0.1:1/ws" },
        ],
    }));
    let (code, lines) = doctor(folder.path());
    assert_eq!(code, Some(1), "{lines:?}");
    for (check, level, says) in [
        ("mcp server", "ok", "good answers"),
        ("mcp server", "problem", "gone:"),
        ("relay", "problem", "away (127.0.0.1:1)"),
    ] {
        let is_found = |line: &(String, String, String)| {
            line.0 == check && line.1 == level && line.2.starts_with(says)
        };
        assert!(lines.iter().any(is_found), "{says}: {lines:?}");
    }
}

#[test]
fn a_reader_that_opens_any_address_is_named() {
    let any = json!({"type": "object", "properties": {}});
    let address = json!({"type": "object", "properties": {"url": {"type": "string"}}});
    let tools = json!([
        {"name": "search", "inputSchema": any, "annotations": {"openWorldHint": true}},
        {"name": "page", "inputSchema": address},
        {"name": "list", "inputSchema": any},
        {"name": "open", "inputSchema": address},
    ]);
    let script = shell_server("attic", &tools, ":", ":");
    let folder = prepare(json!({"mcp_servers": {"attic": {
        "command": "sh", "args": ["-c", script], "read_only": ["search", "page", "list"],
    }}}));
    let (code, lines) = doctor(folder.path());
    assert_eq!(code, Some(0), "{lines:?}");
    let warnings: Vec<&str> = (lines.iter())
        .filter(|line| line.0 == "mcp server" && line.1 == "warning")
        .map(|line| line.2.as_str())
        .collect();
    assert_eq!(
        warnings,
        ["attic: declared to change nothing (read_only), but opens any address: search, page"]
    );
}

#[test]
fn a_running_server_is_asked_what_it_can_start() {
    let stub = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/mcp_stub.sh");
    let folder = prepare(json!({ "mcp_servers": { "mine": { "command": "my-server" } } }));
    let programs = TemporaryDirectory::new();
    let program = programs.path().join("my-server");
    fs::write(&program, format!("#!/bin/sh\nexec sh {}\n", stub.display())).unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let wide = format!("{}:/usr/bin:/bin", programs.path().display());
    let (wide, narrow) = ([("PATH", wide.as_str())], [("PATH", "/usr/bin:/bin")]);
    for (of_server, of_doctor, level) in [(&narrow, &wide, "problem"), (&wide, &narrow, "ok")] {
        let arguments = ["serve", "--bind", "127.0.0.1", "--port", "0"];
        let _server = Program::start_in(folder.path(), &arguments, of_server);
        let (_, lines) = doctor_in(folder.path(), of_doctor);
        let line = lines.iter().find(|line| line.0 == "mcp server").unwrap();
        assert_eq!(line.1, level, "{lines:?}");
    }
}

#[test]
fn what_reaches_the_household_without_a_person_is_listed_beside_a_running_server() {
    let account = json!({
        "incoming_path": "/in", "outgoing_url": "http://127.0.0.1:1/", "tools": ["recall"],
        "secret": "a-secret-of-the-home", "audience": ["user", "leo"], "trusted": true,
    });
    let folder = prepare(json!({
        "permission_mode": "allow",
        "people": { "USER": {}, "eve": {} },
        "channels": [
            { "name": "lan", "type": "tcp", "port": 0, "allow_from": ["*"] },
            { "type": "webhook", "accounts": { "door": account } },
        ],
    }));
    let _program = Program::serve(folder.path());
    let (code, lines) = doctor(folder.path());
    assert_eq!(code, Some(0), "{lines:?}");
    for (check, level, says) in [
        (
            "household",
            "ok",
            "webhook account door, by recall; user, leo can read along",
        ),
        ("household", "ok", "token \"test\", as user (user)"),
        ("household", "ok", "counts as yours: webhook account door"),
        (
            "household",
            "warning",
            "people.eve is for a user who does not exist",
        ),
        (
            "household",
            "warning",
            "webhook account door names leo, a user who does not exist",
        ),
        (
            "exposure",
            "warning",
            "clients of the internet can connect (channel lan)",
        ),
        (
            "webhook account",
            "warning",
            "can run every tool without asking",
        ),
    ] {
        let found = lines
            .iter()
            .filter(|line| (line.0.as_str(), line.1.as_str()) == (check, level));
        let times = found.filter(|line| line.2.contains(says)).count();
        assert_eq!(times, 1, "{check} {level} {says}: {lines:?}");
    }
    let named = |line: &&(String, String, String)| line.2.contains("does not exist");
    assert_eq!(lines.iter().filter(named).count(), 2, "{lines:?}");
}

/// What a model answers that does as it is told.
fn obedient(request: &Value) -> Act {
    let messages = request["messages"].as_array().unwrap();
    let last = messages.last().unwrap();
    let text = last["content"].as_str().unwrap();
    let code = |text: &str| {
        let code = text.split(" is ").nth(1).unwrap();
        code.split('.').next().unwrap().to_owned()
    };
    if last["role"] == "tool" {
        return Act::Say(code(text));
    }
    match text {
        _ if text.contains("the tool") => Act::call("look_up_code", json!({ "door": "garden" })),
        _ => Act::say("ready"),
    }
}

/// `hearth doctor --model`: the exit code and what it prints.
fn tried(config: Value) -> (Option<i32>, String) {
    let folder = prepare(config);
    let output = run(folder.path(), &["doctor", "--model"]);
    (output.status.code(), printed(&output))
}

#[test]
fn a_model_is_tried_with_what_a_turn_needs() {
    let model = Model::start(|request, _| obedient(request));
    let (code, said) = tried(model.config_with(json!({ "context_tokens": 4096 })));
    assert_eq!(code, Some(0), "{said}");
    for says in [
        "\"scripted\": answers a question (",
        "10 tokens in, 5 out)",
        "\"scripted\": calls a tool and uses its result (",
        "20 tokens in, 10 out)",
    ] {
        assert!(said.contains(says), "{says}: {said}");
    }
    assert_eq!(said.lines().count(), 2, "{said}");
    assert_eq!(model.requests().len(), 3, "and no more is paid for");
}

#[test]
fn what_a_model_cannot_do_is_a_problem_with_advice() {
    let has_tools = |request: &Value| request["tools"].is_array();
    let silent = Model::start(|_, _| Act::error(401, "", "bad key"));
    let without_tools = Model::start(move |request, _| match has_tools(request) {
        true => Act::error(400, "", "this model does not support tools"),
        false if request.to_string().contains("look_up_code") => Act::say("How?"),
        false => obedient(request),
    });
    let talks = Model::start(move |request, _| match has_tools(request) {
        true => Act::say("I would call it."),
        false => obedient(request),
    });
    for (model, lines, says, advice) in [
        (
            &silent,
            1,
            "requires an API key (401)",
            "doctor` checks address",
        ),
        (
            &without_tools,
            2,
            "cannot use tools: it answered in words instead of a call: (The model scripted cannot",
            "choose a model that is made for them",
        ),
        (
            &talks,
            2,
            "instead of a call: I would call it.",
            "choose a model",
        ),
    ] {
        let (code, said) = tried(model.config_with(json!({ "context_tokens": 4096 })));
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains(says), "{says}: {said}");
        assert!(said.contains(advice), "{advice}: {said}");
        let told = said.lines().filter(|line| !line.starts_with("   ")).count();
        assert_eq!(told, lines, "{said}");
        assert_eq!(
            said.lines()
                .filter(|line| line.starts_with("problem"))
                .count(),
            1
        );
    }
}

/// Whoever runs the server at home can do something about it, and has no log of Hearth's to read.
#[test]
fn what_a_server_at_home_says_of_its_failure_is_told() {
    for why in [
        "model requires more system memory (5.6 GiB) than is available (3.2 GiB)",
        "Error rendering prompt with jinja template: Unknown test: sequence at row 12, column 41",
    ] {
        let model = Model::start(move |_, _| Act::error(500, "", why));
        model.says_of_itself(500, &json!({ "error": why }).to_string());
        let (code, said) = tried(model.config());
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains(&format!("failed (500): {why}")), "{said}");
        assert!(!said.contains("reference"), "{said}");
        let folder = prepare(model.config());
        let (code, lines) = doctor(folder.path());
        assert_eq!(code, Some(1), "{lines:?}");
        let (_, level, said) = lines.iter().find(|line| line.0 == "provider").unwrap();
        assert_eq!(level, "problem");
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn a_reasoning_effort_that_does_nothing_is_warned_about() {
    let keyed = |model: &str| {
        json!({
            "provider": "anthropic", "model": model, "api_key": "x",
            "base_url": "http://127.0.0.1:1",
        })
    };
    for (model, effort, warned) in [
        ("claude-3-5-haiku-latest", "high", true),
        ("claude-3-5-haiku-latest", "none", false),
        ("claude-opus-4-6", "high", false),
    ] {
        let mut config = keyed(model);
        config["reasoning_effort"] = json!(effort);
        let folder = prepare(config);
        let (_, lines) = doctor(folder.path());
        let is_warning = |line: &&(String, String, String)| {
            line.1 == "warning" && line.2.contains("takes no reasoning effort")
        };
        assert_eq!(
            lines.iter().any(|line| is_warning(&line)),
            warned,
            "{lines:?}"
        );
    }
}

#[test]
fn each_model_that_stands_in_is_tried_too() {
    let first = Model::start(|request, _| obedient(request));
    let other = Model::start(|request, _| match request["tools"].is_array() {
        true => Act::say("No."),
        false => obedient(request),
    });
    let mut config = first.config_with(json!({ "context_tokens": 4096 }));
    let url = format!("http://{}/v1", other.address);
    config["fallback"] = json!([{
        "provider": "openai-compatible", "model": "stand-in", "base_url": url,
    }]);
    let (code, said) = tried(config);
    assert_eq!(code, Some(1), "{said}");
    assert_eq!(
        said.lines().filter(|line| line.starts_with("ok")).count(),
        3,
        "{said}"
    );
    assert!(said.contains("set fallback[0].model in"), "{said}");
}

#[test]
fn skills_that_are_left_out_are_named() {
    let folder = prepare(json!({}));
    for (name, text) in [
        (
            "tea",
            "---\nname: tea\ndescription: Makes tea.\n---\nBoil.\n",
        ),
        ("coffee", "# Coffee"),
        (
            "cocoa",
            "---\nname: tea\ndescription: Makes tea.\n---\nBoil.\n",
        ),
    ] {
        let place = folder.path().join("skills").join(name);
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join("SKILL.md"), text).unwrap();
    }
    let (code, lines) = doctor(folder.path());
    assert_eq!(code, Some(1), "{lines:?}");
    let skills: Vec<_> = lines.iter().filter(|line| line.0 == "skill").collect();
    let [(_, ok, good), (_, _, cocoa), (_, problem, coffee)] = &skills[..] else {
        panic!("{lines:?}");
    };
    assert_eq!((ok.as_str(), good.as_str()), ("ok", "skills: tea"));
    assert_eq!(problem, "problem");
    assert!(cocoa.contains("must have the same name"), "{cocoa}");
    assert!(coffee.contains("coffee/SKILL.md: line 1"), "{coffee}");
}

#[test]
fn a_program_of_several_users_needs_a_token_that_speaks_for_them() {
    let users = json!({ "a@home.example": "User", "b@home.example": "viewer" });
    let folder = prepare(json!({ "openai_api": { "enabled": true, "users": users } }));
    let warned = || {
        let (code, lines) = doctor(folder.path());
        assert_eq!(code, Some(0), "{lines:?}");
        let mut texts = lines
            .into_iter()
            .map(|(_, level, text)| format!("{level}: {text}"));
        texts.find(|text| text.contains("openai_api.users"))
    };
    let make = |words: &str| {
        let words: Vec<&str> = words.split(' ').collect();
        let made = run(
            folder.path(),
            &[&["token", "create", "--name"], &words[..]].concat(),
        );
        assert!(made.status.success(), "{}", printed(&made));
    };
    make("own --user user");
    let said = warned().unwrap();
    assert!(
        said.starts_with("warning: openai_api.users names User, viewer, but no token"),
        "{said}"
    );
    make("one --speaks-for user");
    let said = warned().unwrap();
    assert!(
        said.starts_with("warning: openai_api.users names viewer, but no token"),
        "{said}"
    );
    make("two --speaks-for user,viewer");
    assert_eq!(warned(), None);
}

/// What it asks beside a chat gives Open WebUI away.
#[test]
fn open_webui_that_does_not_say_who_asks_is_named() {
    let model = Model::saying("A title");
    let folder = TemporaryDirectory::new();
    write_config(
        folder.path(),
        model.config_with(json!({ "openai_api": { "enabled": true } })),
    );
    let tokens = make_people(folder.path());
    let program = Program::serve(folder.path());
    let bearer = format!("Bearer {}", tokens.user);
    let ask = |text: &str, name: Option<&str>| {
        let body = json!({ "model": "hearth", "messages": [{ "role": "user", "content": text }] });
        let mut headers = vec![("authorization", bearer.as_str())];
        headers.extend(name.map(|name| ("x-openwebui-user-name", name)));
        let answer = post(program.address, "/v1/chat/completions", &headers, &body);
        assert_eq!(answer.status, 200, "{answer:?}");
    };
    let named = || {
        let (_, lines) = doctor(folder.path());
        let mut lines = lines
            .into_iter()
            .filter(|line| line.2.contains("Open WebUI"));
        lines.next().map(|line| (line.1, line.2))
    };
    let task = "### Task:\nName this chat.\n### Chat History:\nUSER: hello";
    ask("hello", None);
    ask(task, Some("user"));
    assert_eq!(named(), None);
    ask(task, None);
    let (level, text) = named().unwrap();
    assert_eq!(level, "warning", "{text}");
    assert!(
        text.starts_with("Open WebUI asks with the token \"test\" and does not say who asks")
            && text.contains("sees and does what user may"),
        "{text}"
    );
}

#[test]
fn tokens_are_listed_with_their_limits() {
    let folder = prepare(json!({}));
    let make = |words: &[&str]| {
        let made = run(
            folder.path(),
            &[&["token", "create", "--name"], words].concat(),
        );
        assert!(made.status.success(), "{}", printed(&made));
    };
    make(&["panel", "--only", "household", "--tools", "recall,forget"]);
    make(&["bot", "--user", "user", "--speaks-for", "admin,viewer"]);
    make(&["mute", "--tools", ","]);
    make(&["frame", "--role", "viewer"]);
    make(&["plain"]);
    let (_, lines) = doctor(folder.path());
    let (_, _, found) = lines.iter().find(|line| line.0 == "household").unwrap();
    for says in [
        "token \"panel\", as admin (user): tools recall,forget; only household\n",
        "token \"bot\", as user (user): speaks for admin,viewer\n",
        "token \"mute\", as admin (user): no tools\n",
        "token \"plain\", as admin (admin)\n",
    ] {
        assert!(found.contains(says), "{found}");
    }
    assert!(!found.contains("frame"), "a guest reaches nothing: {found}");
}
