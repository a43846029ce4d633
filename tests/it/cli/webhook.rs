//! `hearth webhook`: an account from its making to its test, and what the test
//! says when something is wrong.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use support::eventually;
use support::home::{TemporaryDirectory, make_people, write_config};
use support::http::post;
use support::model::{Act, Model};
use support::program::{Program, finish, free_port, is_there, printed, run};
use support::receiver::Receiver;

/// Runs `hearth webhook ...`; whether it succeeded, and what it printed.
fn webhook(folder: &TemporaryDirectory, arguments: &[&str]) -> (bool, String) {
    let output = run(folder.path(), &[&["webhook"], arguments].concat());
    (output.status.success(), printed(&output))
}

#[test]
fn an_account_is_added_to_a_running_server_and_tested() {
    let (model, receiver) = (Model::saying("All well."), Receiver::start());
    let folder = TemporaryDirectory::new();
    write_config(folder.path(), model.config());
    make_people(folder.path());
    let program = Program::serve(folder.path());
    let (added, said) = webhook(&folder, &["add", "ci", "--url", &receiver.url()]);
    assert!(added && said.contains("reloaded it"), "{said}");
    let address = program.address.to_string();
    assert!(
        said.contains(&format!("curl http://{address}/webhook/ci")),
        "{said}"
    );
    let secret = said
        .split(|letter: char| letter == '\'' || letter.is_whitespace())
        .find(|word| word.starts_with("whsec_"))
        .unwrap();
    // What the printed line sends is taken, once the server has reread its file.
    let headers = [("x-service-secret", secret)];
    eventually("the account is there", || {
        let answer = post(
            program.address,
            "/webhook/ci",
            &headers,
            &json!({ "message": "x" }),
        );
        (answer.status == 202).then_some(())
    });

    let (good, said) = webhook(&folder, &["test", "ci", "--message", "How is the build?"]);
    assert!(good, "{said}");
    for part in [
        "accepted in",
        "All well.",
        "accepted the callback (webhook-id dlv_",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("FAIL") && !said.contains(secret), "{said}");
    // Not the last for certain: the turn of the message above may come later.
    let is_asked = |request: &Value| request.to_string().contains("How is the build?");
    assert!(model.requests().iter().any(is_asked));

    // With an account for known events, too.
    for sender in ["github", "gitlab"] {
        let add = ["add", sender, "--from", sender, "--url", &receiver.url()];
        let (added, said) = webhook(&folder, &add);
        let test = format!(" webhook test {sender}`");
        assert!(added && said.contains(&test), "{said}");
        let (good, said) = webhook(&folder, &["test", sender]);
        assert!(good && said.contains("All well."), "{said}");
    }

    let (removed, said) = webhook(&folder, &["remove", "ci"]);
    assert!(removed, "{said}");
    eventually("the account is gone", || {
        let answer = post(
            program.address,
            "/webhook/ci",
            &headers,
            &json!({ "message": "x" }),
        );
        (answer.status == 404).then_some(())
    });
}

#[test]
fn the_request_that_is_shown_works_as_printed() {
    if !is_there("curl") {
        return;
    }
    let (model, receiver) = (Model::saying("All well."), Receiver::start());
    let folder = TemporaryDirectory::new();
    write_config(folder.path(), model.config());
    make_people(folder.path());
    let _program = Program::serve(folder.path());
    let shell = |line: &str, secret: &str| {
        let ran = finish(Command::new("sh").args(["-c", line]).env("SECRET", secret));
        let ran = String::from_utf8(ran.stdout).unwrap();
        assert!(ran.contains("\"turn_id\""), "{line}: {ran}");
    };
    for format in ["json", "form", "text", "get"] {
        let url = receiver.url();
        let add = [
            "add",
            format,
            "--url",
            &url,
            "--accept",
            format,
            "--no-secret",
        ];
        let add = &add[..if format == "get" { 6 } else { 7 }];
        let (added, said) = webhook(&folder, add);
        assert!(added, "{said}");
        let (_, line) = said.split_once("curl ").unwrap();
        shell(&format!("curl {line}"), "");
    }
    for format in ["json", "form", "text", "get"] {
        let name = format!("{format}-2");
        // In an address, some characters need their code, which a variable has not.
        let secret = match format {
            "get" => "32-characters+or/more=",
            _ => "it's a \"secret\" + $more & 100% of it",
        };
        let settings = json!({
            "incoming_path": format!("/{name}"), "outgoing_url": receiver.url(),
            "secret": secret, "accept": [format],
        });
        let key = format!("channels.webhook.accounts.{name}");
        let set = run(
            folder.path(),
            &["config", "set", &key, &settings.to_string()],
        );
        assert!(set.status.success(), "{}", printed(&set));
        let shown = |more: &[&str]| {
            let test = ["test", &name, "--message", "Isn't it \"fine\" & $HOME?"];
            let (good, said) = webhook(&folder, &[&test, more].concat());
            assert!(good && said.contains("accepted the callback"), "{said}");
            let line = said.split("\n\n").nth(1).unwrap().to_owned();
            (line, said)
        };
        let (line, said) = shown(&["--show-secret"]);
        shell(&line, "");
        assert!(!said.contains("in SECRET"), "{said}");
        let (line, said) = shown(&[]);
        assert!(
            line.contains("$SECRET") && !said.contains("$more"),
            "{said}"
        );
        shell(&line, secret);
        let asked = model.requests().pop().unwrap().to_string();
        let asked = asked.replace('\\', "");
        assert!(asked.contains("Isn't it \"fine\" & $HOME?"), "{asked}");
    }
    let log = fs::read_to_string(folder.path().join("hearth.log")).unwrap();
    assert!(!log.contains("secret="), "{log}");
}

#[test]
fn a_test_says_what_is_wrong() {
    let model = Model::start(|request, _| {
        let text = request["messages"].to_string();
        match text {
            text if text.contains("fail!") => Act::error(401, "", "wrong key"),
            text if text.contains("remember!") => Act::call("remember", json!({ "content": "x" })),
            _ => Act::say("fine"),
        }
    });
    let receiver = Receiver::answering(|callback, _| {
        let path = callback.head.split(' ').nth(1).unwrap();
        match path {
            "/refuses" => "401 Unauthorized".to_owned(),
            "/moved" => "301 Moved\r\nLocation: /elsewhere".to_owned(),
            _ => "200 OK".to_owned(),
        }
    });
    let folder = TemporaryDirectory::new();
    let url = |path: &str| format!("http://{}{path}", receiver.address);
    let account = |name: &str, url: String, more: Value| {
        let mut account =
            json!({ "incoming_path": format!("/webhook/{name}"), "outgoing_url": url });
        for (key, value) in more.as_object().unwrap() {
            account[key] = value.clone();
        }
        account
    };
    let mut config = model.config();
    config["permission_mode"] = json!("ask");
    let mut accounts = json!({
        "good": account("good", url("/good"), json!({ "tools": ["remember"] })),
        "refuses": account("refuses", url("/refuses"), json!({})),
        "moved": account("moved", url("/moved"), json!({})),
        "nobody": account("nobody", "http://127.0.0.1:1/".to_owned(), json!({})),
        "mapped": account("mapped", url("/good"), json!({
            "map": { "message": "{/a/0}: {/b}", "conversation_id": "/c" },
        })),
        "off": account("off", url("/good"), json!({ "enabled": false })),
        "secret": account("secret", url("/good"), json!({ "secret": "the old one" })),
    });
    let channels = |accounts: &Value| {
        json!([
            { "name": "lan", "type": "tcp", "port": 0 },
            { "type": "webhook", "accounts": accounts },
        ])
    };
    config["channels"] = channels(&accounts);
    write_config(folder.path(), config.clone());
    make_people(folder.path());
    let (good, said) = webhook(&folder, &["test", "good"]);
    assert!(!good && said.contains("no server is running"), "{said}");

    let _program = Program::serve(folder.path());
    // The file is changed, and the server not told.
    accounts["secret"]["secret"] = json!("the new one");
    accounts["new"] = account("new", url("/good"), json!({}));
    config["channels"] = channels(&accounts);
    write_config(folder.path(), config);
    for (arguments, says) in [
        (&["test", "good"][..], None),
        (&["test", "mapped"], None),
        (&["test", "refuses"], Some("the receiver answered 4")),
        (&["test", "moved"], Some("the receiver answered 30")),
        (&["test", "nobody"], Some("no answer: Connection refused")),
        (
            &["test", "good", "--message", "fail!"],
            Some("the turn failed"),
        ),
        (
            &["test", "good", "--message", "remember!"],
            Some("waiting for approval"),
        ),
        (&["test", "off"], Some("\"enabled\" is false")),
        // As the server has it.
        (&["test", "secret"], None),
        (&["test", "new"], Some("no webhook account")),
        (&["test", "goood"], Some("no webhook account")),
    ] {
        let (good, said) = webhook(&folder, arguments);
        assert_eq!(good, says.is_none(), "{arguments:?}: {said}");
        assert!(
            said.contains(says.unwrap_or("accepted the callback")),
            "{arguments:?}: {said}"
        );
    }
}

#[test]
fn an_account_of_an_older_version_is_named_with_what_gives_its_tools_back() {
    let folder = TemporaryDirectory::new();
    let account = json!({ "incoming_path": "/in", "outgoing_url": "http://127.0.0.1:1/" });
    write_config(
        folder.path(),
        json!({ "channels": [
            { "name": "lan", "type": "tcp", "port": 0 },
            { "type": "webhook", "accounts": { "old": account } },
        ] }),
    );
    make_people(folder.path());
    let says = "\"channels[1].accounts.old\" has no \"tools\"";
    let key = "channels[1].accounts.old.tools";
    let program = Program::serve(folder.path());
    let log = fs::read_to_string(folder.path().join("hearth.log")).unwrap();
    let line = log.lines().find(|line| line.contains(says)).unwrap();
    assert!(
        line.contains(&format!("hearth config set '{key}' '[\"*\"]'; ")),
        "{line}"
    );

    let diagnosed = printed(&run(folder.path(), &["doctor"]));
    let command = diagnosed
        .split_once("all tools again: ")
        .and_then(|(_, after)| after.split_once("; to leave"))
        .map(|(command, _)| command)
        .unwrap();
    // As a person would do it, by copying the line into a shell.
    let ran = finish(
        Command::new("sh")
            .args(["-c", command])
            .env("HEARTH_DATA_DIR", folder.path()),
    );
    assert!(ran.status.success(), "{command}: {}", printed(&ran));
    let (_, listed) = webhook(&folder, &["list", "--json"]);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed[0]["tools"], json!(["*"]));
    assert!(!printed(&run(folder.path(), &["doctor"])).contains(says));
    program.kill();
    let _program = Program::serve(folder.path());
    let log = fs::read_to_string(folder.path().join("hearth.log")).unwrap();
    let times = log.lines().filter(|line| line.contains(says)).count();
    assert_eq!(times, 1, "not at the second start");
}

#[test]
fn a_test_posts_to_the_port_of_its_channel() {
    let receiver = Receiver::start();
    let folder = TemporaryDirectory::new();
    let channel = |name: &str| {
        json!({ "name": name, "type": "webhook", "port": free_port(), "accounts": { name: {
            "incoming_path": format!("/{name}"), "outgoing_url": receiver.url(),
        } } })
    };
    let channels = json!([
        channel("first"),
        { "name": "lan", "type": "tcp", "port": 0 },
        channel("second"),
        { "name": "shared", "type": "webhook", "accounts": { "shared": {
            "incoming_path": "/shared", "outgoing_url": receiver.url(),
        } } },
    ]);
    write_config(folder.path(), json!({ "channels": channels }));
    make_people(folder.path());
    let program = Program::serve(folder.path());
    let shared = json!(program.address.port());
    for (name, port) in [
        ("first", &channels[0]["port"]),
        ("second", &channels[2]["port"]),
        ("shared", &shared),
    ] {
        let (good, said) = webhook(&folder, &["test", name]);
        assert!(good, "{name}: {said}");
        let url = format!("http://127.0.0.1:{port}/{name}");
        assert!(said.contains(&url), "{url}: {said}");
    }
}
