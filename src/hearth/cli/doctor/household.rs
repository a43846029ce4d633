//! What reaches the household's things without a person, and names that nobody has.

use super::diagnosis::{Diagnosis, Installation};
use super::exposure::set_account;
use crate::cli::door::Door;
use crate::cli::row::text;
use crate::cli::running_server::RunningServer;
use crate::cli::token::narrowing;
use crate::service::settings::{self, UnknownName};
use crate::service::views;
use base::language::Said;
use base::people::{Audience, folded};
use base::url::Url;
use config::{BUILTIN_TOOLS, Config, Permission, Settings, WebhookAccount};
use serde_json::{Value, json};
use store::{Actors, Token, UserRole, look_up_actors};

/// Most tokens that are listed.
const MOST: usize = 20;

/// Lists what acts when no person is there. Another check reports a database that
/// cannot be read.
pub fn check(installation: &Installation<'_>, settings: &Settings) -> Vec<Diagnosis> {
    let config = settings.current();
    let actors = look_up_actors(&installation.directory.database()).ok();
    let option = &installation.option;
    let mut found = vec![list(&config, &actors.clone().unwrap_or_default())];
    found.extend(open_doors(settings, option));
    found.extend(telling_that_asks(&config, option));
    if let Some(actors) = &actors {
        found.extend(users_of_programs(&config, actors, option));
        found.extend(nameless(installation, actors));
        found.extend(linked_senders(&config, actors));
        found.extend(unknown_names(&config, actors, option));
        found.extend(actors.calendars.iter().map(|one| calendar(one, option)));
        if let Some(guest) = actors.guests.first() {
            let guests = actors.guests.join(", ");
            found.push(Diagnosis::ok(format!(
                "these guests see no conversation, because none names them: {guests}. Share one \
                 with them on the page, or make them users, who see all of the household's, also \
                 from before: hearth user role{option} {guest} user"
            )));
        }
    }
    found
}

fn calendar(
    (owner, name, problem, is_failing): &(String, String, Said, bool),
    option: &str,
) -> Diagnosis {
    let text = match is_failing {
        true => format!("the calendar {name} of {owner} cannot be read: {problem}"),
        false => format!("of the calendar {name} of {owner} not all is shown: {problem}"),
    };
    let found = Diagnosis::warning(text).advise(format!("hearth calendar list{option}"));
    match problem.to_string().contains("password") {
        true => found.advise(format!("hearth calendar update{option} ID --password")),
        false => found,
    }
}

fn list(config: &Config, actors: &Actors) -> Diagnosis {
    let enabled = config.webhook_accounts().filter(|account| account.enabled);
    let lines = enabled.filter_map(|account| account_line(account, config));
    let mut lines: Vec<String> = lines.collect();
    // Those of guests see only conversations that name their person.
    let tokens = actors.tokens.iter();
    let reaching = tokens.filter(|token| token.role >= UserRole::User);
    lines.extend(reaching.clone().take(MOST).map(token_line));
    let more = reaching.count().saturating_sub(MOST);
    if more > 0 {
        lines.push(format!("{more} more tokens: hearth token list"));
    }
    let api = &config.openai_api;
    if let Some(user) = api.ollama_user.as_ref().filter(|_| api.enabled) {
        lines.push(format!("programs without a token at /api, as {user}"));
    }
    lines.extend(actors.schedules.iter().map(|(owner, number)| {
        let owner = owner.as_deref().unwrap_or("nobody");
        format!("reminders and routines, as {owner}: {number}")
    }));
    let trusted = trusted(config);
    if !trusted.is_empty() {
        let trusted = trusted.join(", ");
        lines.push(format!("text of these counts as yours: {trusted}"));
    }
    if lines.is_empty() {
        return Diagnosis::ok("nothing reaches the household's data without a person");
    }
    Diagnosis::ok(format!(
        "these reach the household's data without a person:\n{}",
        lines.join("\n")
    ))
}

/// An account with the tools of the household that it may use; none without any.
fn account_line(account: &WebhookAccount, config: &Config) -> Option<String> {
    let own = config.tools.custom.iter().map(|tool| tool.name.as_str());
    let all = BUILTIN_TOOLS.into_iter().chain(own);
    let tools = all.filter(|tool| {
        config.is_of_household(tool)
            && config.offers(account, tool)
            && is_available(tool, account, config)
    });
    let tools: Vec<&str> = tools.collect();
    let seen_by = match &account.audience {
        Audience::People(names) => names.join(", "),
        Audience::Private | Audience::Household => "the household".to_owned(),
    };
    (!tools.is_empty()).then(|| {
        format!(
            "webhook account {}, by {}; {seen_by} can read along",
            account.name,
            tools.join(", ")
        )
    })
}

fn is_available(tool: &str, account: &WebhookAccount, config: &Config) -> bool {
    let denied = |permission: Option<&Permission>| permission == Some(&Permission::Deny);
    let is_enabled = match tool {
        "run_command" => config.tools.run_command.enabled,
        "list_files" | "read_file" | "write_file" => config.tools.files.enabled,
        // What it reads says nothing of the household.
        "read_skill" => false,
        _ => true,
    };
    let general = config.tool_permissions.get(tool);
    is_enabled
        && !denied(account.permission_mode.as_ref())
        && !denied(account.tool_permissions.get(tool))
        && !denied(Some(general.unwrap_or(&config.permission_mode)))
}

fn token_line(token: &Token) -> String {
    let (name, user, role) = (&token.name, &token.user, token.role.as_str());
    let limits = narrowing(&json!(views::token(token)))
        .map_or(String::new(), |limits| format!(": {limits}"));
    format!("token {name:?}, as {user} ({role}){limits}")
}

/// People of a program with several users without a token that speaks for them: what they ask
/// is refused.
fn users_of_programs(config: &Config, actors: &Actors, option: &str) -> Option<Diagnosis> {
    let api = &config.openai_api;
    let is_spoken_for = |user: &String| {
        let is = |name: &String| folded(name) == folded(user);
        let mut others = actors
            .tokens
            .iter()
            .filter_map(|one| one.speaks_for.as_ref());
        others.any(|names| names.iter().any(is))
    };
    let mut missing: Vec<&str> = api
        .users
        .values()
        .filter(|user| !is_spoken_for(user))
        .map(|user| user.as_str())
        .collect();
    missing.sort_unstable();
    missing.dedup();
    (api.enabled && !missing.is_empty()).then(|| {
        Diagnosis::warning(format!(
            "openai_api.users names {}, but no token speaks for them: a program that several people \
             use needs one that does",
            missing.join(", ")
        ))
        .advise(format!(
            "hearth token create{option} --name open-webui --speaks-for {}",
            missing.join(",")
        ))
    })
}

/// Tokens with which Open WebUI asks for whoever uses it, in a household of several.
fn nameless(installation: &Installation<'_>, actors: &Actors) -> Vec<Diagnosis> {
    let (directory, option) = (installation.directory, &installation.option);
    if actors.users.len() < 2 || RunningServer::find(directory).is_none() {
        return Vec::new();
    }
    // Another check reports a server that does not answer.
    let listed = Door::at(directory.clone()).ask(&json!({ "type": "list_tokens" }));
    let listed = listed.unwrap_or_default();
    let tokens = listed["tokens"].as_array().into_iter().flatten();
    let diagnosis = |token: &Value| {
        let (name, user) = (&token["name"], text(&token["user"]));
        Diagnosis::warning(format!(
            "Open WebUI asks with the token {name} and does not say who asks: whoever uses that Open \
             WebUI sees and does what {user} may. If that is not {user} alone, have it say who"
        ))
        .advise("set ENABLE_FORWARD_USER_INFO_HEADERS=true for Open WebUI, then")
        .advise(format!(
            "hearth config set{option} openai_api.users '{{\"ADDRESS\": \"USER\"}}', and"
        ))
        .advise(format!(
            "hearth token create{option} --name open-webui --speaks-for USER,USER"
        ))
    };
    let nameless = tokens.filter(|token| token["names_nobody"] == true);
    nameless.map(diagnosis).collect()
}

/// Who speaks from elsewhere as a person, and who reads the answers.
fn linked_senders(config: &Config, actors: &Actors) -> Option<Diagnosis> {
    let mut lines = Vec::new();
    for one in &actors.senders {
        let (account, name) = (&one.account, one.person.as_str());
        let url = config.webhook_account(account).map(|it| &it.outgoing_url);
        let Some(host) = url.and_then(|url| Some(Url::parse(url).ok()?.authority.host)) else {
            lines.push(format!("{} of {account} is {name}", one.sender));
            continue;
        };
        lines.push(format!(
            "{} of webhook account {account} is {name}; whoever runs its outgoing_url, at {host}, \
             reads the answers",
            one.sender
        ));
    }
    (!lines.is_empty()).then(|| {
        Diagnosis::ok(format!(
            "these senders are linked to people, who may end that with `hearth account \
             unlink`:\n{}",
            lines.join("\n")
        ))
    })
}

/// Sources whose text does not count as text from outside.
fn trusted(config: &Config) -> Vec<String> {
    let accounts = config.webhook_accounts().filter(|one| one.trusted);
    let servers = config.mcp_servers.iter().filter(|one| one.trusted);
    let tools = config.tools.custom.iter().filter(|one| one.trusted);
    let hosts = config.tools.web_fetch.trusted_hosts.iter();
    accounts
        .map(|one| format!("webhook account {}", one.name))
        .chain(servers.map(|one| format!("MCP server {}", one.name)))
        .chain(tools.map(|one| format!("tool {}", one.name)))
        .chain(hosts.map(|host| format!("pages of {host}")))
        .collect()
}

/// Accounts whose messages count as the owner's words, whoever sends them.
fn open_doors(settings: &Settings, option: &str) -> Vec<Diagnosis> {
    settings
        .current()
        .webhook_accounts()
        .filter(|account| account.enabled && account.trusted && account.secret.is_none())
        .map(|account| {
            let name = &account.name;
            Diagnosis::warning(format!(
                "webhook account {name} is trusted and has no secret: whoever can connect speaks \
                 as you"
            ))
            .advise(set_account(settings, option, name, "secret", "-"))
            .advise("or remove its \"trusted\"")
        })
        .collect()
}

/// Offers the lines by which a reminder to oneself and a list ask nobody, where an older
/// configuration has them ask.
fn telling_that_asks(config: &Config, option: &str) -> Option<Diagnosis> {
    let lines: Vec<String> = [("schedule", "allow_own"), ("lists", "allow")]
        .into_iter()
        .flat_map(|(tool, allowed)| {
            let places = where_asked(config, tool).into_iter();
            places.map(move |place| {
                format!("hearth config set{option} {place}tool_permissions.{tool} {allowed}")
            })
        })
        .collect();
    (!lines.is_empty()).then(|| {
        Diagnosis::ok(format!(
            "reminders and lists ask for permission, also what only tells whoever asks something \
             or adds to a list. To have that come unasked:\n{}",
            lines.join("\n")
        ))
    })
}

/// The places of the settings, each with its dot, where this tool asks for no other reason than
/// the mode, or everywhere.
fn where_asked(config: &Config, tool: &str) -> Vec<String> {
    let asks = |permission: Option<&Permission>| permission == Some(&Permission::Ask);
    let is_general = config.permission_mode == Permission::Ask
        && (config.tool_permissions.get(tool)).is_none_or(|one| asks(Some(one)));
    let people = config.people.iter().filter(|(_, person)| {
        let tools = person.tools.as_ref();
        asks(person.permission_mode.as_ref())
            && !person.tool_permissions.contains_key(tool)
            && tools.is_none_or(|tools| tools.iter().any(|one| one == tool))
    });
    let places = is_general.then(String::new).into_iter();
    places
        .chain(people.map(|(name, _)| format!("people.{name}.")))
        .collect()
}

/// Names in `people` and in audiences that no user has.
fn unknown_names(config: &Config, actors: &Actors, option: &str) -> Vec<Diagnosis> {
    let unknown = settings::unknown_names(config, &actors.users).into_iter();
    let diagnosis = |one: UnknownName<'_>| {
        let (found, name) = (Diagnosis::warning(one.text()), one.name);
        match one.account {
            None => found
                .advise(format!("hearth config set{option} people.{name} null"))
                .advise("or correct the name"),
            Some(_) => found.advise(format!(
                "remove or correct {name} in the account's \"audience\": the next user of that \
                 name would read along"
            )),
        }
    };
    unknown.map(diagnosis).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use base::testing::rows;

    fn settings(text: &str) -> Settings {
        Settings::from_text(Path::new("c.json"), text, |_| None).unwrap()
    }

    fn config(text: &str) -> std::sync::Arc<Config> {
        settings(text).current()
    }

    fn account(more: &str) -> String {
        format!(
            r#""channels":{{"webhook":{{"accounts":{{"ci":{{"incoming_path":"/ci","outgoing_url":"http://192.168.1.5/"{more}}}}}}}}}"#
        )
    }

    #[test]
    fn what_only_tells_is_offered_to_come_unasked() {
        let kim = r#""people":{"kim":{"permission_mode":"ask","tools":["lists"]}}"#;
        let table = r#"
            {"permission_mode":"allow"} | -
            {"permission_mode":"ask"} | tool_permissions.schedule allow_own; tool_permissions.lists allow
            {"permission_mode":"ask","tool_permissions":{"schedule":"allow_own"}} | tool_permissions.lists allow
            {"permission_mode":"ask","tool_permissions":{"schedule":"deny","lists":"allow"}} | -
            {"permission_mode":"allow",KIM} | people.kim.tool_permissions.lists allow
        "#;
        for [text, offered] in rows(&table.replace("KIM", kim)) {
            let found = telling_that_asks(&config(text), " -D d");
            let said = found.map_or("x\n-".to_owned(), |one| one.text);
            let lines: Vec<&str> = said.lines().skip(1).collect();
            let lines = lines.join("; ").replace("hearth config set -D d ", "");
            assert_eq!(lines, offered, "{text}");
        }
    }

    #[test]
    fn what_acts_without_a_person_is_listed() {
        let nobody = Actors::default();
        let named = account(r#","tools":["recall","light","read_file"],"audience":["ada"]"#);
        let denied = account(r#","tools":["recall"],"permission_mode":"deny""#);
        let off = account(r#","tools":["recall"],"enabled":false"#);
        let table = [
            ("{}".to_owned(), None),
            (format!("{{{}}}", account("")), None),
            (format!("{{{denied}}}"), None),
            (format!("{{{off}}}"), None),
            (
                format!("{{{named}}}"),
                Some("webhook account ci, by recall, read_file; ada can read along"),
            ),
            (
                format!(r#"{{"tools":{{"files":{{"enabled":false}}}},{named}}}"#),
                Some("webhook account ci, by recall; ada"),
            ),
            (
                r#"{"openai_api":{"enabled":true,"ollama_user":"bob"}}"#.to_owned(),
                Some("programs without a token at /api, as bob"),
            ),
            (
                r#"{"mcp_servers":{"home":{"url":"http://a/","trusted":true}},
                    "tools":{"web_fetch":{"trusted_hosts":["recipes.example"]}}}"#
                    .to_owned(),
                Some("counts as yours: MCP server home, pages of recipes.example"),
            ),
        ];
        for (text, says) in table {
            let found = list(&config(&text), &nobody).text;
            let says = says.unwrap_or("nothing reaches");
            assert!(found.contains(says), "{text}: {found}");
        }
        let actors = Actors {
            guests: Vec::new(),
            users: vec!["ada".to_owned()],
            tokens: Vec::new(),
            schedules: vec![(Some("ada".to_owned()), 3)],
            ..Actors::default()
        };
        let found = list(&config("{}"), &actors).text;
        assert!(
            found.contains("reminders and routines, as ada: 3"),
            "{found}"
        );
    }

    #[test]
    fn names_that_nobody_has_and_open_doors_are_warned_about() {
        let actors = Actors {
            users: vec!["Ada".to_owned()],
            ..Actors::default()
        };
        let table = r#"
            {"people":{"ADA":{}}}        | -
            {"people":{"eve":{}}}        | people.eve is for a user who does not exist
            {ONE}                        | -
            {TWO}                        | names eve, a user who does not exist
        "#;
        let table = table
            .replace("ONE", &account(r#","audience":["ada"]"#))
            .replace("TWO", &account(r#","audience":["ada","eve"]"#));
        for [text, says] in rows(&table) {
            let found = unknown_names(&config(text), &actors, "");
            match (found.as_slice(), says) {
                ([], "-") => {}
                ([one], says) => {
                    assert!(one.text.contains(says), "{text}: {one:?}");
                    // Whoever gets the name would get what stands there.
                    let opens = |advice: &String| advice.contains("user add");
                    assert!(!one.advice.iter().any(opens), "{text}: {one:?}");
                }
                _ => panic!("{text}: {found:?}"),
            }
        }
        let secret = r#","secret":"a-secret-of-the-home""#;
        for (more, number) in [
            (r#","trusted":true"#.to_owned(), 1),
            (format!(r#","trusted":true{secret}"#), 0),
            (String::new(), 0),
        ] {
            let text = format!("{{{}}}", account(&more));
            assert_eq!(open_doors(&settings(&text), "").len(), number, "{text}");
        }
    }
}
