//! The handbook: one Markdown file per topic. `hearth help TOPIC` prints them, the
//! web page shows them at /help, and code hosts render them as they are.
//!
//! `index.md` lists the topics in their order, each with its title and a summary.
//! To add a topic, write the file, then add it to `index.md` and to [`TOPICS`].

mod terminal;

use base::gzip::unpack_text;

/// One page of the handbook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Topic {
    /// What `hearth help` and the address on the web page call it.
    pub name: &'static str,
    /// Its path below the web page's files.
    pub path: &'static str,
    /// The Markdown source, compressed (RFC 1952).
    pub gzip: &'static [u8],
}

macro_rules! topic {
    ($name:literal) => {
        Topic {
            name: $name,
            path: concat!("handbook/", $name, ".md"),
            gzip: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".md.gz")),
        }
    };
}

/// The page that lists all topics.
pub const INDEX: Topic = topic!("index");

/// Every topic, in the order of the index.
pub const TOPICS: &[Topic] = &[
    topic!("browser"),
    topic!("models"),
    topic!("assistant"),
    topic!("tools"),
    topic!("skills"),
    topic!("reminders"),
    topic!("calendars"),
    topic!("integrations"),
    topic!("works"),
    topic!("senders"),
    topic!("protocol"),
    topic!("relay"),
    topic!("privacy"),
    topic!("people"),
    topic!("security"),
    topic!("threats"),
    topic!("encryption"),
    topic!("configuration"),
    topic!("limits"),
    topic!("backups"),
    topic!("operating"),
    topic!("troubleshooting"),
    topic!("performance"),
    topic!("changelog"),
];

/// The JSON Schema of the protocol, compressed. A test holds it to the declarations.
pub const PROTOCOL_SCHEMA: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/protocol.json.gz"));
/// The JSON Schema of `config.json`, likewise.
pub const CONFIG_SCHEMA: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/config.json.gz"));

/// The topic of this name, if there is one.
pub fn topic(name: &str) -> Option<&'static Topic> {
    TOPICS.iter().find(|topic| topic.name == name)
}

impl Topic {
    /// The Markdown source.
    pub fn markdown(&self) -> String {
        unpack_text(self.gzip)
    }

    /// What the page is about, as the index says it.
    pub fn summary(&self) -> String {
        let link = format!("]({}.md): ", self.name);
        let index = INDEX.markdown();
        let mut lines = index.lines();
        lines
            .find_map(|line| Some(line.split_once(&link)?.1.to_owned()))
            .unwrap_or_default()
    }

    /// The page for a terminal; with `bold`, its headings are in bold type.
    pub fn text(&self, bold: bool) -> String {
        terminal::render(&self.markdown(), bold)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_index_lists_every_topic_in_order_under_its_title() {
        let index = INDEX.markdown();
        let listed: Vec<&str> = index
            .lines()
            .filter(|line| line.starts_with("- ["))
            .collect();
        assert_eq!(listed.len(), TOPICS.len());
        for (line, topic) in listed.into_iter().zip(TOPICS) {
            let markdown = topic.markdown();
            let title = markdown.lines().next().unwrap();
            let title = title.strip_prefix("# ").unwrap();
            let link = format!("- [{title}]({}.md): {}", topic.name, topic.summary());
            assert_eq!(line, link);
            assert!(!topic.summary().is_empty(), "{}", topic.name);
        }
    }

    #[test]
    fn every_file_is_a_topic() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/hearth/handbook");
        let mut files: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter_map(|name| Some(name.strip_suffix(".md")?.to_owned()))
            .filter(|name| name != "index")
            .collect();
        files.sort();
        let mut names: Vec<&str> = TOPICS.iter().map(|topic| topic.name).collect();
        names.sort_unstable();
        assert_eq!(files, names);
    }
}
