//! What is written to people is in the language of their choice, else in that of their browser.

use serde_json::{Value, json};

use support::client::Client;
use support::eventually;
use support::home::{Home, PASSWORD};
use support::http::post;
use support::model::{Act, Model};
use support::program::{finish, free_port, hearth, printed};
use support::receiver::Receiver;

/// Signs in as a page does in a browser of this language; returns what is chosen.
fn sign_in(client: &mut Client, token: &str, language: &str) -> Value {
    let auth = json!({ "type": "auth", "token": token, "language": language });
    client.ask(auth)["language"].clone()
}

fn clock(client: &mut Client) -> String {
    let tools = client.ask(json!({ "type": "list_tools" }));
    let mut tools = tools["tools"].as_array().unwrap().iter();
    let clock = tools.find(|one| one["name"] == "current_time").unwrap();
    clock["label"].as_str().unwrap().to_owned()
}

#[test]
fn a_browser_says_its_language_and_a_person_chooses_another() {
    let home = Home::offline();
    let mut client = home.websocket(&home.tokens.user);
    assert_eq!(clock(&mut client), "Clock");
    let token = &home.tokens.user;
    assert_eq!(sign_in(&mut client, token, "de-AT"), Value::Null);
    assert_eq!(clock(&mut client), "Uhr");
    // A language without words changes nothing.
    sign_in(&mut client, token, "pl");
    assert_eq!(clock(&mut client), "Uhr");
    let set = |language: Value| json!({ "type": "set_language", "language": language });
    assert_eq!(client.ask(set(json!("fr")))["language"], "fr");
    assert_eq!(sign_in(&mut client, token, "de"), "fr");
    assert_eq!(clock(&mut client), "Horloge");
    assert_eq!(client.refused(set(json!("pl"))), "invalid_request");
    assert_eq!(clock(&mut home.admin()), "Clock");

    // In a terminal, too.
    let chosen = |language: &str| {
        let mut command = hearth(home.folder.path());
        command.args(["account", "language", language]);
        printed(&finish(command.env("HEARTH_TOKEN", token)))
    };
    assert!(chosen("nl").contains("nl now"));
    assert_eq!(clock(&mut client), "Klok");
    assert!(chosen("").contains("that of your browser"));
    assert_eq!(clock(&mut client), "Uhr");
}

#[test]
fn offline_answers_are_in_the_language_of_whoever_asks() {
    let home = Home::start(json!({ "permission_mode": "allow" }));
    let mut client = home.websocket(&home.tokens.user);
    sign_in(&mut client, &home.tokens.user, "de");
    let said = client.chat("Merk dir, dass die Tonnen am Montag rausmüssen");
    let said = said["response"].as_str().unwrap();
    assert!(said.starts_with("Das merke ich mir."), "{said}");
    let said = client.chat("Was weißt du über die Tonnen?");
    let said = said["response"].as_str().unwrap();
    assert!(said.contains("Das habe ich mir gemerkt:\n"), "{said}");
    assert!(said.contains("die Tonnen am Montag rausmüssen"), "{said}");
    let said = home.admin().chat("What do you remember about nothing?");
    let said = said["response"].as_str().unwrap();
    assert!(said.starts_with("This is what I remember:"), "{said}");
}

#[test]
fn questions_reminders_and_notifications_are_in_the_language_of_their_person() {
    let calls = Act::call("remember", json!({ "content": "Milch" }));
    let (model, phone) = (Model::acting(vec![calls]), Receiver::start());
    let url = format!("http://{}", phone.address);
    let home = Home::start(model.config_with(json!({
        "permission_mode": "ask",
        "people": { "user": { "notifications": { "ntfy": { "url": url, "topic": "t" }, "content": true } } },
    })));
    let mut user = home.websocket(&home.tokens.user);
    sign_in(&mut user, &home.tokens.user, "de");
    user.ask(json!({ "type": "subscribe" }));
    user.send(&json!({ "type": "chat", "message": "Milch!" }));
    let asked = user.event("approval.requested");
    assert_eq!(asked["reason"], "Der Assistent möchte sich merken: Milch");
    assert_eq!(asked["origin"], "user fragt");
    // Who answers reads it in their own language.
    let mut admin = home.websocket(&home.tokens.admin);
    sign_in(&mut admin, &home.tokens.admin, "es");
    let asked = admin.ask(json!({ "type": "list_approvals" }));
    let asked = &asked["approvals"][0];
    assert_eq!(asked["reason"], "El asistente quiere recordar: Milch");
    assert_eq!(asked["origin"], "user pregunta");
    let labels = asked["answers"].as_array().unwrap().iter();
    let labels: Vec<&str> = labels.map(|one| one["label"].as_str().unwrap()).collect();
    assert_eq!(
        labels,
        [
            "Permitir una vez",
            "Permitir aquí",
            "Permitir siempre",
            "Denegar"
        ]
    );
    let test = json!({ "type": "test_notification", "name": "user" });
    admin.ask(test);
    let told = phone.wait_for(1).remove(0).body;
    assert_eq!(
        told["message"],
        "Benachrichtigungen erreichen dieses Telefon"
    );
    let mut weekly = json!({ "type": "create_schedule", "say": "Tonnen", "cron": "30 7 * * 1" });
    // The first connection waits for its chat.
    let mut user = home.websocket(&home.tokens.user);
    let made = user.ask(weekly.clone());
    assert_eq!(made["when"], "jeden Montag um 7:30");
    let made = admin.ask(weekly.clone());
    assert_eq!(made["when"], "cada lunes a las 7:30");
    weekly["people"] = json!(["user"]);
    admin.ask(weekly);
    let theirs = user.ask(json!({ "type": "list_schedules" })).to_string();
    assert!(theirs.contains("Von admin: Tonnen"), "{theirs}");
}

#[test]
fn errors_are_in_the_language_of_a_person_and_in_english_for_a_program() {
    let home = Home::offline();
    let token = &home.tokens.user;
    let why = |client: &mut Client, request: &Value| {
        client.send(request);
        client.response()["error"].as_str().unwrap().to_owned()
    };
    let mut person = home.websocket(token);
    sign_in(&mut person, token, "de-DE");
    // A program that has the same token names no language, and a terminal none of its own.
    let mut program = home.websocket(token);
    let mut terminal = home.websocket(token);
    sign_in(&mut terminal, token, "");
    let backup = json!({ "type": "start_backup" });
    let of_admins = "dafür ist die Rolle admin nötig; deine ist user";
    assert_eq!(why(&mut person, &backup), of_admins);
    assert_eq!(why(&mut terminal, &backup), of_admins);
    assert_eq!(
        why(&mut program, &backup),
        "this needs the role admin; yours is user"
    );
    let id = "conv_0000000000001";
    let missing = json!({ "type": "get_messages", "conversation_id": id });
    // An id says nothing to a person.
    let there_is_none = "das gibt es nicht: Unterhaltung";
    assert_eq!(why(&mut person, &missing), there_is_none);
    let in_english = format!("there is no conversation {id}");
    assert_eq!(why(&mut program, &missing), in_english);
    let mut command = hearth(home.folder.path());
    command.args(["chat", "--conversation", id, "Hallo"]);
    let said = printed(&finish(command.env("HEARTH_TOKEN", token)));
    assert!(said.contains(there_is_none), "{said}");

    let wrong = |language: Option<&str>| {
        let mut body = json!({ "username": "user", "password": format!("{PASSWORD}?") });
        if let Some(language) = language {
            body["language"] = json!(language);
        }
        let by_http = post(home.address(), "/auth", &[], &body).json()["error"].clone();
        body["type"] = json!("auth");
        let mut stranger = Client::websocket(home.address());
        assert_eq!(why(&mut stranger, &body), by_http);
        by_http
    };
    assert_eq!(wrong(Some("de")), "Name oder Passwort ist falsch");
    assert_eq!(wrong(None), "wrong user name or password");
}

#[test]
fn what_a_model_server_says_is_in_the_language_of_whoever_reads_it() {
    let model = Model::acting(vec![Act::error(401, "", "no")]);
    let mut home = Home::start(model.config_with(json!({ "api_key": "sk-of-this-home" })));
    let token = home.tokens.user.clone();
    let mut person = home.websocket(&token);
    sign_in(&mut person, &token, "de");
    let hello =
        json!({ "type": "chat", "message": "Hallo", "audience": "household", "stream": true });
    person.send(&hello);
    let failed = person.event("chat.failed");
    let said = person.response()["error"].as_str().unwrap().to_owned();
    assert!(
        said.starts_with("Der Modellserver unter 127.0.0.1"),
        "{said}"
    );
    assert!(
        said.contains(" hat den API-Schlüssel abgelehnt (401) (Kennung "),
        "{said}"
    );
    assert_eq!(failed["error"], said);
    assert_eq!(failed["key"], "error.model.wrong_key");
    // It is stored for every language, and a program reads it in English.
    home.restart();
    let of_turn = |token: &str, language: Option<&str>| {
        let mut client = home.websocket(token);
        if let Some(language) = language {
            sign_in(&mut client, token, language);
        }
        let turn = client.ask(json!({ "type": "get_turn", "turn_id": failed["turn_id"] }));
        assert_eq!(turn["key"], failed["key"]);
        turn["error"].as_str().unwrap().to_owned()
    };
    assert_eq!(of_turn(&token, Some("de")), said);
    let theirs = of_turn(&home.tokens.admin, Some("fr"));
    assert!(
        theirs.contains(" a refusé la clé d’API (401) (référence "),
        "{theirs}"
    );
    let program = of_turn(&home.tokens.admin, None);
    assert!(
        program.contains(" refused the API key (401) (reference "),
        "{program}"
    );
    // An admin alone reads what the server said, too.
    let admin = &home.tokens.admin;
    let mut admin_page = home.websocket(admin);
    sign_in(&mut admin_page, admin, "nl");
    admin_page.send(&json!({ "type": "chat", "message": "Hallo", "audience": "private" }));
    let said = admin_page.response()["error"].as_str().unwrap().to_owned();
    assert!(
        said.contains(" weigerde de API-sleutel (401): no (HTTP 401"),
        "{said}"
    );
}

#[test]
fn the_time_of_a_reminder_is_in_the_language_of_whoever_reads_it() {
    let home = Home::start(json!({ "time_zone": "UTC" }));
    let mut user = home.websocket(&home.tokens.user);
    sign_in(&mut user, &home.tokens.user, "de");
    let tea = json!({ "type": "create_schedule", "say": "Tee", "at": "2039-03-06T18:00" });
    let made = user.ask(tea);
    for name in ["when", "next"] {
        assert_eq!(made[name], "Sonntag, 6. März 2039, 18:00", "{made}");
    }
    let soon = json!({ "type": "create_schedule", "say": "Tee", "at": "in 24 hours" });
    let made = user.ask(soon);
    let when = made["when"].as_str().unwrap();
    assert!(when.starts_with("morgen um "), "{made}");
}

#[test]
fn the_end_of_a_turn_is_said_to_each_reader_in_their_own_language() {
    let model = Model::acting(vec![Act::error(401, "", "no")]);
    let home = Home::start(model.config_with(json!({ "api_key": "sk-of-this-home" })));
    let (user, admin) = (&home.tokens.user, &home.tokens.admin);
    let reader = |token: &str, language: Option<&str>| {
        let mut client = home.websocket(token);
        if let Some(language) = language {
            sign_in(&mut client, token, language);
        }
        client.ask(json!({ "type": "subscribe", "events": ["chat.failed"] }));
        client
    };
    let mut french = reader(admin, Some("fr"));
    let mut german = reader(user, Some("de"));
    let mut program = reader(user, None);
    let mut asker = home.websocket(user);
    sign_in(&mut asker, user, "de");
    asker.send(&json!({ "type": "chat", "message": "Hallo", "audience": "household" }));
    let answered = asker.response()["error"].as_str().unwrap().to_owned();
    let failed = |client: &mut Client| client.event("chat.failed");
    let own = failed(&mut german);
    assert_eq!(own["error"], answered);
    let theirs = failed(&mut french);
    let said = theirs["error"].as_str().unwrap();
    assert!(
        said.contains(" a refusé la clé d’API (401) (référence "),
        "{said}"
    );
    let plain = failed(&mut program);
    let said = plain["error"].as_str().unwrap();
    assert!(
        said.contains(" refused the API key (401) (reference "),
        "{said}"
    );
    for other in [&theirs, &plain] {
        for same in ["seq", "code", "key", "turn_id"] {
            assert_eq!(other[same], own[same]);
        }
    }
    // Who was away reads the same.
    let since = own["seq"].as_u64().unwrap() - 1;
    for (token, language, missed) in [
        (admin, Some("fr"), theirs),
        (user, Some("de"), own),
        (user, None, plain),
    ] {
        let mut client = reader(token, language);
        client.ask(json!({ "type": "subscribe", "events": ["chat.failed"], "since": since }));
        assert_eq!(failed(&mut client), missed);
    }
}

#[test]
fn what_is_wrong_with_a_time_or_a_server_is_in_the_language_of_whoever_reads_it() {
    let closed = format!("http://127.0.0.1:{}", free_port());
    let model = Model::saying("Hello");
    let home = Home::start(model.config_with(json!({ "channels": [
        { "name": "lan", "type": "tcp", "port": 0 },
        { "name": "hooks", "type": "webhook", "accounts": {
            "door": { "incoming_path": "/door", "outgoing_url": closed },
        } },
    ], "mcp_servers": { "away": { "url": closed } } })));
    let token = &home.tokens.admin;
    let (mut person, mut program) = (home.admin(), home.admin());
    sign_in(&mut person, token, "de");
    let why = |client: &mut Client, at: &str, value: &str| {
        client.send(&json!({ "type": "create_schedule", "say": "Tee", at: value }));
        client.response()["error"].as_str().unwrap().to_owned()
    };
    for (name, value, german, english) in [
        ("at", "bald", ", nicht \"bald\"", ", not \"bald\""),
        (
            "at",
            "2020-01-01T10:00",
            "liegt in der Vergangenheit: 2020-01-01 10:00",
            "is in the past: 2020-01-01 10:00",
        ),
        (
            "cron",
            "0 25 * * *",
            "\"cron\", Stunde: \"25\" geht nicht: möglich sind 0 bis 23",
            "the hour of \"cron\" cannot be \"25\": values are 0 to 23",
        ),
        (
            "cron",
            "0 0 30 2 *",
            "tritt nie ein",
            "\"cron\" 0 0 30 2 * never comes",
        ),
    ] {
        let said = why(&mut person, name, value);
        assert!(said.contains(german), "{said}");
        let said = why(&mut program, name, value);
        assert!(said.contains(english), "{said}");
    }
    // A model that is tried.
    let test = json!({ "type": "update_config", "test": true, "config": {
        "provider": "openai-compatible", "base_url": closed, "model": "m",
    } });
    let tested = |client: &mut Client| client.ask(test.clone())["message"].take();
    let said = tested(&mut person);
    let said = said.as_str().unwrap();
    assert!(
        said.starts_with("Der Modellserver unter 127.0.0.1"),
        "{said}"
    );
    assert!(
        said.ends_with(" ist nicht erreichbar; prüfe, ob es läuft"),
        "{said}"
    );
    let said = tested(&mut program);
    let said = said.as_str().unwrap();
    assert!(
        said.ends_with(" cannot be reached; check that it is running"),
        "{said}"
    );
    // A receiver, a calendar and an MCP server that are not there.
    let body = json!({ "message": "Ding" });
    assert_eq!(post(home.address(), "/door", &[], &body).status, 202);
    let add = json!({ "type": "add_calendar", "name": "Müll", "url": format!("{closed}/x.ics") });
    person.ask(add);
    for (client, refused, away, unreachable) in [
        (
            &mut person,
            "keine Antwort: Verbindung abgelehnt",
            "keine Verbindung: Verbindung abgelehnt",
            "sein Server ist nicht erreichbar: keine Verbindung: Verbindung abgelehnt",
        ),
        (
            &mut program,
            "no answer: Connection refused",
            "no connection: Connection refused",
            "its server cannot be reached: no connection: Connection refused",
        ),
    ] {
        let said = eventually("it could not be delivered", || {
            let listed = client.ask(json!({ "type": "list_deliveries" }));
            let said = listed["deliveries"][0]["last_error"].as_str();
            said.map(str::to_owned)
        });
        assert_eq!(said, refused);
        let said = eventually("the MCP server is down", || {
            let info = client.ask(json!({ "type": "server_info" }));
            let said = info["mcp_servers"][0]["problem"].as_str();
            said.map(str::to_owned)
        });
        assert_eq!(said, away);
        let said = eventually("the calendar could not be read", || {
            let listed = client.ask(json!({ "type": "list_calendars" }));
            let said = listed["calendars"][0]["problem"].as_str();
            said.map(str::to_owned)
        });
        assert!(said.contains(unreachable), "{said}");
    }
}

#[test]
fn calls_and_questions_are_said_live_to_each_reader_in_their_own_language() {
    let calls = Act::call("remember", json!({ "content": "Milch" }));
    let model = Model::acting(vec![calls]);
    let home = Home::start(model.config_with(json!({ "permission_mode": "ask" })));
    let (user, admin) = (&home.tokens.user, &home.tokens.admin);
    let events = json!({ "type": "subscribe", "events": ["chat.tool_call", "approval.requested"] });
    let reader = |token: &str, language: Option<&str>| {
        let mut client = home.websocket(token);
        if let Some(language) = language {
            sign_in(&mut client, token, language);
        }
        client.ask(events.clone());
        client
    };
    let mut spanish = reader(admin, Some("es"));
    let mut german = reader(user, Some("de"));
    // A program reads what its person does.
    let mut program = reader(admin, None);
    let mut asker = home.websocket(user);
    sign_in(&mut asker, user, "de");
    asker.send(&json!({ "type": "chat", "message": "Milch!", "audience": "household" }));
    let read = |client: &mut Client| {
        let call = client.event("chat.tool_call");
        let asked = client.event("approval.requested");
        let said = ["sentence", "label"].map(|field| call[field].as_str().unwrap().to_owned());
        let question = ["reason", "origin"].map(|field| asked[field].as_str().unwrap().to_owned());
        (said, question, asked)
    };
    let (said, question, own) = read(&mut german);
    assert_eq!(said, ["Sich merken: Milch", "Merken"]);
    let expected = ["Der Assistent möchte sich merken: Milch", "user fragt"];
    assert_eq!(question, expected);
    let (said, question, theirs) = read(&mut spanish);
    assert_eq!(said, ["Recordar: Milch", "Recordar"]);
    let expected = ["El asistente quiere recordar: Milch", "user pregunta"];
    assert_eq!(question, expected);
    assert_eq!(theirs["answers"][0]["label"], "Permitir una vez");
    assert_eq!(
        (&theirs["seq"], &theirs["approval_id"]),
        (&own["seq"], &own["approval_id"])
    );
    assert_eq!(read(&mut program).2, theirs);
    // Who was away reads the same.
    let mut late = home.websocket(admin);
    sign_in(&mut late, admin, "es");
    let mut again = events.clone();
    again["since"] = json!(0);
    late.ask(again);
    assert_eq!(read(&mut late).2, theirs);
    // Who decides reads what they decided.
    let approve = json!({ "type": "approve", "approval_id": own["approval_id"] });
    assert_eq!(late.ask(approve)["origin"], "user pregunta");
}

#[test]
fn why_a_setting_is_refused_is_in_the_language_of_its_reader() {
    let home = Home::offline();
    let token = &home.tokens.admin;
    let mut person = home.websocket(token);
    sign_in(&mut person, token, "de");
    let mut program = home.websocket(token);
    for (config, german, english) in [
        (
            json!({ "max_tokens": 0 }),
            "bei „max_tokens“ wird eine ganze Zahl von 1 bis 10000000 erwartet, nicht 0",
            "\"max_tokens\" must be an integer from 1 to 10000000, not 0",
        ),
        (
            json!({ "temperature": "warm" }),
            "bei „temperature“ wird eine Zahl von 0 bis 2 erwartet, nicht \"warm\"",
            "\"temperature\" must be a number from 0 to 2, not \"warm\"",
        ),
        (
            json!({ "permission_mode": "asks" }),
            "bei „permission_mode“ wird \"ask\", \"allow\" oder \"deny\" erwartet, nicht \"asks\" (ist „ask“ gemeint?)",
            "\"permission_mode\" must be \"ask\", \"allow\" or \"deny\", not \"asks\" (did you mean \"ask\"?)",
        ),
        (
            json!({ "base_url": "hearth" }),
            "bei „base_url“ wird eine URL mit https:// oder http:// am Anfang erwartet, nicht \"hearth\"",
            "\"base_url\" must be a URL that begins with https:// or http://, not \"hearth\"",
        ),
        (
            json!({ "modell": "m", "backup": { "kept": 1 } }),
            "es gibt keine Einstellung \"modell\" (ist „model“ gemeint?); \"backup\" lässt sich nur in der Konfigurationsdatei ändern",
            "there is no setting \"modell\" (did you mean \"model\"?); \"backup\" can only be changed in the configuration file",
        ),
        (
            json!({ "retention": { "days": 1 } }),
            "unbekannter Schlüssel \"days\" in „retention“ (bekannt sind dort: conversations_days)",
            "unknown key \"days\" in \"retention\" (known there: conversations_days)",
        ),
    ] {
        let update = json!({ "type": "update_config", "config": config });
        for (client, expected) in [(&mut person, german), (&mut program, english)] {
            client.send(&update);
            assert_eq!(client.response()["error"], expected);
        }
    }
}
