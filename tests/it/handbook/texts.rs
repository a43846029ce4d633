//! README and handbook say what is: the lists of settings are those of the code,
//! and all links lead somewhere.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use agent::model::profile::{
    CacheMark, EVERY_SERVER, MOST_BYTES, MOST_IMAGES, Profile, SERVICES, Thoughts, WindowQuestion,
};
use base::error::Code;
use config::{SettingDoc, declared_documentation};
use hearth::handbook::TOPICS;
use protocol::command;
use protocol::event::{self, EventTrait};
use support::programs::{PROGRAMS, PROXIES, driven};

/// The README, then the handbook in its order: paths below the project's folder.
pub fn documents() -> Vec<PathBuf> {
    let pages = TOPICS.iter().map(|topic| topic.name);
    let pages = std::iter::once("index").chain(pages).map(page);
    std::iter::once(PathBuf::from("README.md"))
        .chain(pages)
        .collect()
}

fn page(name: &str) -> PathBuf {
    Path::new("src/hearth/handbook").join(format!("{name}.md"))
}

pub fn text_of(document: &Path) -> String {
    fs::read_to_string(project().join(document)).unwrap()
}

fn project() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// With `UPDATE_HANDBOOK=1` in the environment the lists are written instead of
/// compared.
#[test]
fn the_lists_of_settings_are_those_of_the_declaration() {
    let (limits, settings): (Vec<_>, Vec<_>) = declared_documentation()
        .into_iter()
        .filter(|setting| setting.key != "limits")
        .partition(|setting| setting.key.starts_with("limits."));
    for (name, mark, list) in [
        ("configuration", "settings", settings_list(&settings)),
        ("limits", "limits", limits_list(&limits)),
    ] {
        assert_list(name, mark, &list);
    }
}

#[test]
fn the_facts_about_models_are_those_of_the_table() {
    assert_list("models", "facts", &facts_list());
}

#[test]
fn the_programs_that_work_are_those_that_tests_drive() {
    let sources = sources_of(&project().join("tests"));
    let is_there = |test: &str| {
        let begin = format!("make test-peers\"]\nfn {test}()");
        assert!(sources.contains(&begin), "no test of programs is {test}");
    };
    let mut list = "| Program | Version | What was driven |\n|---|---|---|\n".to_owned();
    let driven = driven();
    for one in PROGRAMS {
        is_there(one.test);
        let (noted, test) = (driven.get(one.name).map(String::as_str), one.test);
        let version = Some(one.version());
        assert_eq!(
            noted, version,
            "of {}: make test-peers PEERS={test}",
            one.name
        );
        writeln!(
            list,
            "| {} | {} | {} |",
            one.name,
            one.version(),
            one.driven
        )
        .unwrap();
    }
    for (name, test) in PROXIES {
        is_there(test);
        let what = "the page, the WebSocket and the interfaces below a path";
        writeln!(list, "| {name} | Debian's | {what} |").unwrap();
    }
    assert_list("works", "programs", &list);
}

/// Compares what stands between two marks of a page with what must be there, or writes
/// it.
fn assert_list(name: &str, mark: &str, list: &str) {
    let document = page(name);
    let old = text_of(&document);
    let (begin, end) = (format!("<!-- {mark} -->\n"), format!("<!-- /{mark} -->\n"));
    let from = old.find(&begin).expect(&begin) + begin.len();
    let to = old.find(&end).expect(&end);
    if old[from..to] == *list {
        return;
    }
    assert!(
        std::env::var_os("UPDATE_HANDBOOK").is_some(),
        "{} is not what the code says; this writes it:\n\n    \
         UPDATE_HANDBOOK=1 cargo test --test it handbook\n\nBetween {begin} and {end} there must be:\n{list}",
        document.display()
    );
    let mut new = old.clone();
    new.replace_range(from..to, list);
    fs::write(project().join(document), new).unwrap();
}

/// Each service with what is known of it and of its models; services that are alike,
/// together.
fn facts_list() -> String {
    let mut known: Vec<(String, Vec<&str>)> = Vec::new();
    let mut seen = Vec::new();
    for service in std::iter::once(&EVERY_SERVER).chain(SERVICES) {
        let facts = facts_of(service, &mut seen);
        match known.iter_mut().find(|(other, _)| *other == facts) {
            Some((_, names)) => names.push(service.name),
            None => known.push((facts, vec![service.name])),
        }
    }
    let mut text = String::new();
    for (facts, names) in known {
        write!(text, "\n### {}\n\n{facts}", names.join(", ")).unwrap();
    }
    text.push('\n');
    text
}

/// What is known of one service. Families that were listed before are only named.
fn facts_of(service: &Profile, seen: &mut Vec<String>) -> String {
    let mut text = String::new();
    let mut named = Vec::new();
    let usual = if service.name == EVERY_SERVER.name {
        Vec::new()
    } else {
        says(&EVERY_SERVER)
    };
    fact_item(&mut text, "", says(service), &usual, service.source);
    for family in service.families.iter().copied().flatten() {
        let names: Vec<String> = family
            .names
            .iter()
            .map(|name| format!("`{name}`"))
            .collect();
        let names = names.join(", ");
        let mut adapted = EVERY_SERVER;
        (family.adapt)(&mut adapted);
        let mut facts = String::new();
        let (usual, begin) = (says(&EVERY_SERVER), format!("{names}: "));
        fact_item(&mut facts, &begin, says(&adapted), &usual, family.source);
        if seen.contains(&facts) {
            named.push(names);
        } else {
            text.push_str(&facts);
            seen.push(facts);
        }
    }
    if !named.is_empty() {
        writeln!(text, "- {}: as above.", named.join(", ")).unwrap();
    }
    text
}

/// An item of a list: what is so and not usual.
fn fact_item(text: &mut String, begin: &str, says: Vec<String>, usual: &[String], source: &str) {
    let says: Vec<String> = (says.into_iter())
        .filter(|says| !usual.contains(says))
        .collect();
    let says = format!("{begin}{}.", says.join("; "));
    item(text, "", &says, &format!("Source: {source}."));
}

/// What a profile says: sentences without subject and full stop.
fn says(profile: &Profile) -> Vec<String> {
    let mut says = vec![match profile.thoughts {
        Thoughts::Nothing => "wants no reasoning back".to_owned(),
        Thoughts::WithCalls => "gets its reasoning back with the calls that it led to".to_owned(),
        Thoughts::WithEveryReply(member) => format!(
            "wants its reasoning back with every reply, in `{member}`, empty where it has none"
        ),
    }];
    let either = |is: bool, yes: &str, no: &str| if is { yes } else { no }.to_owned();
    says.push(either(
        profile.tool_choice,
        "is told by `tool_choice` to answer in words",
        "is told to answer in words by leaving the tools out",
    ));
    says.push(format!(
        "takes the limit on a reply as `{}`",
        profile.limit_name
    ));
    says.push(match profile.effort {
        Some(member) => format!("takes a reasoning effort as `{member}`"),
        None => "takes no reasoning effort".to_owned(),
    });
    says.push(match profile.images {
        Some(form) => format!("takes images as {form}"),
        None => "takes no images".to_owned(),
    });
    if profile.most_images != MOST_IMAGES {
        let most = profile.most_images;
        says.push(format!("takes at most {most} images in a request"));
    }
    if profile.largest_image != MOST_BYTES {
        let kib = profile.largest_image / 1024;
        says.push(format!("takes images of at most {kib} KiB"));
    }
    if profile.image_bytes != MOST_BYTES {
        let kib = profile.image_bytes / 1024;
        says.push(format!("takes at most {kib} KiB of images in a request"));
    }
    says.push(match profile.documents {
        Some(form) => format!("takes PDF files as {form}"),
        None => "takes no PDF files".to_owned(),
    });
    says.push(either(
        profile.message_after_results,
        "is shown the images of tools in a message behind their results",
        "is not shown the images of tools: it takes no message behind their results",
    ));
    if let Some(foreign) = profile.call_signature {
        says.push(format!(
            "wants its signature of a call back, and `{foreign}` with calls of other models"
        ));
    }
    for (is, words) in [
        (
            profile.no_stream_options,
            "counts the tokens of a stream unasked",
        ),
        (
            profile.short_call_ids,
            "wants ids of tool calls of 9 letters or digits",
        ),
        (
            profile.responses,
            "is asked through the Responses API first",
        ),
        (
            profile.opens_thinking,
            "marks only the end of its thoughts, if its server does not take them out",
        ),
    ] {
        says.extend(is.then(|| words.to_owned()));
    }
    says.extend(profile.cache.map(|mark| match mark {
        CacheMark::Key => "caches what has the same `prompt_cache_key`".to_owned(),
        CacheMark::Control => "caches what `cache_control` marks".to_owned(),
    }));
    says.push(format!("has a window of {} tokens", profile.window));
    let questions: Vec<&str> = (profile.window_questions.iter())
        .map(|question| match question {
            WindowQuestion::Props => "`n_ctx` of one slot in `/props`",
            WindowQuestion::Models => {
                "`max_model_len`, `meta.n_ctx` or `context_length` in `/v1/models`"
            }
            WindowQuestion::LmStudio => {
                "`loaded_context_length` or `max_context_length` in `/api/v0/models`"
            }
            WindowQuestion::Show => "`num_ctx` and `context_length` in `/api/show`",
        })
        .collect();
    if !questions.is_empty() {
        says.push(format!(
            "is asked for its window: {}",
            questions.join(", then ")
        ));
    }
    says
}

/// A list for each group of keys that belong together.
fn settings_list(settings: &[SettingDoc]) -> String {
    const ACCOUNTS: &str = "channels.webhook.accounts.NAME.";
    let group = |setting: &SettingDoc| {
        let first = setting.key.split(['.', '[']).next().unwrap();
        match first {
            _ if setting.key.starts_with(ACCOUNTS) => "Webhook accounts",
            "channels" | "relay" | "tls" | "allowed_origins" | "allowed_hosts"
            | "trusted_proxies" => "Connections",
            "people" | "privacy" | "notifications" => "People and privacy",
            "tools" => "Tools",
            "mcp_servers" => "MCP servers",
            "backup" | "retention" => "Backups and retention",
            "openai_api" | "voice" | "metrics" => "Other programs",
            _ => "Model and permissions",
        }
    };
    let mut titles: Vec<&str> = settings.iter().map(group).collect();
    titles.sort_unstable();
    titles.dedup();
    titles.sort_by_key(|title| settings.iter().position(|one| group(one) == *title));
    let mut text = String::new();
    for title in titles {
        writeln!(text, "\n## {title}\n").unwrap();
        if title == "Webhook accounts" {
            let accounts = ACCOUNTS.trim_end_matches('.');
            writeln!(text, "These keys are below `{accounts}`:\n").unwrap();
        }
        for setting in settings.iter().filter(|setting| group(setting) == title) {
            let writable = if setting.writable { " (writable)" } else { "" };
            let key = setting.key.trim_start_matches(ACCOUNTS);
            let value = match setting.default.as_str() {
                "required" => format!("Required: {}.", setting.expects),
                default => format!("Value: {}. Default: {}.", setting.expects, code(default)),
            };
            item(
                &mut text,
                &format!("`{key}`{writable}:"),
                &setting.documentation,
                &value,
            );
        }
    }
    text.push('\n');
    text
}

fn limits_list(limits: &[SettingDoc]) -> String {
    let mut text = "\n".to_owned();
    for limit in limits {
        let key = limit.key.trim_start_matches("limits.");
        let allowed = limit.expects.trim_start_matches("an integer from ");
        let value = format!("Default: {}. Allowed: {allowed}.", code(&limit.default));
        item(
            &mut text,
            &format!("`{key}`:"),
            &limit.documentation,
            &value,
        );
    }
    text.push('\n');
    text
}

/// An item of a list, in lines that a terminal shows whole. The value begins a
/// line of its own.
fn item(text: &mut String, term: &str, documentation: &str, value: &str) {
    const WIDTH: usize = 92;
    for (first, words) in [
        ("- ", format!("{term} {documentation}")),
        ("  ", value.to_owned()),
    ] {
        let mut line = first.trim_end().to_owned();
        for word in words.split_whitespace().map(literally) {
            if line.len() + 1 + word.len() > WIDTH {
                writeln!(text, "{line}").unwrap();
                line = " ".to_owned();
            }
            if line.is_empty() {
                line.push(' ');
            }
            line.push(' ');
            line.push_str(&word);
        }
        writeln!(text, "{line}").unwrap();
    }
}

/// A word that Markdown would read as markup or as an address, as code.
fn literally(word: &str) -> String {
    let is_plain = word.contains('`') || !(word.contains(['<', '*']) || word.contains("://"));
    if is_plain {
        return word.to_owned();
    }
    let inner = word
        .trim_start_matches('(')
        .trim_end_matches([',', ')', '.']);
    word.replacen(inner, &format!("`{inner}`"), 1)
}

/// JSON in code, words as they are.
fn code(text: &str) -> String {
    match serde_json::from_str::<serde_json::Value>(text) {
        Ok(_) => format!("`{text}`"),
        Err(_) => text.to_owned(),
    }
}

#[test]
fn every_command_event_and_code_is_explained() {
    let protocol = text_of(&page("protocol"));
    let rows = |name: &str| -> String {
        let start = format!("| `{name}`");
        let rows = protocol.lines().filter(|line| line.starts_with(&start));
        let rows: Vec<&str> = rows.collect();
        assert!(!rows.is_empty(), "protocol.md has no row for {name}");
        rows.join("\n")
    };
    let names_all = |name: &str, fields: &[&str]| {
        let rows = rows(name);
        for field in fields {
            let shown = format!("`{field}`");
            assert!(rows.contains(&shown), "{name} has a field {field}: {rows}");
        }
        rows
    };
    for command in command::DECLARATIONS {
        let rows = names_all(command.name, command.fields);
        let role = format!("`{}` ({})", command.name, command.role.as_str());
        let is_first = command.name == "auth";
        assert!(is_first || rows.contains(&role), "{role}: {rows}");
    }
    for event in event::DECLARATIONS {
        let rows = names_all(event.name, event.fields);
        let is_for_admins = event.traits.contains(&EventTrait::AdminOnly);
        assert_eq!(rows.contains("(admins)"), is_for_admins, "{rows}");
    }
    for code in Code::WORDS {
        rows(code);
    }
}

/// What a heading's link is called, by the rule that code hosts and the page have.
fn anchors(text: &str) -> Vec<String> {
    let mut is_code = false;
    let mut anchors = Vec::new();
    for line in text.lines() {
        is_code ^= line.starts_with("```");
        if is_code || !line.starts_with('#') {
            continue;
        }
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title
            .chars()
            .filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-'))
            .map(|letter| if letter == ' ' { '-' } else { letter });
        anchors.push(kept.collect());
    }
    anchors
}

#[test]
fn every_link_leads_somewhere() {
    let mut links = 0;
    for document in documents() {
        let text = text_of(&document);
        for link in text.split("](").skip(1) {
            let target = &link[..link.find(')').unwrap()];
            links += 1;
            if target.starts_with("https://") {
                continue;
            }
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            let path = match path {
                "" => document.clone(),
                _ => document.parent().unwrap().join(path),
            };
            assert!(
                project().join(&path).exists(),
                "{} links to {target}, which is not there",
                document.display()
            );
            assert!(
                anchor.is_empty() || anchors(&text_of(&path)).iter().any(|one| one == anchor),
                "{} links to {target}, and there is no such heading",
                document.display()
            );
        }
    }
    assert!(links > 60, "only {links} links were found");
}

/// All sources below a directory, one after the other.
fn sources_of(directory: &Path) -> String {
    let mut sources = String::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources += &sources_of(&path);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            sources += &fs::read_to_string(path).unwrap();
        }
    }
    sources
}

#[test]
fn each_test_against_an_attacker_is_there() {
    let sources = sources_of(&project().join("tests/it"));
    let text = text_of(&page("threats"));
    let named = text
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|name| name.matches('_').count() > 1);
    let mut count = 0;
    for name in named {
        count += 1;
        assert!(
            sources.contains(&format!("#[test]\nfn {name}()")),
            "threats.md names the test {name}, which is not there"
        );
    }
    assert!(count > 20, "only {count} tests were found");
}

#[test]
fn the_documents_are_those_of_this_version() {
    let version = env!("CARGO_PKG_VERSION");
    let changelog = text_of(&page("changelog"));
    let newest = changelog.lines().find_map(|line| line.strip_prefix("## "));
    assert_eq!(newest, Some(version));
    let operating = text_of(&page("operating"));
    let row = format!("| {version} | {version}");
    assert!(operating.contains(&row), "no row says what {version} reads");
    // Packages and images.
    for name in ["hearth_", "hearth-", "hearth:"] {
        let named = operating.split(name).skip(1);
        let mut numbered = named.filter(|rest| rest.starts_with(|one: char| one.is_ascii_digit()));
        assert!(numbered.all(|rest| rest.starts_with(version)), "{name}");
    }
}

#[test]
fn the_readme_stays_short() {
    let lines = text_of(Path::new("README.md")).lines().count();
    assert!(lines <= 330, "README.md has {lines} lines");
}
