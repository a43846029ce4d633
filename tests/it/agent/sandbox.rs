//! What the programs of tools can reach of the server that starts them.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use net::process::has_landlock;
use support::client::Client;
use support::eventually;
use support::home::{TemporaryDirectory, make_people, write_config};
use support::mcp_http::shell_server;
use support::program::{Program, binary, skipped};

/// The user as whom the server runs when root runs the tests: root reads
/// everything.
const NOBODY: &str = "65534";
/// A key in the environment of the server.
const KEY: &str = "sk-of-the-household";

/// Names what works, when run by a shell whose parent is the server. It does not
/// end at what fails.
const PROBE: &str = r#"
try() { sh -c "$2" >/dev/null 2>&1 </dev/null && printf '%s ' "$1"; }
try environ "cat /proc/$PPID/environ"
try memory "head -c 1 /proc/$PPID/mem || cat /proc/$PPID/maps"
try descriptors "readlink /proc/$PPID/fd/0"
try inherited "ls -l /proc/self/fd | grep -q DATA/hearth"
try key "env | grep -q sk-of-the-household"
try database "cat DATA/hearth.db"
try config "cat DATA/config.json"
try list "ls DATA"
try replace "echo x >>DATA/config.json"
try create "echo x >DATA/new"
try door "DATA/files/hearth user list --data-dir DATA"
try socket 'perl DATA/files/client.pl DATA/hearth.sock "$(cat DATA/hearth.sock.key)"'
try stranger "perl DATA/files/client.pl DATA/hearth.sock hearth_guessed"
try unsigned "perl DATA/files/client.pl DATA/hearth.sock"
try own "cat OWN/lamp.conf"
try workspace "echo x >DATA/files/x && cat DATA/files/x"
try temporary 'file=$(mktemp) && echo x >$file && rm $file'
try devices "echo x >/dev/null; head -c 1 /dev/urandom"
try system "ls /usr && cat /etc/passwd"
echo
"#;

/// A client of the server's socket, which signs in with a key, or asks without one. It
/// succeeds if it learns who there is.
const CLIENT: &str = r#"
my ($path, $key) = @ARGV;
socket(S, 1, 1, 0) && connect(S, pack("Sa108", 1, $path)) or exit 2;
syswrite(S, qq({"type":"auth","token":"$key"}\n)) if defined $key;
syswrite(S, qq({"type":"list_users"}\n));
alarm 20;
my $all = "";
while (sysread(S, my $part, 65536)) {
    $all .= $part;
    exit 0 if $all =~ /"users"/;
    exit 1 if $all =~ /"error"/;
}
exit 1;
"#;

/// What an MCP server says whose one tool runs the probe.
const SAY_PROBE: &str = r#"say "{\"content\":[{\"type\":\"text\",\"text\":\"$(probe)\"}]}""#;

/// What a program in a sandbox can do.
const CONFINED: &str = "own workspace temporary devices system";
/// What any other can, if it is not root.
const OPEN: &str =
    "database config list replace create door socket own workspace temporary devices system";

fn command(program: &str, arguments: &[&str]) -> bool {
    Command::new(program)
        .args(arguments)
        .stdout(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// The words that launch the program as somebody who is not root; none when that
/// cannot be.
fn as_somebody() -> Option<Vec<String>> {
    let binary = binary().display().to_string();
    if !rustix::process::geteuid().is_root() {
        return Some(vec![binary]);
    }
    let ids = [format!("--reuid={NOBODY}"), format!("--regid={NOBODY}")];
    let mut words = vec!["setpriv".to_owned(), "--clear-groups".to_owned()];
    words.extend(ids);
    words.push(binary);
    let arguments: Vec<&str> = words[1..].iter().map(String::as_str).collect();
    let works = command(&words[0], &[&arguments[..], &["--version"]].concat());
    if !works {
        skipped("root cannot start the program as another user with setpriv");
    }
    works.then_some(words)
}

/// What the offline provider says that a tool answered.
fn answer(client: &mut Client, tool: &str, arguments: &Value) -> String {
    let reply = client.chat(&format!("run {tool} {arguments}"));
    let text = reply["response"].as_str().unwrap();
    let said = text.split_once(" answered: ");
    said.unwrap_or_else(|| panic!("{text}")).1.trim().to_owned()
}

#[test]
fn programs_of_tools_reach_neither_the_servers_keys_nor_its_data() {
    if let Some(launch) = as_somebody() {
        check(&launch, false);
    }
}

/// The kernel lets root, as such, read any process and any file.
#[test]
fn programs_of_roots_tools_reach_no_more() {
    if rustix::process::geteuid().is_root() {
        check(&[binary().display().to_string()], true);
    } else {
        skipped("only root can test what root's tools reach");
    }
}

/// Runs the probe in a server that is launched with these words.
fn check(launch: &[String], as_root: bool) {
    let place = TemporaryDirectory::new();
    let home = fs::canonicalize(place.path()).unwrap();
    let path = |name: &str| home.join(name);
    for directory in ["data", "data/files", "own", "temporary"] {
        fs::create_dir(path(directory)).unwrap();
    }
    let data = path("data");
    let own = path("own");
    let fill = |text: &str| {
        let text = text.replace("DATA", data.to_str().unwrap());
        text.replace("OWN", own.to_str().unwrap())
    };
    let probe = fill(PROBE);
    // Its own $PPID is that of the shell that it is in.
    let tools = json!([{"name": "probe", "inputSchema": {"type": "object"}}]);
    let server = shell_server("probe", &tools, ":", SAY_PROBE);
    let server = format!("probe() {{\n{probe}}}\n{server}");
    for (name, text) in [
        ("lamp.conf", "x"),
        ("probe.sh", &probe),
        ("mcp.sh", &server),
    ] {
        fs::write(own.join(name), text).unwrap();
    }
    fs::write(data.join("files/client.pl"), CLIENT).unwrap();
    let client = data.join("files/hearth");
    if fs::hard_link(binary(), &client).is_err() {
        fs::copy(binary(), &client).unwrap();
    }
    let has_perl = command("perl", &["-e", "1"]);
    if !has_perl {
        skipped("without perl nothing here speaks to a socket but the program itself");
    }
    let tool = |name: &str, sandbox: bool| {
        json!({
            "name": name, "description": "Test.", "sandbox": sandbox,
            "command": ["sh", own.join("probe.sh")],
        })
    };
    let mcp = |sandbox: bool| json!({"command": "sh", "args": [own.join("mcp.sh")], "sandbox": sandbox, "env": {"X": "x"}});
    let mut servers = json!({"open": mcp(false)});
    if has_landlock() {
        servers["confined"] = mcp(true);
    }
    let config = json!({
        "permission_mode": "allow",
        "tools": {
            "custom": [tool("confined", true), tool("open", false)],
            "run_command": {"enabled": true},
        },
        "mcp_servers": servers,
    });
    write_config(&data, config);
    let tokens = make_people(&data);
    // So that what the probe cannot do is not for want of permission.
    fs::set_permissions(&home, Permissions::from_mode(0o755)).unwrap();
    if rustix::process::geteuid().is_root() && !as_root {
        let owner = format!("{NOBODY}:{NOBODY}");
        assert!(command("chown", &["-R", &owner, home.to_str().unwrap()]));
    }

    let mut serve = Command::new(&launch[0]);
    serve
        .args(&launch[1..])
        .args(["serve", "--bind", "127.0.0.1", "--port", "0"])
        .env_clear()
        .envs([("PATH", "/usr/bin:/bin"), ("OPENAI_API_KEY", KEY)])
        .envs([("AUTH_TOKEN", KEY), ("HEARTH_ADMIN_PASSWORD", KEY)])
        .envs([("HOME", &data), ("HEARTH_DATA_DIR", &data)])
        .env("TMPDIR", path("temporary"));
    let program = Program::launch(serve, &home);
    let mut client = Client::websocket(program.address);
    client.authenticate(&tokens.admin);

    let command = json!({"command": probe});
    let mut cases = match as_root {
        // Outside of a sandbox, root's can do anything.
        true => Vec::new(),
        false => vec![
            ("open", json!({}), OPEN),
            ("mcp_open_probe", json!({}), OPEN),
        ],
    };
    match has_landlock() {
        true => cases.extend([
            ("confined", json!({}), CONFINED),
            ("run_command", command, &CONFINED[4..]),
            ("mcp_confined_probe", json!({}), CONFINED),
        ]),
        false => skipped("this kernel has no Landlock"),
    }
    eventually("the MCP servers are there", || {
        let tools = client.ask(json!({"type": "list_tools"}))["tools"].to_string();
        let is_there = |case: &&(&str, Value, &str)| tools.contains(&format!("{:?}", case.0));
        (cases.iter().filter(is_there).count() == cases.len()).then_some(())
    });
    for (tool, arguments, can) in cases {
        let can = if has_perl {
            can.to_owned()
        } else {
            can.replace("socket ", "")
        };
        assert_eq!(answer(&mut client, tool, &arguments), can, "{tool}");
        for file in ["config.json", "hearth.db"] {
            assert!(Path::new(&data).join(file).exists(), "{tool}: {file}");
        }
    }
}
