use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::thread::{self, JoinHandle};

use serde_json::Value;

use crate::cli::context::CliContext;
use crate::cli::run_in;
use crate::cli::tests::{DataDirectoryUnderTest, run_with};

fn config(root: &DataDirectoryUnderTest) -> Value {
    let text = fs::read_to_string(root.path().join("config.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Runs it as in a terminal, in which `typed` is typed. Returns the exit code
/// and what was shown.
fn in_a_terminal(root: &DataDirectoryUnderTest, options: &[&str], typed: &str) -> (u8, String) {
    let (mut writer, mut reader) = UnixStream::pair().unwrap();
    writer.write_all(typed.as_bytes()).unwrap();
    drop(writer);
    let directory = root.path().to_str().unwrap();
    let words = [&["init", "--data-dir", directory], options].concat();
    let (mut output, mut shown) = (Vec::new(), Vec::new());
    let code = run_in(
        words.iter().map(Into::into).collect(),
        &mut CliContext {
            environment: &|_| None,
            input: &mut reader,
            input_is_terminal: true,
            output_is_terminal: true,
            output: &mut output,
            errors: &mut shown,
        },
    );
    (code, String::from_utf8(shown).unwrap())
}

/// Lists its one model three times: for the search, to choose from, and for the test. Once it
/// says that it is not Ollama.
fn model_server() -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let serve = move || {
        for stream in listener.incoming().take(4) {
            let mut stream = stream.unwrap();
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).unwrap();
            let (status, body) = match line.starts_with("GET /v1/models ") {
                true => ("200 OK", r#"{"object":"list","data":[{"id":"qwen3"}]}"#),
                false => ("404 Not Found", "{}"),
            };
            let length = body.len();
            write!(
                stream,
                "HTTP/1.1 {status}\r\ncontent-type: application/json\r\n\
                 content-length: {length}\r\nconnection: close\r\n\r\n{body}"
            )
            .unwrap();
        }
    };
    (address, thread::spawn(serve))
}

#[test]
fn nothing_is_asked_where_there_is_no_terminal() {
    let root = DataDirectoryUnderTest::default();
    let ran = root.run("init", "");
    assert_eq!(ran.code, 0, "{}", ran.errors);
    assert_eq!(ran.output.lines().count(), 1, "a password: {}", ran.output);
    assert!(!ran.errors.contains('?'), "{}", ran.errors);
    assert_eq!(config(&root)["provider"], "offline");

    // Once more: the users stay, and so does their password.
    let again = root.run("init --local-only", "");
    assert_eq!(
        (again.code, again.output.as_str()),
        (0, ""),
        "{}",
        again.errors
    );
    assert_eq!(config(&root)["channels"][0]["bind"], "127.0.0.1");
    let again = root.run("init --lan", "");
    assert_eq!(again.code, 0, "{}", again.errors);
    assert_eq!(config(&root)["channels"][0]["bind"], Value::Null);
    let refused = root.run("init --generate", "");
    assert_eq!(refused.code, 1);
    assert!(refused.errors.contains("user passwd"), "{}", refused.errors);
}

#[test]
fn every_answer_is_an_option() {
    let root = DataDirectoryUnderTest::default();
    let directory = root.path().to_str().unwrap();
    let line = "init --provider openai --model gpt --api-key-stdin --admin-password-stdin \
                --local-only --relay wss://relay.example/ws --no-test --data-dir";
    let words: Vec<&str> = line.split_whitespace().chain([directory]).collect();
    let token = "a-token-of-the-relay-with-32-letters";
    let typed = "sk-secret\ncorrect horse\n";
    let ran = run_with(&words, typed, &[("HEARTH_RELAY_TOKEN", token)]);
    assert_eq!((ran.code, ran.output.as_str()), (0, ""), "{}", ran.errors);
    let config = config(&root);
    for (key, value) in [
        ("provider", "openai"),
        ("model", "gpt"),
        ("api_key", "sk-secret"),
    ] {
        assert_eq!(config[key], value);
    }
    assert_eq!(config["channels"][0]["bind"], "127.0.0.1");
    assert_eq!(config["channels"][1]["url"], "wss://relay.example/ws");
    assert_eq!(config["channels"][1]["auth_token"], token);
    assert!(!ran.errors.contains("sk-secret") && !ran.errors.contains("correct horse"));

    // The key of one provider is not left to another.
    let ran = root.run("init --provider ollama --model qwen3 --no-test", "");
    assert_eq!(ran.code, 0, "{}", ran.errors);
    let config = self::config(&root);
    assert_eq!(
        (&config["provider"], &config["api_key"]),
        (&"ollama".into(), &Value::Null)
    );
}

#[test]
fn a_missing_answer_is_named_and_nothing_written() {
    let table = "
        2 | init --provider opnai                        | --provider must be offline
        2 | init --provider openai --model gpt           | --api-key-env NAME
        2 | init --provider openai-compatible --model m  | --base-url
        2 | init --provider ollama --base-url http://127.0.0.1:1 --no-test | --model
        1 | init --relay wss://relay.example             | HEARTH_RELAY_TOKEN
        1 | init --provider groq --model m --api-key-env NOT_SET | NOT_SET is not set
        1 | init --provider ollama --base-url http://127.0.0.1:1 --model m | Nothing was written
        2 | init --lan --local-only                      | cannot be used together
        2 | init --relay relay.example                   | --relay must be a URL
        1 | init --admin-password-stdin                  | standard input ended
    ";
    for line in table.lines().filter(|line| !line.trim().is_empty()) {
        let root = DataDirectoryUnderTest::default();
        root.check(line);
        assert!(!root.path().join("config.json").exists(), "{line}");
        assert!(!root.path().join("hearth.db").exists(), "{line}");
    }
}

#[test]
fn a_person_is_asked_for_what_no_option_says() {
    let root = DataDirectoryUnderTest::default();
    let typed = "teapot\nlatr\nlater\nlocal\n\n";
    let (code, shown) = in_a_terminal(&root, &["--generate"], typed);
    assert_eq!(code, 0, "{shown}");
    for part in [
        "Where is the model?\n   1  here",
        "Please enter one of",
        "Did you mean \"later\"?",
        "Who may connect",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert_eq!(config(&root)["channels"][0]["bind"], "127.0.0.1");
    assert_eq!(config(&root)["channels"].as_array().unwrap().len(), 1);

    let root = DataDirectoryUnderTest::default();
    let url = "http://127.0.0.1:1/v1";
    let options = [
        "--generate",
        "--provider",
        "ollama",
        "--base-url",
        url,
        "--no-test",
    ];
    let (code, shown) = in_a_terminal(&root, &options, "\nqwen3\nlocal\n\n");
    assert_eq!(code, 0, "{shown}");
    assert_eq!(shown.matches("Which model?").count(), 2, "{shown}");
    assert_eq!(config(&root)["model"], "qwen3");

    // A choice may be given by its number, an answer that does not fit is asked for again,
    // and a model that does not answer loses none of the others.
    let root = DataDirectoryUnderTest::default();
    let typed = "qwen3\nsave\n2\nrelay.example\nnone\n";
    let options = ["--generate", "--provider", "ollama", "--base-url", url];
    let (code, shown) = in_a_terminal(&root, &options, typed);
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("save it untested"), "{shown}");
    assert!(shown.contains("Please enter a URL"), "{shown}");
    assert_eq!(config(&root)["model"], "qwen3");
    assert_eq!(config(&root)["channels"][0]["bind"], "127.0.0.1");

    // Who leaves in the middle has changed nothing.
    let root = DataDirectoryUnderTest::default();
    let (code, shown) = in_a_terminal(&root, &["--generate"], "later\n");
    assert_eq!(code, 1, "{shown}");
    assert!(!root.path().join("config.json").exists());
}

#[test]
fn a_model_is_looked_for_where_a_person_says_it_is() {
    let (address, server) = model_server();
    let root = DataDirectoryUnderTest::default();
    let typed = format!("network\nnas lan\n{address}\n\nlocal\n\n");
    let (code, shown) = in_a_terminal(&root, &["--generate"], &typed);
    assert_eq!(code, 0, "{shown}");
    for part in ["\"nas lan\" is no address", "The model server answers at"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let config = config(&root);
    assert_eq!(
        (&config["provider"], &config["base_url"], &config["model"]),
        (
            &"openai-compatible".into(),
            &format!("http://{address}/v1").into(),
            &"qwen3".into()
        )
    );
    server.join().unwrap();

    // Providers on the internet alone are offered for an account.
    let root = DataDirectoryUnderTest::default();
    let (_, shown) = in_a_terminal(&root, &["--generate", "--no-test"], "account\ngroq\n");
    assert!(
        shown.contains("groq") && !shown.contains("lmstudio  "),
        "{shown}"
    );
    let offered = shown.split("Model providers:").nth(1).unwrap_or_default();
    assert!(
        offered.contains("openai\n") && !offered.contains("ollama"),
        "{shown}"
    );
}

#[test]
fn what_is_configured_changes_only_on_request() {
    let root = DataDirectoryUnderTest::default();
    let options = "init --provider ollama --model qwen3 --base-url http://127.0.0.1:1 --no-test \
                   --local-only";
    assert_eq!(root.run(options, "").code, 0);
    let before = config(&root);
    let ran = root.run("init", "");
    assert_eq!(ran.code, 0, "{}", ran.errors);
    assert!(ran.errors.contains("Nothing is changed"), "{}", ran.errors);
    assert_eq!(config(&root), before);

    // In a terminal, Enter keeps it too.
    let (code, shown) = in_a_terminal(&root, &["--no-test"], "\n\n\n\n\n");
    assert_eq!(code, 0, "{shown}");
    assert_eq!(config(&root), before, "{shown}");

    // What is asked for, and nothing else.
    let ran = root.run("init --model llama3.2 --no-test", "");
    assert_eq!(ran.code, 0, "{}", ran.errors);
    let mut expected = before;
    expected["model"] = "llama3.2".into();
    assert_eq!(config(&root), expected);
}

#[test]
fn a_password_of_the_environment_is_used() {
    let root = DataDirectoryUnderTest::default();
    let directory = root.path().to_str().unwrap();
    let words = ["init", "--data-dir", directory];
    let ran = run_with(&words, "", &[("HEARTH_ADMIN_PASSWORD", "correct horse")]);
    assert_eq!((ran.code, ran.output.as_str()), (0, ""), "{}", ran.errors);
}
