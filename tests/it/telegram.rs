//! The bot of Telegram: from an update to the messages that answer it.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use base::people::UserRole;
use support::client::Client;
use support::eventually;
use support::home::{Home, TemporaryDirectory, make_people, write_config};
use support::model::{Act, Model};
use support::program::{Program, run};
use support::receiver::Receiver;
use support::telegram::{Telegram, refusal};
use support::voice::VoiceServer;

const CHAT: i64 = 11;
const OTHER: i64 = 22;
const HOW_TO_LINK: &str = "I do not know you yet.";
const OVER: &str = "This no longer waits for your answer.";

fn config(model: &Model, telegram: &Telegram, more: Value) -> Value {
    let mut config = model.config_with(more);
    config["channels"] = json!([
        { "name": "lan", "type": "tcp", "port": 0 },
        telegram.channel(),
    ]);
    config
}

fn link(telegram: &Telegram, client: &mut Client, chat: i64) {
    let made = client.ask(json!({ "type": "link_sender", "account": "telegram" }));
    telegram.says(chat, &format!("/link {}", made["code"].as_str().unwrap()));
    eventually("the chat is linked", || {
        let told = telegram.told(chat);
        told.last()?
            .starts_with("This chat is linked")
            .then_some(())
    });
}

/// Waits until a chat was told this last.
fn hears(telegram: &Telegram, chat: i64, text: &str) {
    eventually(text, || (telegram.told(chat).last()? == text).then_some(()));
}

/// Somebody presses a button; returns what it is answered.
fn press(telegram: &Telegram, chat: i64, data: &str) -> String {
    let count = telegram.calls("answerCallbackQuery").len() + 1;
    telegram.happens(json!({ "callback_query": {
        "id": "q", "from": { "id": chat }, "data": data,
        "message": { "message_id": 9, "chat": { "id": chat }, "text": "?" },
    } }));
    let answers = telegram.wait_for("answerCallbackQuery", count);
    answers[count - 1]["text"].as_str().unwrap().to_owned()
}

/// What the buttons under the last message of a chat say when they are pressed, once it is this.
fn buttons_under(telegram: &Telegram, text: &str) -> [String; 2] {
    eventually(text, || {
        let last = telegram.calls("sendMessage").pop()?;
        let buttons = last["reply_markup"]["inline_keyboard"][0].as_array()?;
        let data = |at: usize| buttons[at]["callback_data"].as_str().unwrap().to_owned();
        (last["text"] == text).then(|| [data(0), data(1)])
    })
}

/// Nothing that is said has the token.
fn assert_secret(home: &Home) {
    let mut admin = home.admin();
    for request in ["get_config", "list_deliveries", "server_info"] {
        let answer = admin.ask(json!({ "type": request })).to_string();
        assert!(!answer.contains("AAH-secret"), "{answer}");
    }
}

#[test]
fn a_linked_person_talks_to_the_assistant() {
    let (model, telegram) = (Model::saying("Hello there."), Telegram::start());
    let home = Home::start(config(&model, &telegram, json!({})));
    let mut user = home.websocket(&home.tokens.user);
    link(&telegram, &mut user, CHAT);
    assert!(model.requests().is_empty(), "no model sees the code");
    telegram.says(CHAT, "plums");
    hears(&telegram, CHAT, "Hello there.");
    assert!(
        !telegram.calls("sendChatAction").is_empty(),
        "somebody writes"
    );
    telegram.says(CHAT, "pears");
    eventually("a second reply", || {
        (telegram.told(CHAT).len() == 3).then_some(())
    });
    let request = model.requests().pop().unwrap().to_string();
    assert!(request.contains("plums"), "one conversation: {request}");
    assert!(
        !request.contains("\\n<outside "),
        "the words are the person's own: {request}"
    );
    let listed = user.ask(json!({ "type": "list_conversations" }));
    let own = listed["conversations"].as_array().unwrap().iter();
    let own = own.filter(|one| one["channel"] == "sender:telegram");
    let own: Vec<&Value> = own.collect();
    assert_eq!(own.len(), 1, "{listed}");
    assert_eq!(
        (&own[0]["owner"], &own[0]["audience"]),
        (&json!("user"), &json!("private"))
    );
    // Another conversation, and what others wrote is text from outside.
    telegram.says(CHAT, "/new");
    telegram.sends(
        CHAT,
        json!({ "text": "cherries", "forward_origin": { "type": "user" } }),
    );
    eventually("the reply to what was forwarded", || {
        (telegram.told(CHAT).len() == 5).then_some(())
    });
    let request = model.requests().pop().unwrap();
    let messages = request["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 2, "{request}");
    assert!(
        messages[1]["content"].to_string().contains("<outside "),
        "{request}"
    );
    // What is edited is not read.
    telegram.happens(json!({ "edited_message": {
        "message_id": 7, "chat": { "id": CHAT, "type": "private" }, "from": { "id": CHAT }, "text": "x",
    } }));
    hears(
        &telegram,
        CHAT,
        "I do not read edited messages: send it again.",
    );
    // Unlinked, it is a stranger.
    user.ask(json!({ "type": "unlink_sender", "account": "telegram", "sender": CHAT.to_string() }));
    telegram.says(CHAT, "grapes");
    eventually("a stranger", || {
        telegram
            .told(CHAT)
            .last()?
            .starts_with(HOW_TO_LINK)
            .then_some(())
    });
    assert_eq!(model.requests().len(), 3);
    assert_secret(&home);
}

#[test]
fn strangers_and_groups_are_refused_once() {
    let (model, telegram) = (Model::saying("Hello."), Telegram::start());
    let home = Home::start(config(&model, &telegram, json!({})));
    let mut user = home.websocket(&home.tokens.user);
    for text in ["hello", "hello?", "/start", "hello!"] {
        telegram.says(OTHER, text);
        telegram.happens(json!({ "message": {
            "message_id": 1, "chat": { "id": -5, "type": "supergroup" }, "from": { "id": CHAT }, "text": text,
        } }));
    }
    link(&telegram, &mut user, CHAT);
    let stranger = telegram.told(OTHER);
    assert!(
        stranger.len() == 1 && stranger[0].starts_with(HOW_TO_LINK),
        "{stranger:?}"
    );
    assert_eq!(telegram.told(-5), ["I answer in private chats only."]);
    assert!(model.requests().is_empty());
    // Guesses are bounded.
    for number in 0..6 {
        telegram.says(
            OTHER,
            &format!("/link aaaaaaaaa{}", char::from(b'b' + number)),
        );
    }
    eventually("who guesses waits", || {
        telegram
            .told(OTHER)
            .last()?
            .starts_with("Too many codes")
            .then_some(())
    });
}

#[test]
fn a_long_reply_comes_in_pieces_and_each_is_repeated_only_without_its_confirmation() {
    let long = ["a", "b", "c"].map(|letter| letter.repeat(3_000));
    let reply: &'static str = Box::leak(long.join("\n\n").into_boxed_str());
    let (model, telegram) = (Model::saying(reply), Telegram::start());
    let home = Home::start(config(&model, &telegram, json!({})));
    let mut user = home.websocket(&home.tokens.user);
    link(&telegram, &mut user, CHAT);
    // The first piece is confirmed, the second is not, and then it is too much.
    let ok = || Some((200, json!({ "ok": true, "result": true })));
    let mut busy = refusal(429, "Too Many Requests");
    busy["parameters"] = json!({ "retry_after": 60 });
    telegram.script("sendMessage", [ok(), None, Some((429, busy))]);
    telegram.says(CHAT, "tell me all");
    telegram.wait_for("sendMessage", 3);
    home.server().advance_clock(Duration::from_secs(10));
    telegram.wait_for("sendMessage", 4);
    // Not before the time that Telegram named.
    let waits = || {
        let listed = home
            .server()
            .store()
            .seen(&store::Viewer::server())
            .deliveries(None, 10);
        listed
            .unwrap()
            .into_iter()
            .filter(|one| one.attempts == 2)
            .map(|one| one.next_at)
            .min()
    };
    let next = eventually("the third attempt is planned", waits);
    assert!(next.since(home.clock.now()) >= Duration::from_secs(45));
    home.server().advance_clock(Duration::from_secs(90));
    eventually("all pieces", || {
        (telegram.told(CHAT).last()? == &long[2]).then_some(())
    });
    let told: Vec<String> = telegram.told(CHAT).split_off(1);
    let letters: Vec<&str> = told.iter().map(|piece| &piece[..1]).collect();
    assert_eq!(letters, ["a", "b", "b", "b", "c"]);
}

#[test]
fn a_restart_loses_and_repeats_nothing() {
    let model = Model::start(|_, number| match number {
        0 => Act::Stall("first".to_owned()),
        _ => Act::say("second"),
    });
    let telegram = Telegram::start();
    let mut home = Home::start(config(&model, &telegram, json!({})));
    let mut user = home.websocket(&home.tokens.user);
    link(&telegram, &mut user, CHAT);
    let update = telegram.says(CHAT, "remember the milk");
    model.wait_for_requests(1);
    // Acknowledged by the next request alone, after it was on disk.
    eventually("it is acknowledged", || {
        let polls = telegram.calls("getUpdates");
        (polls.last()?["offset"] == update + 1).then_some(())
    });
    drop(user);
    home.restart_at_once();
    hears(&telegram, CHAT, "second");
    // The same update again, as after a crash before it was noted.
    home.stop();
    let store = store::Store::open(
        &home.folder.path().join("hearth.db"),
        base::clock::Clock::system(),
    )
    .unwrap();
    store.set_meta("telegram 4242", "0").unwrap();
    store.close();
    home.restart();
    telegram.says(CHAT, "and the bread");
    eventually("the new one is answered", || {
        (model.requests().len() == 3).then_some(())
    });
    let asked = model.requests().pop().unwrap().to_string();
    assert_eq!(asked.matches("remember the milk").count(), 1, "{asked}");
    assert!(asked.contains("and the bread"), "{asked}");
}

#[test]
fn a_question_is_answered_by_a_button_of_whoever_was_asked() {
    let telegram = Telegram::start();
    let model = Model::start(|request, _| {
        let last = request["messages"]
            .as_array()
            .unwrap()
            .last()
            .unwrap()
            .clone();
        match last["role"] == "tool" {
            true => Act::say(last["content"].as_str().unwrap()),
            false if last["content"].to_string().contains("command") => {
                Act::call("run_command", json!({ "command": "true" }))
            }
            false => Act::call("remember", json!({ "content": "The cat is Ada." })),
        }
    });
    let more = json!({ "permission_mode": "ask", "tools": { "run_command": { "enabled": true } } });
    let home = Home::start(config(&model, &telegram, more));
    let (mut admin, mut eve) = (
        home.admin(),
        home.websocket(&home.add_person("eve", UserRole::User)),
    );
    link(&telegram, &mut admin, CHAT);
    link(&telegram, &mut eve, OTHER);
    let question = |count: usize| {
        eventually("a question with buttons", || {
            let sent = telegram.calls("sendMessage");
            let asked: Vec<_> = sent
                .iter()
                .filter(|one| !one["reply_markup"].is_null())
                .collect();
            let asked = asked.get(count)?;
            let buttons = asked["reply_markup"]["inline_keyboard"][0].as_array()?;
            let data = |place: usize| buttons[place]["callback_data"].as_str().unwrap().to_owned();
            Some((asked["chat_id"].clone(), data(0), data(1)))
        })
    };
    let press = |chat: i64, data: &str| press(&telegram, chat, data);
    telegram.says(CHAT, "remember the cat");
    let (chat, allow, _) = question(0);
    assert_eq!(chat, json!(CHAT.to_string()));
    // From others it counts as if it did not exist.
    let over = OVER;
    assert_eq!(press(OTHER, &allow), over);
    assert!(press(33, &allow).starts_with(HOW_TO_LINK));
    assert_eq!(press(CHAT, &allow), "Allowed");
    assert_eq!(press(CHAT, &allow), over);
    eventually("it was remembered", || {
        telegram
            .told(CHAT)
            .last()?
            .contains("Remembered")
            .then_some(())
    });
    // As in no chat, an admin is one.
    telegram.says(CHAT, "run the command");
    let (_, allow, deny) = question(1);
    assert!(press(CHAT, &allow).contains("an admin must answer this"));
    assert!(press(CHAT, &deny).contains("an admin must answer this"));
    let waiting = admin.ask(json!({ "type": "list_approvals" }));
    let id = waiting["approvals"][0]["approval_id"].clone();
    admin.ask(json!({ "type": "deny", "approval_id": id }));
}

#[test]
fn pictures_files_and_voice_messages_are_taken() {
    let (model, telegram) = (Model::saying("Nice."), Telegram::start());
    let speech = VoiceServer::hearing("Where are the plums?");
    let more = json!({ "voice": { "transcription": { "url": speech.url(), "model": "w" } } });
    let home = Home::start(config(&model, &telegram, more));
    let mut user = home.websocket(&home.tokens.user);
    link(&telegram, &mut user, CHAT);
    let answered = |count: usize| {
        eventually("an answer", || {
            (telegram.told(CHAT).len() == count + 1).then_some(())
        })
    };
    telegram.sends(
        CHAT,
        json!({
            "caption": "What is this?", "photo": [{ "file_id": "small" }, { "file_id": "large" }],
        }),
    );
    answered(1);
    telegram.sends(
        CHAT,
        json!({
            "document": { "file_id": "d", "file_name": "list.txt", "mime_type": "text/plain" },
        }),
    );
    answered(2);
    let request = model.requests().pop().unwrap().to_string();
    assert!(request.contains("the bytes of files/d"), "{request}");
    telegram.sends(
        CHAT,
        json!({ "voice": { "file_id": "v", "mime_type": "audio/ogg" } }),
    );
    answered(3);
    let listed = user.ask(json!({ "type": "list_conversations" }));
    let id = listed["conversations"].as_array().unwrap().iter();
    let id = id
        .filter(|one| one["channel"] == "sender:telegram")
        .map(|one| one["conversation_id"].clone());
    let id = id.collect::<Vec<_>>().pop().unwrap();
    let got = user.ask(json!({ "type": "get_messages", "conversation_id": id }));
    assert!(got.to_string().contains("Where are the plums?"), "{got}");
    let files = |got: &Value| {
        let messages = got["messages"].as_array().unwrap().iter();
        let files = messages.filter_map(|one| one["attachments"].as_array());
        files
            .flatten()
            .map(|one| one["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(files(&got), ["picture.jpg", "list.txt"]);
}

#[test]
fn a_file_that_cannot_be_had_is_given_up_and_holds_up_nobody() {
    let (model, telegram) = (Model::saying("Nice."), Telegram::start());
    let home = Home::start(config(&model, &telegram, json!({})));
    let (mut admin, mut user) = (home.admin(), home.websocket(&home.tokens.user));
    link(&telegram, &mut user, CHAT);
    link(&telegram, &mut admin, OTHER);
    let file = || json!({ "document": { "file_id": "d", "file_name": "list.txt" } });
    // It hangs up each time.
    telegram.script("getFile", [None, None, None]);
    telegram.sends(CHAT, file());
    telegram.says(CHAT, "are you there?");
    eventually("it is given up", || {
        let told = telegram.told(CHAT);
        let at = told
            .iter()
            .position(|one| one.starts_with("I could not get that file"))?;
        (told.get(at + 1)? == "Nice.").then_some(())
    });
    assert_eq!(telegram.calls("getFile").len(), 3);
    // It wants a minute of patience, which another chat does not need.
    let mut busy = refusal(429, "Too Many Requests");
    busy["parameters"] = json!({ "retry_after": 60 });
    telegram.script("getFile", [Some((429, busy))]);
    let before = telegram.told(CHAT).len();
    telegram.sends(CHAT, file());
    telegram.wait_for("getFile", 4);
    telegram.says(CHAT, "and now?");
    telegram.says(OTHER, "hello");
    hears(&telegram, OTHER, "Nice.");
    assert_eq!(telegram.told(CHAT).len(), before, "each chat in order");
}

#[test]
fn what_waits_for_a_file_at_a_stop_is_taken_at_the_next_start() {
    let (model, telegram) = (Model::saying("Nice."), Telegram::start());
    let mut home = Home::start(config(&model, &telegram, json!({})));
    let mut user = home.websocket(&home.tokens.user);
    link(&telegram, &mut user, CHAT);
    let mut busy = refusal(429, "Too Many Requests");
    busy["parameters"] = json!({ "retry_after": 60 });
    telegram.script("getFile", [Some((429, busy))]);
    let update = telegram.sends(
        CHAT,
        json!({ "document": { "file_id": "d", "file_name": "list.txt" } }),
    );
    telegram.wait_for("getFile", 1);
    eventually("it is acknowledged", || {
        let polls = telegram.calls("getUpdates");
        (polls.last()?["offset"] == update + 1).then_some(())
    });
    drop(user);
    home.restart_at_once();
    hears(&telegram, CHAT, "Nice.");
    let request = model.requests().pop().unwrap().to_string();
    assert!(request.contains("the bytes of files/d"), "{request}");
}

#[test]
fn lower_numbers_count_after_a_quiet_week() {
    let (model, telegram) = (Model::saying("Hello."), Telegram::start());
    let home = Home::start(config(&model, &telegram, json!({})));
    let mut user = home.websocket(&home.tokens.user);
    link(&telegram, &mut user, CHAT);
    home.server()
        .advance_clock(Duration::from_secs(8 * 24 * 60 * 60));
    telegram.happens(json!({ "update_id": 7, "message": {
        "message_id": 7, "text": "hello",
        "chat": { "id": CHAT, "type": "private" }, "from": { "id": CHAT },
    } }));
    telegram.end_poll();
    hears(&telegram, CHAT, "Hello.");
}

#[test]
fn a_question_says_all_that_it_is_about_in_its_own_chat() {
    let telegram = Telegram::start();
    let command = "echo plums && ".repeat(500) + "true";
    let model = {
        let command = command.clone();
        Model::start(move |request, _| {
            let last = request["messages"].as_array().unwrap().last().unwrap();
            match last["role"] == "tool" {
                true => Act::say("Done."),
                false => Act::call("run_command", json!({ "command": command })),
            }
        })
    };
    let more = json!({ "permission_mode": "ask", "tools": { "run_command": { "enabled": true } } });
    let home = Home::start(config(&model, &telegram, more));
    let mut admin = home.admin();
    link(&telegram, &mut admin, CHAT);
    link(&telegram, &mut admin, OTHER);
    telegram.sends(
        CHAT,
        json!({ "text": "look", "forward_origin": { "type": "user" } }),
    );
    let asked = eventually("the whole question", || {
        let sent = telegram.calls("sendMessage");
        let end = sent.iter().position(|one| !one["reply_markup"].is_null())?;
        Some(sent[2..=end].to_vec())
    });
    assert!(asked.len() > 1, "{asked:?}");
    assert!(
        asked
            .iter()
            .all(|one| one["chat_id"] == json!(CHAT.to_string()))
    );
    let text: Vec<&str> = asked
        .iter()
        .map(|one| one["text"].as_str().unwrap())
        .collect();
    let text = text.join(" ");
    assert!(
        text.contains("admin asks through telegram · After reading"),
        "{text}"
    );
    assert!(text.matches("plums").count() >= 500, "{text}");
    assert!(text.ends_with("true"), "{text}");
}

#[test]
fn a_long_reminder_comes_whole_and_silently_in_quiet_hours() {
    let (model, telegram) = (Model::saying("Hello."), Telegram::start());
    let more = json!({ "time_zone": "UTC" });
    let home = Home::start(config(&model, &telegram, more));
    let mut user = home.websocket(&home.tokens.user);
    link(&telegram, &mut user, CHAT);
    let hour = Duration::from_secs(3_600);
    let minute = |hours: u32| home.clock.now().plus(hours * hour).to_string()[11..16].to_owned();
    let hours = format!("{}-{}", minute(1), minute(5));
    user.ask(json!({ "type": "set_quiet_hours", "quiet_hours": hours }));
    let say = "🐸🐸🐸 ".repeat(800) + "end";
    user.ask(json!({ "type": "create_schedule", "say": say, "at": "+2h" }));
    home.server().advance_clock(2 * hour + hour / 60);
    let sent = telegram.wait_for("sendMessage", 3).split_off(1);
    let text: Vec<&str> = sent
        .iter()
        .map(|one| one["text"].as_str().unwrap())
        .collect();
    assert_eq!(text.join(" "), say);
    assert!(
        sent.iter().all(|one| one["disable_notification"] == true),
        "{sent:?}"
    );
}

#[test]
fn a_linked_person_who_asks_for_help_gets_it_without_a_model() {
    let (model, telegram) = (Model::saying("Hello."), Telegram::start());
    let home = Home::start(config(&model, &telegram, json!({})));
    let mut user = home.websocket(&home.tokens.user);
    link(&telegram, &mut user, CHAT);
    for (place, command) in ["/start", "/help"].into_iter().enumerate() {
        telegram.says(CHAT, command);
        let told = eventually("help", || telegram.told(CHAT).get(place + 1).cloned());
        assert!(told.contains("/new begins another conversation"), "{told}");
    }
    assert!(model.requests().is_empty());
}

#[test]
fn a_chat_reads_errors_in_the_language_of_its_person() {
    let acts = vec![Act::error(401, "", "no"), Act::say("Ja.")];
    let (model, telegram) = (Model::acting(acts), Telegram::start());
    let more = json!({ "api_key": "sk-x", "budget": { "monthly_tokens": 1 } });
    let home = Home::start(config(&model, &telegram, more));
    let mut user = home.websocket(&home.tokens.user);
    link(&telegram, &mut user, CHAT);
    user.ask(json!({ "type": "set_language", "language": "de" }));
    let says = |german: &str| {
        eventually("it is said in German", || {
            let told = telegram.told(CHAT);
            told.last()?.contains(german).then_some(())
        });
    };
    telegram.says(CHAT, "null");
    says(" hat den API-Schlüssel abgelehnt (401)");
    telegram.says(CHAT, "eins");
    hears(&telegram, CHAT, "Ja.");
    telegram.says(CHAT, "zwei");
    says("das Budget dieses Monats ist aufgebraucht");
}

#[test]
fn what_fails_at_telegram_is_said_and_holds_up_nobody() {
    for (status, says) in [
        (401, "Telegram refuses the bot's token"),
        (409, "something else gets the bot's messages"),
        (500, "Telegram answered 500: Scripted"),
        (0, "Telegram cannot be reached"),
    ] {
        let (model, telegram) = (Model::saying("Hello."), Telegram::start());
        let answer = (status, refusal(status, "Scripted"));
        telegram.script("getUpdates", [(status > 0).then_some(answer)]);
        let folder = TemporaryDirectory::new();
        write_config(folder.path(), config(&model, &telegram, json!({})));
        let tokens = make_people(folder.path());
        let server = Program::serve(folder.path());
        telegram.wait_for("getUpdates", 1);
        // A bystander.
        let mut admin = Client::websocket(server.address);
        admin.authenticate(&tokens.admin);
        assert_eq!(admin.chat("hello")["response"], "Hello.", "{status}");
        // The page lists it, without the token.
        let errors = eventually("the error is listed", || {
            let listed = admin.ask(json!({ "type": "list_errors" })).to_string();
            listed.contains(says).then_some(listed)
        });
        let log = fs::read_to_string(folder.path().join("hearth.log")).unwrap();
        for text in [errors, log, server.said.clone()] {
            assert!(!text.contains("AAH-secret"), "{text}");
        }
    }
}

#[test]
fn a_telegram_that_hangs_up_is_asked_again() {
    let (model, telegram) = (Model::saying("Hello."), Telegram::start());
    telegram.script("getUpdates", [None, None]);
    let home = Home::start(config(&model, &telegram, json!({})));
    let mut user = home.websocket(&home.tokens.user);
    link(&telegram, &mut user, CHAT);
    telegram.says(CHAT, "hello");
    hears(&telegram, CHAT, "Hello.");
}

#[test]
fn doctor_says_what_is_wrong_with_the_bot() {
    let (model, telegram) = (Model::saying("Hello."), Telegram::start());
    let mut config = config(&model, &telegram, json!({}));
    let home = Home::start(config.clone());
    let doctor = || String::from_utf8(run(home.folder.path(), &["doctor"]).stdout).unwrap();
    let found = doctor();
    assert!(found.contains("Telegram knows the bot"), "{found}");
    config["channels"][1]["bot_token"] = json!("4242:wrong");
    fs::write(home.folder.path().join("config.json"), config.to_string()).unwrap();
    let found = doctor();
    assert!(
        found.contains("Telegram refuses the bot's token") && !found.contains("4242:wrong"),
        "{found}"
    );
}

#[test]
fn what_is_set_up_in_a_chat_comes_there_once_and_nowhere_else() {
    let (telegram, phone) = (Telegram::start(), Receiver::start());
    let model = Model::start(|request, _| {
        let messages = request["messages"].as_array().unwrap();
        let last = messages.last().unwrap();
        let text = last["content"].to_string();
        let create = |more: Value| {
            let mut arguments = json!({ "action": "create", "at": "in 10 minutes" });
            arguments
                .as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            Act::call("schedule", arguments)
        };
        match () {
            () if last["role"] == "tool" => Act::say("Set."),
            () if text.contains("the plants") => create(json!({ "say": "Water the plants" })),
            () if text.contains("the weather") => create(json!({ "prompt": "Will it rain?" })),
            () => Act::say("It stays dry."),
        }
    });
    let mut config = config(&model, &telegram, json!({ "permission_mode": "allow" }));
    config["people"] = json!({ "user": { "notifications": { "content": true, "ntfy": {
        "url": format!("http://{}", phone.address), "topic": "t",
    } } } });
    let home = Home::start(config);
    let mut user = home.websocket(&home.tokens.user);
    link(&telegram, &mut user, CHAT);
    telegram.says(CHAT, "Remind me of the plants");
    hears(&telegram, CHAT, "Set.");
    home.server().advance_clock(Duration::from_secs(660));
    let [_, again] = buttons_under(&telegram, "Water the plants");
    press(&telegram, CHAT, &again);
    home.server().advance_clock(Duration::from_secs(660));
    eventually("it is told again", || {
        (telegram.told(CHAT).len() == 4).then_some(())
    });
    telegram.says(CHAT, "Look at the weather later");
    hears(&telegram, CHAT, "Set.");
    home.server().advance_clock(Duration::from_secs(660));
    hears(&telegram, CHAT, "It stays dry.");
    let told = telegram.told(CHAT);
    assert_eq!(
        told[1..],
        [
            "Set.",
            "Water the plants",
            "Water the plants",
            "Set.",
            "It stays dry."
        ]
    );
    // That the chat is linked, and nothing else.
    let pushed = phone.callbacks();
    assert_eq!(pushed.len(), 1, "{pushed:?}");
}

#[test]
fn a_reminder_is_finished_and_put_off_by_a_button_of_the_person_told_alone() {
    let (model, telegram, phone) = (
        Model::saying("Hello."),
        Telegram::start(),
        Receiver::start(),
    );
    let mut config = config(&model, &telegram, json!({}));
    config["people"] = json!({ "user": { "notifications": { "content": true, "ntfy": {
        "url": format!("http://{}", phone.address), "topic": "t",
    } } } });
    let home = Home::start(config);
    let (mut admin, mut user) = (home.admin(), home.websocket(&home.tokens.user));
    link(&telegram, &mut user, CHAT);
    link(&telegram, &mut admin, OTHER);
    let minutes = |count: u32| home.server().advance_clock(count * Duration::from_secs(60));
    let waiting = |client: &mut Client| {
        let listed = client.ask(json!({ "type": "list_schedules" }));
        listed["schedules"].as_array().unwrap().len()
    };
    // Of a bystander, which stays.
    admin.ask(json!({ "type": "create_schedule", "say": "Tea", "at": "+9h" }));
    phone.wait_for(1);
    user.ask(json!({ "type": "create_schedule", "say": "Bins", "at": "+5m" }));
    minutes(6);
    let [done, again] = buttons_under(&telegram, "Bins");
    for data in [&done, &again] {
        assert_eq!(press(&telegram, OTHER, data), OVER);
        assert!(press(&telegram, 33, data).starts_with(HOW_TO_LINK));
    }
    assert_eq!(
        press(&telegram, CHAT, &again),
        "I will remind you again in 10 minutes."
    );
    assert_eq!(press(&telegram, CHAT, &done), OVER);
    minutes(9);
    assert_eq!(telegram.told(CHAT).len(), 2);
    minutes(2);
    eventually("it is told again", || {
        (telegram.told(CHAT).len() == 3).then_some(())
    });
    let [second, _] = buttons_under(&telegram, "Bins");
    assert_ne!(second, done);
    assert_eq!(press(&telegram, CHAT, &second), "Done");
    assert_eq!(waiting(&mut user), 0);
    assert_eq!(press(&telegram, CHAT, &second), OVER);
    assert_eq!(waiting(&mut admin), 1);
    // It rang once in each place, each time.
    assert_eq!(telegram.told(CHAT)[1..], ["Bins", "Bins"]);
    let pushed = phone.wait_for(3).split_off(1);
    let pushed: Vec<&Value> = pushed.iter().map(|one| &one.body["message"]).collect();
    assert_eq!(pushed, ["Bins", "Bins"]);
    // What was answered elsewhere is over.
    user.ask(json!({ "type": "create_schedule", "say": "Post", "at": "+5m" }));
    minutes(6);
    let [done, _] = buttons_under(&telegram, "Post");
    let listed = user.ask(json!({ "type": "list_schedules" }));
    let id = listed["schedules"][0]["schedule_id"].clone();
    user.ask(json!({ "type": "finish_reminder", "schedule_id": id }));
    assert_eq!(press(&telegram, CHAT, &done), OVER);
}

#[test]
fn the_files_of_a_reply_come_after_it() {
    let telegram = Telegram::start();
    let look = vec![
        Act::call("mcp_camera_look", json!({})),
        Act::say("A fox."),
        Act::say("Hello."),
    ];
    let model = Model::acting(look);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/mcp_camera.sh");
    let camera = json!({ "command": "sh", "args": [script], "env": { "STUB_NOTES": "/dev/null" } });
    let more = json!({ "permission_mode": "allow", "mcp_servers": { "camera": camera } });
    let home = Home::start(config(&model, &telegram, more));
    let (mut admin, mut user) = (home.admin(), home.websocket(&home.tokens.user));
    eventually("the camera is there", || {
        let listed = admin.ask(json!({ "type": "list_tools" })).to_string();
        listed.contains("mcp_camera_look").then_some(())
    });
    link(&telegram, &mut user, CHAT);
    link(&telegram, &mut admin, OTHER);
    // It hangs up once, and holds up nobody else.
    telegram.script("sendPhoto", [None]);
    telegram.says(CHAT, "what is in the garden?");
    hears(&telegram, CHAT, "A fox.");
    telegram.wait_for("sendPhoto", 1);
    telegram.says(OTHER, "hello");
    hears(&telegram, OTHER, "Hello.");
    home.server().advance_clock(Duration::from_secs(10));
    let sent = telegram.wait_for("sendPhoto", 2);
    for form in &sent {
        let form = form.as_str().unwrap();
        let chat = format!("name=\"chat_id\"\r\n\r\n{CHAT}\r\n");
        assert!(form.contains(&chat), "{form}");
        let file = "name=\"photo\"; filename=\"image.png\"\r\nContent-Type: image/png\r\n\r\n";
        assert!(form.contains(file), "{form}");
    }
    assert_eq!(telegram.told(CHAT)[1..], ["A fox."]);
}
