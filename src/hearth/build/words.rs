//! The words of the page, of each language as two files: what signing in and chatting
//! say, and what the other pages say, which is loaded with them.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// The words of all of Hearth, one file for each language.
pub const FOLDER: &str = "src/base/language";
const ENGLISH: &str = "en.tsv";
/// The areas of the page whose words are there from the beginning: `page.AREA.NAME`.
const FIRST: [&str; 15] = [
    "app",
    "approvals",
    "attachments",
    "audience",
    "chat",
    "common",
    "composer",
    "connection",
    "conversations",
    "home",
    "household",
    "markdown",
    "message",
    "relay",
    "session",
];

/// The name of a file, and its content.
type File = (String, Vec<u8>);

/// The files, by their names: `words.LANGUAGE.json` and `words.LANGUAGE.more.json`. What
/// a language has not is in English.
pub fn files(names: &[String]) -> Result<Vec<File>, Box<dyn Error>> {
    let english = fs::read_to_string(Path::new(FOLDER).join(ENGLISH))?;
    let mut files = Vec::new();
    for name in names.iter().filter(|name| name.ends_with(".tsv")) {
        let words = fs::read_to_string(Path::new(FOLDER).join(name))?;
        let language = name.trim_end_matches(".tsv");
        let [mut first, mut more] = [String::new(), String::new()];
        for (key, text) in of_page(&english) {
            let text = of_page(&words)
                .find(|(found, _)| *found == key)
                .map_or(text, |(_, text)| text);
            let area = key.split('.').next().unwrap_or_default();
            let file = if FIRST.contains(&area) {
                &mut first
            } else {
                &mut more
            };
            let comma = if file.is_empty() { '{' } else { ',' };
            write!(file, "{comma}{}:{}", quoted(key), quoted(text))?;
        }
        for (end, mut file) in [("", first), (".more", more)] {
            file.push_str(if file.is_empty() { "{}" } else { "}" });
            files.push((format!("words.{language}{end}.json"), file.into_bytes()));
        }
    }
    Ok(files)
}

/// The keys of the page, without their beginning, and their texts.
fn of_page(words: &str) -> impl Iterator<Item = (&str, &str)> {
    words
        .lines()
        .filter_map(|line| line.strip_prefix("page.")?.split_once('\t'))
}

/// A text as JSON has it. No text has control characters.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
