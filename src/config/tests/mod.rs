//! Whole files in, configuration or problems out.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use base::testing::TemporaryDirectory;

use super::*;

mod channels;
mod files;
mod handle;
mod mcp_servers;
mod people;
mod problems;
mod providers;
mod shown;
mod tools;

/// The environment of every test.
fn environment(name: &str) -> Option<String> {
    match name {
        "API_KEY" => Some("sk-0123456789abcdef".to_owned()),
        "HOOK_SECRET" => Some("a-secret-from-the-environment".to_owned()),
        "PORT" => Some("5001".to_owned()),
        "EMPTY" => Some(String::new()),
        "WORD" => Some("private-word".to_owned()),
        "PROXY" => Some("https://proxy.example/v1".to_owned()),
        _ => None,
    }
}

fn read(text: &str) -> Result<Settings, Problems> {
    Settings::from_text(Path::new("config.json"), text, environment)
}

fn config(text: &str) -> std::sync::Arc<Config> {
    read(text)
        .unwrap_or_else(|problems| panic!("{text}\n{problems}"))
        .current()
}

/// A value as a person gives it: JSON, or else plain text.
fn given(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

/// A directory of one test.
#[derive(Default)]
struct Directory(TemporaryDirectory);

impl Directory {
    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }
}
