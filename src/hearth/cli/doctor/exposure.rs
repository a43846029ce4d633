//! Who can reach the server, and what may happen without a question.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::MetadataExt;

use super::diagnosis::{Diagnosis, Installation};
use agent::tools::{pdf_obstacle, takes_address};
use base::address::is_local_host;
use base::url::is_exposed;
use config::{
    Channel, Config, CustomRun, CustomTool, Permission, Settings, TcpChannel, WebhookAccount,
    quoted,
};
use net::process::has_landlock;
use store::{UserRole, look_up_role};

/// Addresses outside every private network (RFC 5737, RFC 3849).
const PUBLIC_ADDRESSES: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(203, 0, 113, 7)),
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 7)),
];

/// Reports what is more open than a household needs.
pub fn check(installation: &Installation<'_>, settings: &Settings) -> Vec<Diagnosis> {
    let config = settings.current();
    let mut found = judge(settings, &installation.option);
    found.extend(ollama_user(installation, &config));
    found
}

/// Whether the user exists that programs without a token act as. Another check
/// reports a database that cannot be read.
fn ollama_user(installation: &Installation<'_>, config: &Config) -> Option<Diagnosis> {
    let api = &config.openai_api;
    let name = api.ollama_user.as_ref().filter(|_| api.enabled)?;
    let role = look_up_role(&installation.directory.database(), name).ok()?;
    if role.is_some_and(|role| role >= UserRole::User) {
        return None;
    }
    let option = &installation.option;
    let (text, remedy) = match role {
        None => (
            format!("openai_api.ollama_user is {name:?}, but there is no such user"),
            format!("hearth user add{option} {name}"),
        ),
        Some(_) => (
            format!("openai_api.ollama_user is {name:?}, a viewer, who cannot chat"),
            format!("hearth user role{option} {name} user"),
        ),
    };
    Some(
        Diagnosis::problem(text)
            .of("openai_api")
            .advise(remedy)
            .advise(format!(
                "or hearth config set{option} openai_api.ollama_user null"
            )),
    )
}

/// Whether programs of tools are kept from the server's files.
pub fn sandbox(installation: &Installation<'_>, settings: &Settings) -> Vec<Diagnosis> {
    // Whose server it is: root may look after that of another user.
    let status = fs::metadata(installation.directory.path());
    let is_root = status.is_ok_and(|status| status.uid() == 0);
    let pdfs = match pdf_obstacle() {
        Some(obstacle) => format!("PDFs are not read as text: {obstacle}"),
        None => "PDFs are read as text, by pdftotext without any file or network".to_owned(),
    };
    vec![
        judge_sandbox(&settings.current(), has_landlock(), is_root),
        Diagnosis::ok(pdfs),
    ]
}

fn judge_sandbox(config: &Config, has_landlock: bool, is_root: bool) -> Diagnosis {
    const ADVICE: &str =
        "use Linux 5.13 or newer, with landlock among the modules in /sys/kernel/security/lsm";
    let tools = &config.tools;
    let is_confined = |tool: &CustomTool| matches!(&tool.run, CustomRun::Command(it) if it.sandbox);
    let is_needed = tools.run_command.enabled || tools.custom.iter().any(is_confined);
    let lacking = "this kernel has no Landlock";
    match (has_landlock, is_needed) {
        (true, _) if is_root => Diagnosis::warning(
            "the server runs as root: a tool without a sandbox, or a fault of the server's own, \
             can change the whole machine",
        )
        .advise("run hearth as a user of its own: hearth help operating"),
        (true, _) => Diagnosis::ok("this kernel has Landlock, so tools can be confined"),
        (false, false) => Diagnosis::ok(format!("{lacking}; no tool is to be confined")),
        (false, true) => {
            let text = format!("{lacking}: tools can do whatever the server's user can");
            Diagnosis::warning(text).advise(ADVICE)
        }
    }
}

fn judge(settings: &Settings, option: &str) -> Vec<Diagnosis> {
    let config = &*settings.current();
    let mut found = Vec::new();
    for channel in &config.channels {
        match channel {
            Channel::Tcp(tcp) => found.extend(port(tcp, config)),
            Channel::Webhook(webhook) => {
                let open = webhook.accounts.iter().filter(|account| account.enabled);
                let open = open.flat_map(|one| account(one, settings, option));
                found.extend(open.map(|one| one.of("webhook account")));
            }
            Channel::Relay(_) | Channel::Telegram(_) => {}
        }
    }
    found.extend(unasked(config, option));
    found.extend(config.tools.custom.iter().filter_map(open_reader));
    if found.is_empty() {
        let text = "only private networks can connect, and every webhook account has a secret";
        found.push(Diagnosis::ok(text));
    }
    found
}

/// Warns of a tool that is declared to change nothing and opens any address: what it is called
/// with can carry there what the model knows.
fn open_reader(tool: &CustomTool) -> Option<Diagnosis> {
    let name = &tool.name;
    let found = Diagnosis::warning(format!(
        "{name} is declared to change nothing (read_only), but opens any address"
    ))
    .advise(format!(
        "remove \"read_only\" from {name} in tools.custom, so that it asks after text from outside"
    ));
    (tool.read_only && takes_address(&tool.parameters)).then_some(found)
}

/// Warns when clients of the internet meet tools that never ask.
fn unasked(config: &Config, option: &str) -> Option<Diagnosis> {
    let is_reachable = |channel: &&Channel| match channel {
        Channel::Tcp(tcp) => is_open(tcp),
        Channel::Relay(_) => true,
        Channel::Webhook(_) | Channel::Telegram(_) => false,
    };
    let open = config.channels.iter().filter(is_reachable);
    let names: Vec<&str> = open.map(Channel::name).collect();
    if config.permission_mode != Permission::Allow || names.is_empty() {
        return None;
    }
    let text = format!(
        "clients of the internet can connect (channel {}), and every tool runs without asking \
         (permission_mode allow)",
        names.join(", ")
    );
    Some(Diagnosis::warning(text).advise(format!("hearth config set{option} permission_mode ask")))
}

/// Whether addresses of the internet may connect, themselves or through a proxy.
fn is_open(tcp: &TcpChannel) -> bool {
    let mut public = PUBLIC_ADDRESSES.iter();
    public.any(|one| tcp.allow_from.allows(*one))
}

fn port(tcp: &TcpChannel, config: &Config) -> Vec<Diagnosis> {
    let name = &tcp.name;
    let mut found = Vec::new();
    let is_public = tcp
        .bind
        .is_some_and(|bind| !bind.is_unspecified() && !is_local_host(&bind.to_string()));
    if is_public {
        let text = format!(
            "channel {name} listens on the public address {}",
            tcp.bind.map(|bind| bind.to_string()).unwrap_or_default()
        );
        found.push(
            Diagnosis::warning(text)
                .advise("listen on a private address, and put a reverse proxy in front"),
        );
    }
    // Behind a proxy on this machine only the proxy knows the clients' addresses.
    let behind_proxy = tcp.bind.is_some_and(|bind| bind.is_loopback());
    let is_open = is_open(tcp);
    if is_open && !behind_proxy && !config.tls.is_only() {
        let text = format!(
            "channel {name} lets anybody connect (allow_from), over plain HTTP: passwords and \
             tokens can be intercepted"
        );
        found.push(
            Diagnosis::warning(text)
                .advise("remove allow_from, so that only private addresses may connect")
                .advise("or encrypt: tls.cert or tls.only, or a reverse proxy with TLS"),
        );
    }
    if is_open && behind_proxy && config.trusted_proxies.is_empty() {
        let text =
            format!("channel {name} is for a proxy on this machine, but no proxy is trusted");
        found.push(
            Diagnosis::warning(text).advise(
                "set trusted_proxies to [\"127.0.0.1\"], so that limits count real clients",
            ),
        );
    }
    found
}

/// The command that changes a setting of a webhook account.
pub fn set_account(
    settings: &Settings,
    option: &str,
    name: &str,
    key: &str,
    value: &str,
) -> String {
    let path = settings.account_path(name).unwrap_or_default();
    let path = quoted(&format!("{path}.{key}"));
    format!("hearth config set{option} {path} {value}")
}

fn account(account: &WebhookAccount, settings: &Settings, option: &str) -> Vec<Diagnosis> {
    let (config, name) = (settings.current(), &account.name);
    let set = |key: &str, value: &str| set_account(settings, option, name, key, value);
    let mut found = Vec::new();
    if account.secret.is_none() {
        let text = format!("webhook account {name} has no secret: anyone who can connect may post");
        found.push(Diagnosis::warning(text).advise(set("secret", "-")));
    }
    let runs_tools = account.tools.as_ref().is_none_or(|tools| !tools.is_empty());
    let mode = account.permission_mode.unwrap_or(Permission::Allow);
    if config.permission_mode == Permission::Allow && mode == Permission::Allow && runs_tools {
        let text = format!(
            "messages to webhook account {name} can run every tool without asking \
             (permission_mode allow)"
        );
        found.push(Diagnosis::warning(text).advise(set("permission_mode", "ask")));
    }
    if is_exposed(&account.outgoing_url) {
        let text = format!("replies to webhook account {name} cross the internet unencrypted");
        found.push(Diagnosis::warning(text).advise("give it an outgoing_url with https"));
    }
    found
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::diagnosis::Level;
    use super::*;
    use base::testing::rows;
    use config::Settings;

    #[test]
    fn what_is_more_open_than_needed_is_reported() {
        let table = r#"
            {} | -
            {"channels":[TCP}]} | -
            {"channels":[TCP,"allow_from":["*"]}]} | lets anybody connect
            {"channels":[TCP,"allow_from":["203.0.113.0/24"]}]} | lets anybody connect
            {"channels":[TCP,"bind":"198.51.100.4"}]} | public address
            {"channels":[TCP,"bind":"127.0.0.1","allow_from":["*"]}]} | no proxy is trusted
            {"channels":{"webhook":{"accounts":{"ci":{LOCAL}}}}} | has no secret
            {"channels":{"webhook":{"accounts":{"ci":{LOCAL,SECRET}}}}} | -
            {"channels":{"webhook":{"accounts":{"ci":{"incoming_path":"/ci",SECRET,"outgoing_url":"http://a.example:80/x"}}}}} | unencrypted
            {"permission_mode":"allow","channels":{"webhook":{"accounts":{"ci":{LOCAL,SECRET}}}}} | without asking
            {"tools":{"custom":[{"name":"page",READS,"parameters":{"url":"string"}}]}} | opens any address
            {"tools":{"custom":[{"name":"page",READS,"parameters":{"room":"string"}}]}} | -
            {"permission_mode":"allow","channels":{"tcp":{},"away":{"type":"websocket","url":"wss://relay.example/ws"}}} | clients of the internet can connect (channel away), and every tool runs
            {"permission_mode":"ask","channels":{"tcp":{},"away":{"type":"websocket","url":"wss://relay.example/ws"}}} | -
            {"permission_mode":"allow","channels":{"webhook":{"accounts":{"ci":{LOCAL,SECRET,"permission_mode":"ask"}}}}} | -
        "#;
        let local = r#""incoming_path":"/ci","outgoing_url":"http://192.168.1.5/x""#;
        let table = table
            .replace("TCP", r#"{"name":"lan","type":"tcp","port":5000"#)
            .replace("SECRET", r#""secret":"a-secret-of-the-home""#)
            .replace(
                "READS",
                r#""description":"d","command":["x"],"read_only":true"#,
            )
            .replace("LOCAL", local);
        for [config, says] in rows(&table) {
            let settings = Settings::from_text(Path::new("c.json"), config, |_| None).unwrap();
            let found = judge(&settings, " --data-dir /d");
            assert_eq!(found.len(), 1, "{config}: {found:?}");
            match says {
                "-" => assert_eq!(found[0].level, Level::Ok, "{config}: {found:?}"),
                says => {
                    assert_eq!(found[0].level, Level::Warning, "{config}");
                    assert!(found[0].text.contains(says), "{config}: {found:?}");
                    assert!(!found[0].advice.is_empty());
                }
            }
        }
    }

    #[test]
    fn what_mends_an_account_names_its_channel() {
        let account = r#""ci":{"incoming_path":"/ci","outgoing_url":"http://192.168.1.5/x"}"#;
        let table = r#"
            {"webhook":{"accounts":{ACCOUNT}}}                                 | channels.webhook.accounts.ci.secret -
            {"hooks":{"type":"webhook","accounts":{ACCOUNT}}}                  | channels.hooks.accounts.ci.secret -
            [{"type":"tcp"},{"type":"webhook","accounts":{ACCOUNT}}]           | 'channels[1].accounts.ci.secret' -
            {"webhook":{"accounts":{}},"b":{"type":"webhook","accounts":{ACCOUNT}}} | channels.b.accounts.ci.secret -
        "#;
        for [channels, says] in rows(&table.replace("ACCOUNT", account)) {
            let file = format!(r#"{{"channels":{channels}}}"#);
            let settings = Settings::from_text(Path::new("c.json"), &file, |_| None).unwrap();
            let found = judge(&settings, "");
            assert!(found[0].advice[0].ends_with(says), "{channels}: {found:?}");
        }
    }

    #[test]
    fn a_sandbox_holds_neither_without_landlock_nor_against_root() {
        let tool = r#"{"name":"t","description":"d","command":["x"]"#;
        let table = r#"
            {}                                             | ok
            {"tools":{"custom":[TOOL,"sandbox":false}]}}   | ok
            {"tools":{"custom":[TOOL}]}}                   | warning
            {"tools":{"run_command":{"enabled":true}}}     | warning
        "#;
        for [config, level] in rows(&table.replace("TOOL", tool)) {
            let settings = Settings::from_text(Path::new("c.json"), config, |_| None).unwrap();
            let judge = |has_landlock| judge_sandbox(&settings.current(), has_landlock, false);
            assert_eq!(judge(false).level.as_str(), level, "{config}");
            assert!(judge(false).text.contains("no Landlock"), "{config}");
            assert_eq!(judge(true).level, Level::Ok, "{config}");
            let of_root = judge_sandbox(&settings.current(), true, true);
            assert_eq!(of_root.level, Level::Warning, "{config}");
            assert!(of_root.text.contains("root"), "{config}");
        }
    }
}
