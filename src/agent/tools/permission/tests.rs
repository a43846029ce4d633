//! Tests of the decision about a tool.

use serde_json::{Value, json};

use super::Permission::{Allow, AllowOwn, Ask, Deny};
use super::*;
use base::people::Audience;
use base::testing::rows;
use config::{Channel, WebhookChannel};

fn permission(word: &str) -> Option<Permission> {
    match word {
        "allow" => Some(Allow),
        "ask" => Some(Ask),
        "deny" => Some(Deny),
        "-" => None,
        other => panic!("{other}"),
    }
}

/// What is said of one tool.
fn said(tool: &str, word: &str) -> BTreeMap<String, Permission> {
    let other = ("other".to_owned(), Allow);
    let own = permission(word).map(|own| (tool.to_owned(), own));
    own.into_iter().chain([other]).collect()
}

fn tools(word: &str) -> Option<Vec<String>> {
    (word != "-").then(|| word.split(',').map(str::to_owned).collect())
}

fn account(mode: &str, listed: &str, own: &str) -> WebhookAccount {
    WebhookAccount {
        name: "shop".to_owned(),
        incoming_path: "/in".to_owned(),
        outgoing_url: "http://127.0.0.1/".to_owned(),
        secret: None,
        accept: Vec::new(),
        model: None,
        permission_mode: permission(mode),
        tools: tools(listed),
        tool_permissions: said("light", own),
        secret_previous: None,
        timeout_seconds: None,
        max_attempts: 10,
        enabled: true,
        audience: Audience::Household,
        trusted: false,
        map: None,
        when: BTreeMap::new(),
    }
}

fn person(mode: &str, listed: &str, own: &str) -> Person {
    Person {
        permission_mode: permission(mode),
        tools: tools(listed),
        tool_permissions: said("light", own),
        monthly_tokens: None,
        instructions: None,
        approves: None,
        notifications: None,
    }
}

fn config(mode: Permission, general: &str) -> Config {
    Config {
        permission_mode: mode,
        tool_permissions: said("light", general),
        ..Config::default()
    }
}

fn light(is_read_only: bool, source: Source) -> Definition {
    Definition {
        spec: ToolSpec {
            name: "light".to_owned(),
            description: "Switches a light.".to_owned(),
            parameters: json!({}).into(),
        },
        source,
        is_read_only,
        origin: Origin::Outside,
        is_private: false,
    }
}

/// What is decided: as it is, with a grant, with text from outside, with both.
fn decisions(actor: &Actor<'_>, tool: &Definition) -> String {
    let cases = [(false, false), (true, false), (false, true), (true, true)];
    let decided = cases.map(|(is_granted, is_outside)| {
        let circumstances = Circumstances {
            is_granted,
            is_outside,
            ..Circumstances::default()
        };
        match actor.decide(tool, circumstances) {
            Allow => "allow",
            Ask | AllowOwn => "ask",
            Deny => "deny",
        }
    });
    decided.join(" ")
}

#[test]
fn the_decision_about_a_tool_with_an_effect() {
    // The mode, the permission of the tool, and of who asks: mode, tools, and own
    // permission of the tool. Then what is decided: as it is, with a grant, with
    // text from outside, with both.
    let table = "
        ask   | -     | - - -             | ask allow ask ask
        ask   | ask   | - - -             | ask allow ask ask
        ask   | allow | - - -             | allow allow ask ask
        ask   | deny  | - - -             | deny deny deny deny
        allow | -     | - - -             | allow allow allow allow
        allow | allow | - - -             | allow allow allow allow
        allow | ask   | - - -             | ask allow ask ask
        allow | deny  | - - -             | deny deny deny deny
        deny  | -     | - - -             | deny deny deny deny
        deny  | allow | - - -             | allow allow ask ask
        deny  | ask   | - - -             | ask allow ask ask
        ask   | -     | - - allow         | allow allow ask ask
        ask   | ask   | - - allow         | allow allow ask ask
        ask   | deny  | - - allow         | deny deny deny deny
        ask   | allow | - - ask           | ask allow ask ask
        ask   | allow | - - deny          | deny deny deny deny
        ask   | -     | ask - allow       | ask allow ask ask
        allow | -     | ask - -           | ask allow ask ask
        allow | -     | ask - allow       | ask allow ask ask
        allow | -     | deny - allow      | deny deny deny deny
        allow | ask   | - - allow         | allow allow ask ask
        allow | -     | - - allow         | allow allow allow allow
        allow | -     | - light,door -    | allow allow allow allow
        allow | -     | - door -          | deny deny deny deny
        ask   | allow | - door allow      | deny deny deny deny
        deny  | -     | allow light allow | deny deny deny deny
    ";
    let effect = light(false, Source::Custom);
    for [mode, general, own, expected] in rows(table) {
        let config = config(permission(mode).unwrap(), general);
        let [own_mode, listed, own] = own.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{own}");
        };
        let person = person(own_mode, listed, own);
        let account = account(own_mode, listed, own);
        let of_person = Actor {
            person: Some(&person),
            ..Actor::of_turn(&config, None, None)
        };
        let of_account = Actor {
            account: Some(&account),
            ..Actor::of_turn(&config, None, None)
        };
        for actor in [of_person, of_account] {
            assert_eq!(decisions(&actor, &effect), expected, "{actor:?}");
        }
    }
}

#[test]
fn a_person_s_mode_does_not_ask_for_what_only_looks_up() {
    // The mode, the permission of the tool, the person's mode and own permission, and
    // what is decided about a tool of these kinds that only reads: of the program, of
    // the program with text from outside, of the configuration.
    let table = "
        ask   | allow | ask -      | allow ask ask
        allow | -     | ask -      | allow ask ask
        allow | -     | ask ask    | ask ask ask
        ask   | -     | ask -      | ask ask ask
        ask   | -     | ask allow  | allow ask ask
        ask   | deny  | ask allow  | deny deny deny
        allow | -     | deny -     | deny deny deny
        ask   | allow | - -        | allow allow allow
    ";
    for [mode, general, own, expected] in rows(table) {
        let config = config(permission(mode).unwrap(), general);
        let (own_mode, own) = own.split_once(' ').unwrap();
        let person = person(own_mode, "-", own.trim());
        let actor = Actor {
            person: Some(&person),
            ..Actor::of_turn(&config, None, None)
        };
        let kinds = [
            (Source::Builtin, Origin::Trusted),
            (Source::Builtin, Origin::Outside),
            (Source::Custom, Origin::Trusted),
        ];
        let decided = kinds.map(|(source, origin)| {
            let tool = Definition {
                origin,
                ..light(true, source)
            };
            let decided = decisions(&actor, &tool);
            decided.split(' ').next().unwrap().to_owned()
        });
        assert_eq!(decided.join(" "), expected, "{mode} {general} {own}");
    }
}

#[test]
fn a_token_s_tools_are_the_only_ones() {
    let config = config(Allow, "-");
    let effect = light(false, Source::Custom);
    for (listed, expected) in [("light", Allow), ("door", Deny)] {
        let tools = tools(listed);
        let actor = Actor::of_turn(&config, None, None).with_tools(tools.as_deref());
        assert_eq!(actor.decide(&effect, Circumstances::default()), expected);
    }
}

/// A person whose reply goes to an account is narrowed by both.
#[test]
fn the_strictest_counts() {
    let config = config(Allow, "-");
    for (of_person, of_account, expected) in [
        ("ask", "-", Ask),
        ("-", "ask", Ask),
        ("ask", "deny", Deny),
        ("-", "-", Allow),
    ] {
        let (person, account) = (person(of_person, "-", "-"), account(of_account, "-", "-"));
        let actor = Actor {
            person: Some(&person),
            account: Some(&account),
            ..Actor::of_turn(&config, None, None)
        };
        let found = actor.decide(&light(false, Source::Custom), Circumstances::default());
        assert_eq!(found, expected);
    }
}

#[test]
fn what_only_reads_is_not_asked_for_again() {
    let config = config(Ask, "allow");
    let actor = Actor::of_turn(&config, None, None);
    let decided = |is_read_only, source| decisions(&actor, &light(is_read_only, source));
    assert_eq!(decided(true, Source::Custom), "allow allow allow allow");
    // What it takes along may be a memory, whether or not there is text from outside.
    let read = light(true, Source::Custom);
    for is_outside in [false, true] {
        let circumstances = Circumstances {
            is_granted: true,
            is_outside,
            carries_out: true,
            widens: false,
            ..Circumstances::default()
        };
        assert_eq!(actor.decide(&read, circumstances), Ask);
    }
    // So does one of a server, if its owner says that it only reads.
    let foreign = || Source::Mcp("attic".to_owned());
    assert_eq!(decided(true, foreign()), "allow allow allow allow");
    assert_eq!(decided(false, foreign()), "allow allow ask ask");
    let mut there = light(true, foreign());
    assert!(carries_much(&there, &"x".repeat(1_025)) && !carries_much(&there, &"x".repeat(1_024)));
    there.origin = Origin::Trusted;
    assert!(!carries_much(&there, &"x".repeat(2_000)));
}

#[test]
fn what_more_people_learn_is_asked_for_again() {
    for (mode, expected) in [(Ask, Ask), (Allow, Allow), (Deny, Deny)] {
        let config = Config {
            permission_mode: mode,
            ..Config::default()
        };
        let actor = Actor::of_turn(&config, None, None);
        let circumstances = Circumstances {
            is_granted: true,
            widens: true,
            ..Circumstances::default()
        };
        let tool = light(false, Source::Builtin);
        assert_eq!(actor.decide(&tool, circumstances), expected);
    }
    for (arguments, replaced) in [
        (
            r#"{"content": "x", "replaces": "y", "share": false}"#,
            Some("y"),
        ),
        (r#"{"content": "x", "replaces": "y", "share": true}"#, None),
        (r#"{"content": "x"}"#, None),
    ] {
        let arguments = serde_json::from_str(arguments).unwrap();
        assert_eq!(super::replaced("remember", &arguments), replaced);
        assert_eq!(super::replaced("forget", &arguments), None);
    }
}

#[test]
fn whoever_is_gone_is_asked_for() {
    let config = config(Allow, "-");
    let effect = light(false, Source::Custom);
    let removed = Actor::of_turn(&config, Some("shop"), None);
    assert_eq!(decisions(&removed, &effect), "ask allow ask ask");
    let toolbox = Toolbox::builtin();
    let recall = toolbox.get("recall").unwrap().definition();
    assert_eq!(decisions(&removed, recall), "deny deny deny deny");
}

#[test]
fn an_account_is_offered_the_household_s_tools_by_name_alone() {
    let names = |listed: &str| {
        let mut config = config(Allow, "-");
        config.channels = vec![Channel::Webhook(WebhookChannel {
            name: "webhook".to_owned(),
            port: None,
            accounts: vec![account("-", listed, "-")],
        })];
        let actor = Actor::of_turn(&config, Some("shop"), None);
        let toolbox = Toolbox::from_config(&config);
        let offered = actor.offered(&toolbox).into_iter();
        offered.map(|spec| spec.name).collect::<Vec<String>>()
    };
    assert_eq!(names("-"), ["current_time", "web_fetch"]);
    assert_eq!(names("recall,light"), ["recall"]);
}

#[test]
fn in_an_account_s_conversation_everybody_has_the_household_s_tools_that_it_has() {
    let names = |caller: &str| {
        let mut config = config(Allow, "-");
        config.channels = vec![Channel::Webhook(WebhookChannel {
            name: "webhook".to_owned(),
            port: None,
            accounts: vec![account("deny", "recall,light", "-")],
        })];
        let actor = Actor::of_turn(&config, None, Some("ann")).read_by(Some(caller));
        let offered = actor.offered(&Toolbox::from_config(&config)).into_iter();
        offered.map(|spec| spec.name).collect::<Vec<String>>()
    };
    assert_eq!(names("shop"), ["current_time", "recall", "web_fetch"]);
    assert_eq!(names("removed"), ["current_time", "web_fetch"]);
}

#[test]
fn what_is_denied_is_not_offered() {
    let toolbox = Toolbox::builtin();
    let names = |mode, permissions: &[(&str, Permission)]| {
        let mut config = config(mode, "-");
        let permissions = permissions.iter();
        let permissions = permissions.map(|(name, permission)| ((*name).to_owned(), *permission));
        config.tool_permissions = permissions.collect();
        let offered = Actor::of_turn(&config, None, None).offered(&toolbox);
        offered
            .into_iter()
            .map(|spec| spec.name)
            .collect::<Vec<_>>()
    };
    assert_eq!(names(Ask, &[]).len(), toolbox.iter().count());
    assert!(names(Deny, &[]).is_empty());
    assert_eq!(
        names(Deny, &[("recall", Ask), ("forget", Deny)]),
        ["recall"]
    );
}

#[test]
fn people_answer_for_their_own_things() {
    let mut config = config(Ask, "-");
    let mut narrowed = person("-", "-", "-");
    narrowed.approves = Some(vec!["light".to_owned()]);
    config.people = BTreeMap::from([("Bob".to_owned(), narrowed)]);
    let toolbox = Toolbox::from_config(&config);
    for (name, tool, may) in [
        ("ann", "remember", true),
        ("ann", "write_file", true),
        ("ann", "web_fetch", false),
        ("ann", "run_command", false),
        ("ann", "light", false),
        ("bob", "light", true),
        ("bob", "remember", false),
    ] {
        let found = may_answer_own(&config, name, &toolbox, tool, &Arguments::new());
        assert_eq!(found, may, "{name} {tool}");
    }
}

#[test]
fn telling_oneself_is_not_asked_for_where_that_is_allowed() {
    let create = |what: &str| format!(r#"{{"action":"create","at":"6pm",{what}}}"#);
    let (say, prompt) = (create(r#""say":"Bins""#), create(r#""prompt":"Bins""#));
    let others = create(r#""say":"Bins","people":["ben"]"#);
    let webhook = create(r#""say":"Bins","webhook":"ci""#);
    let both = create(r#""say":"Bins","prompt":"Bins""#);
    // The server's words for the tool; the person's mode and words; the call; whether it runs
    // unasked, and whether so while text from outside is shown.
    let [add, check, remove] =
        ["add", "check", "remove"].map(|action| format!(r#"{{"action":"{action}"}}"#));
    let table: [(&str, &str, &str, &str, &str, bool, bool); 15] = [
        ("allow_own", "-", "-", "schedule", &say, true, true),
        ("allow_own", "-", "-", "schedule", &prompt, true, false),
        ("allow_own", "-", "-", "schedule", &others, false, false),
        ("allow_own", "-", "-", "schedule", &webhook, false, false),
        ("allow_own", "-", "-", "schedule", &both, true, false),
        (
            "allow_own",
            "-",
            "-",
            "schedule",
            r#"{"action":"cancel"}"#,
            true,
            false,
        ),
        (
            "allow_own",
            "-",
            "-",
            "schedule",
            r#"{"action":"snooze"}"#,
            true,
            true,
        ),
        // As before: a bare mode asks, and "allow" covers others, too.
        ("-", "-", "-", "schedule", &say, false, false),
        ("allow", "-", "-", "schedule", &others, true, false),
        // A child's block, and an older one.
        (
            "allow_own",
            "ask",
            "allow_own",
            "schedule",
            &say,
            true,
            true,
        ),
        (
            "allow_own",
            "ask",
            "allow_own",
            "schedule",
            &prompt,
            false,
            false,
        ),
        ("allow_own", "ask", "-", "schedule", &say, false, false),
        ("allow", "ask", "allow", "lists", &add, true, true),
        ("allow", "-", "-", "lists", &check, true, true),
        ("allow", "-", "-", "lists", &remove, true, false),
    ];
    for (general, mode, own, tool, arguments, unasked, outside) in table {
        let words = |word: &str| match word {
            "-" => BTreeMap::new(),
            "allow_own" => BTreeMap::from([(tool.to_owned(), AllowOwn)]),
            _ => BTreeMap::from([(tool.to_owned(), Allow)]),
        };
        let config = Config {
            permission_mode: Ask,
            tool_permissions: words(general),
            people: BTreeMap::from([(
                "ada".to_owned(),
                Person {
                    permission_mode: permission(mode),
                    tool_permissions: words(own),
                    ..Person::default()
                },
            )]),
            ..Config::default()
        };
        let toolbox = Toolbox::from_config(&config);
        let definition = toolbox.get(tool).unwrap().definition().clone();
        let actor = Actor::of_turn(&config, None, Some("ada"));
        let parsed: Value = arguments.parse().unwrap();
        for (is_outside, expected) in [(false, unasked), (true, outside)] {
            let circumstances = Circumstances {
                is_outside,
                reach: Reach::of(tool, parsed.as_object().unwrap()),
                ..Circumstances::default()
            };
            let verdict = actor.decide(&definition, circumstances);
            let case = format!("{general} {mode} {own} {tool} {arguments} {is_outside}");
            assert_eq!(verdict == Allow, expected, "{case}: {verdict:?}");
        }
    }
}
