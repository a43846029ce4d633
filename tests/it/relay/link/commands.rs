//! `hearth relay join`, `status` and `leave`, and a machine from afar.

use std::fs;

use serde_json::{Value, json};

use support::eventually;
use support::home::{PASSWORD, TemporaryDirectory, make_people, write_config};
use support::program::{Program, finish, hearth, printed, run};
use support::relay::{Forwarder, TOKEN};

/// Runs `hearth` with these variables.
fn hearth_with(
    folder: &TemporaryDirectory,
    variables: &[(&str, &str)],
    words: &[&str],
) -> std::process::Output {
    let mut command = hearth(folder.path());
    command.envs(variables.iter().copied()).args(words);
    finish(&mut command)
}

#[test]
fn a_machine_joins_is_talked_to_from_afar_and_leaves() {
    let folder = TemporaryDirectory::new();
    write_config(folder.path(), json!({}));
    let tokens = make_people(folder.path());
    let program = Program::serve(folder.path());
    let relay = Forwarder::start();
    let url = format!("http://{}", relay.address);
    let join = |token: &str| {
        hearth_with(
            &folder,
            &[("AUTH_TOKEN", token)],
            &["relay", "join", &url, "--qr"],
        )
    };
    let wrong = join(&"x".repeat(32));
    assert!(
        printed(&wrong).contains("rejects the token"),
        "{}",
        printed(&wrong)
    );
    let joined = join(TOKEN);
    let said = printed(&joined);
    assert!(joined.status.success(), "{said}");
    assert!(
        said.contains("reloaded it.") && said.contains("██"),
        "{said}"
    );
    assert!(said.contains("The link is up."), "{said}");
    assert!(!said.contains(TOKEN));
    let address = said
        .lines()
        .find_map(|line| line.strip_prefix("address"))
        .unwrap()
        .trim();
    assert!(address.starts_with(&format!("ws://{}/ws?machine_id=", relay.address)));
    let config: Value =
        serde_json::from_slice(&fs::read(folder.path().join("config.json")).unwrap()).unwrap();
    assert_eq!(
        config["channels"][1],
        json!({
            "url": format!("ws://{}", relay.address), "auth_token": TOKEN,
            "type": "websocket", "name": "relay",
        })
    );
    assert!(printed(&join(TOKEN)).contains("already"));

    let status = || {
        let ran = run(folder.path(), &["relay", "status", "--json"]);
        assert!(ran.status.success(), "{}", printed(&ran));
        serde_json::from_slice::<Value>(&ran.stdout).unwrap()
    };
    eventually("linked", || {
        (status()["relays"][0]["state"] == "linked").then_some(())
    });
    let chat = |variables: &[(&str, &str)]| {
        hearth_with(
            &folder,
            variables,
            &["chat", "--url", address, "what is nightingale?"],
        )
    };
    let variables = [
        ("HEARTH_TOKEN", tokens.user.as_str()),
        ("HEARTH_RELAY_TOKEN", TOKEN),
    ];
    let answered = chat(&variables);
    assert!(answered.status.success(), "{}", printed(&answered));
    assert!(!answered.stdout.is_empty());
    relay.lies.store(true, std::sync::atomic::Ordering::SeqCst);
    let warned = chat(&variables);
    assert!(
        printed(&warned).contains("the key of another machine"),
        "{}",
        printed(&warned)
    );

    let left = run(folder.path(), &["relay", "leave", "relay"]);
    assert!(left.status.success(), "{}", printed(&left));
    assert_eq!(status()["relays"], json!([]));
    let seen = relay.seen();
    let seen = String::from_utf8_lossy(&seen);
    assert!(seen.contains("secure"));
    for word in ["nightingale", &tokens.user, PASSWORD] {
        assert!(!seen.contains(word), "{word}");
    }
    assert_eq!(program.signal("TERM"), Some(0));
}

#[test]
fn a_channel_is_placed_in_every_form_of_the_file() {
    let relay = Forwarder::start();
    for (before, place) in [
        (json!({}), "/channels/far.off"),
        (
            json!({ "channels": { "lan": { "type": "tcp", "port": 0 } } }),
            "/channels/far.off",
        ),
        (
            json!({ "channels": [{ "name": "lan", "type": "tcp", "port": 0 }] }),
            "/channels/1",
        ),
    ] {
        let folder = TemporaryDirectory::new();
        let path = folder.path().join("config.json");
        fs::write(&path, before.to_string()).unwrap();
        let url = format!("ws://{}/ws", relay.address);
        let words = [
            "relay",
            "join",
            &url,
            "--name",
            "far.off",
            "--encryption",
            "required",
        ];
        let joined = hearth_with(&folder, &[("AUTH_TOKEN", TOKEN)], &words);
        assert!(joined.status.success(), "{}", printed(&joined));
        let file = || serde_json::from_slice::<Value>(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(file().pointer(place).unwrap()["encryption"], "required");
        let left = run(folder.path(), &["relay", "leave", "far.off"]);
        assert!(left.status.success(), "{}", printed(&left));
        assert_eq!(file().pointer(place), None);
    }
}
