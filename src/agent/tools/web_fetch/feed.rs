//! Feeds (RSS and Atom) as a page: the title, date, address and beginning of each entry.

use serde_json::Value;

use crate::tools::output::shorten;
use crate::tools::readable::Page;
use crate::tools::xml::{self, list};

/// Most entries, and most characters of the text of one.
const MAX_ENTRIES: usize = 200;
const ENTRY_CHARS: usize = 1_000;
/// How a feed begins.
const STARTS: [&str; 4] = ["<?xml", "<rss", "<feed", "<rdf:RDF"];

/// The entries of a feed that may be cut off; none where it is none.
pub(super) fn page(text: &str) -> Option<Page> {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    if !STARTS.iter().any(|start| text.starts_with(start)) {
        return None;
    }
    let document = xml::beginning(text);
    let (about, entries) = if let Some(channel) = document.pointer("/rss/channel") {
        (channel, &channel["item"])
    } else if let Some(feed) = document.get("feed") {
        (feed, &feed["entry"])
    } else {
        let feed = document.get("rdf:RDF")?;
        (&feed["channel"], &feed["item"])
    };
    let mut page = Page {
        title: first(about, &["title"]),
        ..Page::default()
    };
    let entries = list(entries);
    let mut parts = Vec::new();
    for entry in entries.iter().take(MAX_ENTRIES) {
        let (title, address) = (first(entry, &["title"]), address(entry));
        let mut lines = vec![format!("## {title}")];
        lines.push(first(
            entry,
            &["pubDate", "published", "updated", "dc:date"],
        ));
        lines.push(address.clone());
        let body = first(
            entry,
            &["description", "summary", "content:encoded", "content"],
        );
        lines.push(shorten(&body, ENTRY_CHARS).into_owned());
        lines.retain(|line| !line.is_empty());
        parts.push(lines.join("\n"));
        if !address.is_empty() {
            page.links.push((title, address));
        }
    }
    match entries.len().saturating_sub(MAX_ENTRIES) {
        0 if parts.is_empty() => parts.push("[the feed has no entries]".to_owned()),
        0 => {}
        more => parts.push(format!("[{more} more entries are not shown]")),
    }
    page.text = parts.join("\n\n");
    Some(page)
}

/// The text of the first of these members that has any.
fn first(entry: &Value, members: &[&str]) -> String {
    let texts = members.iter().flat_map(|member| list(&entry[*member]));
    let mut texts = texts
        .filter_map(Value::as_str)
        .filter(|text| !text.is_empty());
    texts.next().unwrap_or_default().to_owned()
}

/// Where an entry leads to: the text of its link, or what its link to itself refers to.
fn address(entry: &Value) -> String {
    let links = list(&entry["link"]).iter();
    let link = links.filter_map(|link| {
        let is_own = link["@rel"].as_str().is_none_or(|rel| rel == "alternate");
        let address = link.as_str().or(link["@href"].as_str());
        address.filter(|_| is_own)
    });
    link.map(str::trim).next().unwrap_or_default().to_owned()
}
