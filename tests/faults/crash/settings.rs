//! The life of the configuration in a running server.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::super::{check_integrity, look_into};
use super::household::{Household, Template};
use super::lines::Lines;
use super::lives::Life;

/// Two changes of the configuration.
pub struct Settings {
    household: Household,
    token: String,
    client: Option<Lines>,
    address: Option<SocketAddr>,
    saved: usize,
    is_confirmed: bool,
}

/// The system prompts that are saved, one after the other.
const PROMPTS: [&str; 2] = ["Be brief.", "Be kind."];

impl Settings {
    pub fn begin(template: &Template) -> Settings {
        let more = json!({ "//": "a remark that stays" });
        Settings {
            household: Household::new(template, more, false),
            token: template.tokens.admin.clone(),
            client: None,
            address: None,
            saved: 0,
            is_confirmed: false,
        }
    }

    /// The prompt in the file, which is always whole.
    fn saved_prompt(&self) -> Option<String> {
        let path = self.household.folder.path().join("config.json");
        let text = fs::read_to_string(path).unwrap();
        let config: Value = serde_json::from_str(&text).unwrap_or_else(|error| {
            panic!("the configuration is broken: {error}: {text:?}");
        });
        assert_eq!(config["//"], "a remark that stays");
        config["system_prompt"].as_str().map(str::to_owned)
    }

    fn save(&mut self) -> Result<(), String> {
        while self.saved < PROMPTS.len() {
            let client = self.client.as_mut().expect("it is connected");
            let prompt = PROMPTS[self.saved];
            client
                .ask(json!({ "type": "update_config", "config": { "system_prompt": prompt } }))?;
            self.saved += 1;
            assert_eq!(self.saved_prompt().as_deref(), Some(prompt));
        }
        let client = self.client.as_mut().expect("it is connected");
        let config = client.ask(json!({ "type": "get_config" }))?;
        assert_eq!(config["system_prompt"], PROMPTS[1], "{config}");
        self.is_confirmed = true;
        Ok(())
    }
}

impl Life for Settings {
    fn folder(&self) -> PathBuf {
        self.household.path()
    }

    fn connect(&mut self, address: SocketAddr) -> Result<(), String> {
        self.address = Some(address);
        self.client = Some(Lines::open(address, &self.token)?);
        Ok(())
    }

    fn advance(&mut self) -> Result<(), String> {
        if self.is_confirmed {
            return Ok(());
        }
        self.save().inspect_err(|_| {
            if self.client.as_ref().is_some_and(|client| client.is_over) {
                let _ = self.connect(self.address.expect("it was connected"));
            }
        })
    }

    fn restarted(&mut self) {
        self.is_confirmed = false;
        let found = self.saved_prompt();
        let place = PROMPTS
            .iter()
            .position(|known| found.as_deref() == Some(*known));
        let saved = place.map_or(0, |place| place + 1);
        assert!(saved >= self.saved, "{found:?} after {} saves", self.saved);
    }

    fn check(&mut self) {
        assert_eq!(self.saved_prompt().as_deref(), Some(PROMPTS[1]));
        let left = self.household.folder.path().join("config.json.new");
        assert!(!left.exists(), "a temporary file is left");
        check_integrity(&look_into(self.household.folder.path()));
    }
}
