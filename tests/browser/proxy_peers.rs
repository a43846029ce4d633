//! nginx and Caddy before the page, below a path, set up as the handbook says. They are
//! installed by these tests, which so run only when asked for: `make test-peers`.

use std::fs;
use std::net::SocketAddr;

use super::below::{drive, house};
use support::home::TemporaryDirectory;
use support::model::Model;
use support::peers::{self, Running, free_address};
use support::receiver::Receiver;

const HANDBOOK: &str = include_str!("../../src/hearth/handbook/encryption.md");

/// The block of the handbook that begins with this, for these addresses.
fn block(begin: &str, hearth: SocketAddr) -> String {
    let (_, rest) = HANDBOOK.split_once(&format!("```\n{begin}")).unwrap();
    let (block, _) = rest.split_once("\n```\n").unwrap();
    format!("{begin}{block}").replace("127.0.0.1:5000", &hearth.to_string())
}

/// Drives the page behind one of them.
fn behind(
    name: &str,
    run: impl Fn(SocketAddr, SocketAddr, &TemporaryDirectory) -> Option<Running>,
) {
    let push = Receiver::answering(|_, _| "201 Created".to_owned());
    let model = Model::saying("from below");
    let home = house(&model, &push);
    let (folder, address) = (TemporaryDirectory::new(), free_address());
    if let Some(running) = run(address, home.address(), &folder) {
        drive(&home, address, &push);
        drop(running);
        println!("{name} ok");
    }
}

#[test]
#[ignore = "installs nginx from Debian, and needs Chromium: make test-peers"]
fn nginx_strips_the_path() {
    behind("nginx", |address, hearth, folder| {
        let mut nginx = peers::PROXIES.command("usr/sbin/nginx")?;
        let place = folder.path().display();
        let location = block("location", hearth);
        let config = format!(
            "daemon off;\nmaster_process off;\npid {place}/pid;\nerror_log stderr;\n\
             events {{}}\nhttp {{\naccess_log off;\nclient_body_temp_path {place}/body;\n\
             proxy_temp_path {place}/proxy;\nfastcgi_temp_path {place}/fastcgi;\n\
             uwsgi_temp_path {place}/uwsgi;\nscgi_temp_path {place}/scgi;\n\
             server {{\nlisten {address};\n{location}\n}}\n}}\n"
        );
        let file = folder.path().join("nginx.conf");
        fs::write(&file, config).unwrap();
        nginx.arg("-p").arg(folder.path()).arg("-c").arg(file);
        Some(Running::start(
            "nginx",
            &mut nginx,
            address,
            "/hearth/health",
        ))
    });
}

#[test]
#[ignore = "installs Caddy from Debian, and needs Chromium: make test-peers"]
fn caddy_strips_the_path() {
    behind("caddy", |address, hearth, folder| {
        let mut caddy = peers::PROXIES.command("usr/bin/caddy")?;
        let site = block("redir", hearth);
        let config = format!("{{\nadmin off\n}}\nhttp://{address} {{\n{site}\n}}\n");
        let file = folder.path().join("Caddyfile");
        fs::write(&file, config).unwrap();
        caddy.args(["run", "--adapter", "caddyfile", "--config"]);
        caddy.arg(file).env("HOME", folder.path());
        Some(Running::start(
            "caddy",
            &mut caddy,
            address,
            "/hearth/health",
        ))
    });
}
