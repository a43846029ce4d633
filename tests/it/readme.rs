//! The README says what is: its tables are those of the code, and its links
//! lead somewhere.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use base::error::Code;
use config::{SettingDoc, documentation};
use protocol::event::Name;
use protocol::{command, people};

pub fn readme() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    fs::read_to_string(path).unwrap()
}

/// With `UPDATE_README=1` in the environment the tables are written instead of
/// compared.
#[test]
fn the_tables_of_settings_are_those_of_the_declaration() {
    let (limits, settings): (Vec<_>, Vec<_>) = documentation()
        .into_iter()
        .filter(|setting| setting.key != "limits")
        .partition(|setting| setting.key.starts_with("limits."));
    let old = readme();
    let mut new = old.clone();
    for (name, table) in [
        ("settings", settings_table(&settings)),
        ("limits", limits_table(&limits)),
    ] {
        let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->\n"));
        let from = new.find(&begin).expect(&begin) + begin.len();
        let to = new.find(&end).expect(&end);
        if std::env::var_os("UPDATE_README").is_none() {
            assert!(
                new[from..to] == table,
                "the table between {begin} and {end} of README.md must be as follows \
                 (`UPDATE_README=1 cargo test --test it readme` writes it):\n\n{table}"
            );
        }
        new.replace_range(from..to, &table);
    }
    if new != old {
        fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md"), new).unwrap();
    }
}

/// A table for each group of keys that belong together.
fn settings_table(settings: &[SettingDoc]) -> String {
    const ACCOUNTS: &str = "channels.webhook.accounts.NAME.";
    let group = |setting: &SettingDoc| {
        let first = setting.key.split(['.', '[']).next().unwrap();
        match first {
            _ if setting.key.starts_with(ACCOUNTS) => "Webhook accounts",
            "channels" | "relay" | "tls" | "allowed_origins" | "allowed_hosts"
            | "trusted_proxies" => "Ways in",
            "tools" => "Tools",
            "mcp_servers" => "MCP servers",
            "backup" | "retention" => "Backups and retention",
            "openai_api" | "metrics" => "Other programs",
            _ => "Model and permissions",
        }
    };
    let mut titles: Vec<&str> = settings.iter().map(group).collect();
    titles.sort_unstable();
    titles.dedup();
    titles.sort_by_key(|title| settings.iter().position(|one| group(one) == *title));
    let mut text = String::new();
    for title in titles {
        writeln!(text, "\n### {title}\n").unwrap();
        if title == "Webhook accounts" {
            writeln!(
                text,
                "Each key below `{}`:\n",
                ACCOUNTS.trim_end_matches('.')
            )
            .unwrap();
        }
        text.push_str("| Key | Value | Default | Meaning |\n|---|---|---|---|\n");
        for setting in settings.iter().filter(|setting| group(setting) == title) {
            let star = if setting.writable { " *" } else { "" };
            writeln!(
                text,
                "| `{}`{star} | {} | {} | {} |",
                setting.key.trim_start_matches(ACCOUNTS),
                cell(&setting.expects),
                default(&setting.default),
                cell(&setting.documentation)
            )
            .unwrap();
        }
    }
    text.push('\n');
    text
}

fn limits_table(limits: &[SettingDoc]) -> String {
    let mut table = "| Key | Default | Allowed | Meaning |\n|---|---|---|---|\n".to_owned();
    for limit in limits {
        writeln!(
            table,
            "| `{}` | {} | {} | {} |",
            limit.key.trim_start_matches("limits."),
            default(&limit.default),
            cell(limit.expects.trim_start_matches("an integer from ")),
            cell(&limit.documentation)
        )
        .unwrap();
    }
    table
}

/// JSON in code, words as they are.
fn default(text: &str) -> String {
    match serde_json::from_str::<serde_json::Value>(text) {
        Ok(_) => format!("`{text}`"),
        Err(_) => cell(text),
    }
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
        .replace('*', "\\*")
        .replace('<', "&lt;")
}

#[test]
fn every_command_event_and_code_is_explained() {
    let readme = readme();
    let names = command::NAMES
        .into_iter()
        .chain(people::NAMES)
        .chain(Name::ALL.map(Name::as_str))
        .chain(Code::ALL.map(Code::as_str));
    for name in names {
        assert!(
            readme.contains(&format!("| `{name}`")),
            "README.md has no row for {name}"
        );
    }
}

#[test]
fn every_link_leads_somewhere() {
    let readme = readme();
    let anchors: Vec<String> = readme
        .lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| {
            line.trim_start_matches('#')
                .trim()
                .to_lowercase()
                .chars()
                .filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-'))
                .map(|letter| if letter == ' ' { '-' } else { letter })
                .collect()
        })
        .collect();
    let mut links = 0;
    for link in readme.split("](").skip(1) {
        let target = &link[..link.find(')').unwrap()];
        let leads = match target.strip_prefix('#') {
            Some(anchor) => anchors.iter().any(|known| known == anchor),
            None if target.starts_with("https://") => true,
            None => Path::new(env!("CARGO_MANIFEST_DIR")).join(target).exists(),
        };
        assert!(leads, "README.md links to {target}, which is not there");
        links += 1;
    }
    assert!(links > 20, "only {links} links were found");
}
