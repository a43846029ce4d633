//! People, audiences and trust.

use serde_json::{Value, json};

use super::problems::check_says;
use super::*;
use base::error::Code;
use base::people::{Audience, UserRole};
use base::testing::rows;

#[test]
fn people_are_found_as_users_are_in_any_case() {
    let config = config(
        r#"{"people":{"Zoë":{"permission_mode":"ask","tools":["recall"],"tool_permissions":{"recall":"allow"},
            "monthly_tokens":1000,"instructions":"Answers for a nine year old.","approves":["schedule"]},
            "_bob":{}}}"#,
    );
    let zoe = config.person("ZOË").unwrap();
    assert_eq!(zoe.permission_mode, Some(Permission::Ask));
    assert_eq!(zoe.tools.as_deref(), Some(&["recall".to_owned()][..]));
    assert_eq!(zoe.tool_permissions["recall"], Permission::Allow);
    assert_eq!(zoe.monthly_tokens, Some(1000));
    assert_eq!(
        zoe.instructions.as_deref(),
        Some("Answers for a nine year old.")
    );
    assert!(zoe.approves("schedule") && !zoe.approves("remember"));
    // A user's name may begin as comments do, and the limits hold all the same.
    let bob = config.person("_BOB").unwrap();
    for (tool, approved) in [
        ("remember", true),
        ("schedule", true),
        ("write_file", true),
        ("run_command", false),
        ("web_fetch", false),
        ("light", false),
        ("mcp_home_light", false),
    ] {
        assert_eq!(bob.approves(tool), approved, "{tool}");
    }
    assert!(config.person("bo").is_none() && config.person("zoe").is_none());
}

#[test]
fn people_and_audiences_are_strict() {
    let table = r#"
        {"people":{"a b":{}}}                             | "a b" in "people" is not the name of a user
        {"people":{"ada":{},"ADA":{}}}                    | "people.ada" is the same user as "ADA"
        {"people":{"ada":{"tool":[]}}}                    | (did you mean "tools"?)
        {"people":{"ada":{"permission_mode":"maybe"}}}    | must be "ask", "allow" or "deny"
        {"people":{"ada":{"tools":["a b"]}}}              | "people.ada.tools[0]" must be a tool name
        {"people":{"ada":{"monthly_tokens":0}}}           | must be an integer from 1
        {"people":{"ada":{"instructions":""}}}            | must be a string of 1 to 10000 characters
        {"people":{"_why":"a child"}}                     | "people._why" must be an object
        {"people":{"ada":{"notifications":{"ntfy":{}}}}}  | "people.ada.notifications.ntfy.topic" is required
        {"people":{"ada":{"notifications":{"ntfy":{"topic":"a/b"}}}}} | must be a topic: 1 to 64 of A-Z a-z 0-9 _ -
        {"people":{"ada":{"notifications":{"gotify":{"url":"ftp://a/","token":"t"}}}}} | must be a URL that begins with
        {"people":{"ada":{"notifications":{"quiet_hours":"22-7"}}}} | must be two times of day, such as 22:00-07:00
        {"people":{"ada":{"notifications":{"quiet_hours":"24:00-07:00"}}}} | must be two times of day
        {"people":{"ada":{"notifications":{"quiet_hours":"07:00-07:00"}}}} | must be two times of day
        {"privacy":{"conversations":"public"}}            | "privacy.conversations" must be "private" or "household"
        {"tools":{"web_fetch":{"trusted_hosts":["*"]}}}   | must be a host name
        {ACCOUNT,"audience":"private"}}}}}                | must be "household", or an array of names of users, not "private"
        {ACCOUNT,"audience":["a b"]}}}}}                  | accounts.ci.audience[0]" must be the name of a user
        {ACCOUNT,"trusted":"yes"}}}}}                     | must be true or false
        {ACCOUNT,"tool_permissions":{"x":1}}}}}}          | must be "ask", "allow", "deny" or "allow_own"
    "#;
    let account = r#""channels":{"webhook":{"accounts":{"ci":{"incoming_path":"/a","outgoing_url":"http://a/""#;
    for [file, says] in rows(&table.replace("ACCOUNT", account)) {
        check_says(file, says);
    }
}

#[test]
fn a_tool_that_does_not_exist_is_warned_about_wherever_it_is_named() {
    let settings = read(
        r#"{"people":{"ada":{"tools":["recal","mcp_home_light"],"approves":["run_comand"],
            "tool_permissions":{"lamp":"allow","mcp_hom_light":"allow"}}},
            "mcp_servers":{"home":{"url":"http://127.0.0.1:1/"}},
            "channels":{"webhook":{"accounts":{"ci":{"incoming_path":"/a","outgoing_url":"http://a/","audience":"household",
                "tool_permissions":{"recal":"ask"}}}}}}"#,
    );
    let warnings = settings.unwrap().warnings();
    for (path, tool) in [
        ("people.ada.tools", "recal"),
        ("people.ada.approves", "run_comand"),
        ("people.ada.tool_permissions.lamp", "lamp"),
        ("people.ada.tool_permissions.mcp_hom_light", "mcp_hom_light"),
        (
            "channels.webhook.accounts.ci.tool_permissions.recal",
            "recal",
        ),
    ] {
        let says = format!("\"{path}\": there is no tool {tool:?}");
        let times = warnings.iter().filter(|line| line.contains(&says)).count();
        assert_eq!(times, 1, "{says}: {warnings:?}");
    }
    assert_eq!(warnings.len(), 5, "{warnings:?}");
}

#[test]
fn an_account_has_nothing_of_the_household_unless_it_is_named() {
    let config = config(
        r#"{"tools":{"custom":[
                {"name":"door","description":"d","command":["x"],"household":true}]},
            "mcp_servers":{"my.cal":{"command":"x","household":true},"home":{"command":"x"}},
            "channels":{"webhook":{"accounts":{
            "old":{"incoming_path":"/a","outgoing_url":"http://a/"},
            "new":{"incoming_path":"/b","outgoing_url":"http://a/","tools":["recall"],
                "audience":["ada","bob"],"trusted":true}}}}}"#,
    );
    let (old, new) = (
        config.webhook_account("old").unwrap(),
        config.webhook_account("new").unwrap(),
    );
    for (tool, of_old, of_new) in [
        ("recall", false, true),
        ("search_conversations", false, false),
        ("read_file", false, false),
        ("schedule", false, false),
        ("run_command", false, false),
        ("current_time", true, false),
        ("light", true, false),
        ("mcp_home_light", true, false),
        ("door", false, false),
        ("mcp_my_cal_list", false, false),
    ] {
        assert_eq!(
            (config.offers(old, tool), config.offers(new, tool)),
            (of_old, of_new),
            "{tool}"
        );
    }
    assert_eq!((&old.audience, old.trusted), (&Audience::Household, false));
    let people = Audience::People(vec!["ada".to_owned(), "bob".to_owned()]);
    assert_eq!((&new.audience, new.trusted), (&people, true));
}

#[test]
fn nothing_is_trusted_unless_the_owner_says_so() {
    let config = config(
        r#"{"tools":{"web_fetch":{"trusted_hosts":["recipes.example"]},"custom":[
                {"name":"a","description":"d","command":["x"]},
                {"name":"b","description":"d","command":["x"],"trusted":true}]},
            "mcp_servers":{"c":{"command":"x"},"d":{"url":"http://a/","trusted":true}}}"#,
    );
    let custom = config.tools.custom.iter().map(|tool| tool.trusted);
    let servers = config.mcp_servers.iter().map(|server| server.trusted);
    assert!(custom.chain(servers).eq([false, true, false, true]));
    let fetch = &config.tools.web_fetch;
    for (host, trusted) in [
        ("recipes.example", true),
        ("RECIPES.example.", true),
        ("www.recipes.example", false),
        ("example", false),
    ] {
        assert_eq!(fetch.trusts(host), trusted, "{host}");
    }
}

#[test]
fn new_conversations_are_private_unless_the_household_wants_them_open() {
    assert_eq!(config("{}").privacy.conversations, Audience::Private);
    let open = config(r#"{"privacy":{"conversations":"household"}}"#);
    assert_eq!(open.privacy.conversations, Audience::Household);
}

#[test]
fn an_update_writes_people_and_shows_them_again() {
    let directory = Directory::default();
    let path = directory.write("config.json", "{}");
    let settings = Settings::load(&path).unwrap();
    let change = json!({"people": {"bob": {"tools": ["recall"], "monthly_tokens": 5000}},
        "privacy": {"conversations": "household"}});
    let written = settings.update(change.as_object().unwrap()).unwrap();
    assert_eq!(written, ["people", "privacy"]);
    let shown = Value::Object(Settings::load(&path).unwrap().readable());
    assert_eq!(shown["people"]["bob"]["tools"], json!(["recall"]));
    assert_eq!(shown["people"]["bob"]["monthly_tokens"], 5000);
    assert_eq!(shown["privacy"]["conversations"], "household");
    let again = json!({"people": shown["people"]});
    settings.update(again.as_object().unwrap()).unwrap();
    assert_eq!(
        settings.current().person("bob").unwrap().tools,
        Some(vec!["recall".to_owned()])
    );
}

#[test]
fn a_permission_goes_to_whom_it_is_given() {
    let account = json!({"incoming_path": "/a", "outgoing_url": "http://a/"});
    let object = json!({"webhook": {"accounts": {"my.ci": account}}});
    let array = json!([{"type": "tcp"}, {"type": "webhook", "accounts": {"my.ci": account}}]);
    for channels in [object, array] {
        let directory = Directory::default();
        let file = json!({"people": {"Ada": {"tools": ["light"]}}, "channels": channels});
        let path = directory.write("config.json", &file.to_string());
        let settings = Settings::load(&path).unwrap();
        for whom in [
            Grantee::Person("ada"),
            Grantee::Person("b.b"),
            Grantee::Account("my.ci"),
        ] {
            settings
                .permit_tool_to(whom, "light", Permission::Allow)
                .unwrap();
        }
        let gone = Grantee::Account("ci");
        let error = settings.permit_tool_to(gone, "light", Permission::Allow);
        assert_eq!(error.unwrap_err().code(), Code::InvalidRequest);
        let config = Settings::load(&path).unwrap().current();
        assert_eq!(config.people.keys().collect::<Vec<_>>(), ["Ada", "b.b"]);
        for permissions in [
            &config.person("ADA").unwrap().tool_permissions,
            &config.person("b.b").unwrap().tool_permissions,
            &config.webhook_account("my.ci").unwrap().tool_permissions,
        ] {
            assert_eq!(permissions["light"], Permission::Allow);
        }
        assert!(config.tool_permissions.is_empty(), "nobody else has it");
        assert!(config.person("ada").unwrap().tools.is_some(), "it is kept");

        assert_eq!(settings.forget_person("ADA").unwrap(), ["people"]);
        assert!(settings.forget_person("ada").unwrap().is_empty());
        let config = Settings::load(&path).unwrap().current();
        assert_eq!(config.people.keys().collect::<Vec<_>>(), ["b.b"]);
    }
}

#[test]
fn no_program_asks_in_the_name_of_who_is_gone() {
    let programs = json!({ "enabled": true, "ollama_user": "ada",
        "users": { "ada@home.example": "Ada", "bob@home.example": "bob" } });
    let directory = Directory::default();
    let text = json!({ "openai_api": programs }).to_string();
    let path = directory.write("config.json", &text);
    let settings = Settings::load(&path).unwrap();
    assert_eq!(settings.forget_person("ADA").unwrap(), ["openai_api"]);
    assert!(settings.forget_person("ada").unwrap().is_empty());
    let programs = &Settings::load(&path).unwrap().current().openai_api;
    assert_eq!(programs.ollama_user, None);
    assert_eq!(programs.users.values().collect::<Vec<_>>(), ["bob"]);
}

/// Whoever gets the name next is somebody else, who sees nothing that came in before.
#[test]
fn who_is_gone_is_in_no_audience_of_an_account() {
    let folder = TemporaryDirectory::new();
    let path = folder.path().join("config.json");
    let account = r#""incoming_path":"/IN","outgoing_url":"http://a/""#;
    let text = format!(
        r#"{{"channels":{{"webhook":{{"accounts":{{
            "door":{{{},"audience":["Ada","bob"]}},
            "bell":{{{},"audience":["ada"]}},
            "ci":{{{}}}}}}}}}}}"#,
        account.replace("IN", "door"),
        account.replace("IN", "bell"),
        account.replace("IN", "ci"),
    );
    std::fs::write(&path, text).unwrap();
    let settings = Settings::load(&path).unwrap();
    assert_eq!(settings.forget_person("ADA").unwrap(), ["channels"]);
    assert!(settings.forget_person("ada").unwrap().is_empty());
    let config = Settings::load(&path).unwrap().current();
    let audience = |name: &str| config.webhook_account(name).unwrap().audience.clone();
    assert_eq!(audience("door"), Audience::People(vec!["bob".to_owned()]));
    assert_eq!(
        audience("bell"),
        Audience::People(Vec::new()),
        "nobody else"
    );
    assert_eq!(audience("ci"), Audience::Household);
}

#[test]
fn what_is_said_about_others_is_for_admins() {
    let settings = read(
        r#"{"people":{"Ada":{},"bob":{"instructions":"Answers for a child."}},
            "channels":{"tcp":{},"webhook":{"accounts":{"ci":{"incoming_path":"/a","outgoing_url":"http://a/"}}}}}"#,
    )
    .unwrap();
    for (name, role, people, channels) in [
        ("eve", UserRole::Admin, &["Ada", "bob"][..], 2),
        ("ada", UserRole::User, &["Ada"], 2),
        ("eve", UserRole::User, &[], 2),
        ("bob", UserRole::Viewer, &["bob"], 1),
    ] {
        let shown = settings.readable_by(name, role);
        let names: Vec<&String> = shown["people"].as_object().unwrap().keys().collect();
        assert_eq!(names, people, "{name}");
        assert_eq!(shown["channels"].as_array().unwrap().len(), channels);
    }
}

#[test]
fn an_account_of_an_older_version_is_narrowed_with_a_warning() {
    let account = |more: &str| {
        let members = format!(r#""incoming_path":"/a","outgoing_url":"http://127.0.0.1:1/"{more}"#);
        let object =
            format!(r#"{{"channels":{{"webhook":{{"accounts":{{"ci":{{{members}}}}}}}}}}}"#);
        let array = format!(
            r#"{{"channels":[{{"type":"tcp"}},{{"type":"webhook","accounts":{{"ci":{{{members}}}}}}}]}}"#
        );
        [object, array]
    };
    let directory = Directory::default();
    for (file, key) in account("").iter().zip([
        "channels.webhook.accounts.ci.tools",
        "'channels[1].accounts.ci.tools'",
    ]) {
        let path = directory.write("config.json", file);
        let settings = Settings::load(&path).unwrap();
        let [warning] = &settings.warnings()[..] else {
            panic!("{:?}", settings.warnings());
        };
        let command = format!("hearth config set {key} '[\"*\"]'; ");
        assert!(warning.contains(&command), "{warning}");
        settings.set(key.trim_matches('\''), json!(["*"])).unwrap();
        assert_eq!(settings.warnings(), Vec::<String>::new());
        let config = settings.current();
        let account = config.webhook_account("ci").unwrap();
        assert!(config.offers(account, "recall"));
    }
    for settled in [
        r#","tools":[]"#,
        r#","tools":["recall"]"#,
        r#","audience":"household""#,
        r#","permission_mode":"deny""#,
    ] {
        for file in account(settled) {
            assert_eq!(read(&file).unwrap().warnings(), Vec::<String>::new());
        }
    }
}
