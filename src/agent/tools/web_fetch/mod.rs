//! Reads web pages, feeds and PDFs. Nothing in the home network is fetched unless the owner
//! allows it.

mod address;
mod feed;

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};

use super::custom_http::{cause, read};
use super::definition::{
    Arguments, Definition, Origin, RunLimit, Tool, ToolContext, cancelled, required_text,
};
use super::known_address::{Address, host_of};
use super::output::shorten;
use super::pdf::{MAX_BYTES as MAX_PDF_BYTES, text_of_pdf};
use super::readable;
use super::wording::{Approver, Intent};
use address::check;
pub(crate) use address::join;
use base::address::AddressScope;
use base::measure::byte_count;
use config::{self, Config, Reachable};
use net::http_client::{
    AddressCheck, ClientError, ClientRequest, ClientResponse, HttpClient, is_own_network,
};
use net::tls::Trust;

const NAME: &str = "web_fetch";
/// Most redirects that are followed.
const MAX_REDIRECTS: usize = 5;
/// Bytes of an error's body that are read.
const ERROR_BYTES: usize = 8 * 1024;
/// Characters of an error's body that the model is shown.
const ERROR_CHARS: usize = 500;
/// Longest title.
const TITLE_CHARS: usize = 300;
/// Most characters of a page's list of links.
const LINK_CHARS: usize = 6_000;
const ACCEPT: &str =
    "text/html, application/xhtml+xml, text/plain;q=0.9, application/json;q=0.9, */*;q=0.5";

/// Fetches one address and follows its redirects, each checked like the first.
pub(super) struct WebFetch {
    definition: Definition,
    timeout_seconds: u64,
    max_bytes: usize,
    http_client: HttpClient,
}

impl WebFetch {
    /// The tool with these settings.
    pub(super) fn new(settings: &config::WebFetch, trust: Trust) -> WebFetch {
        WebFetch {
            definition: Definition::builtin(
                NAME,
                "Read a page at a given or known address.",
                json!({
                    "url": {"type": "string"},
                    "offset": {"type": "integer"},
                    "links": {"type": "boolean", "description": "Links instead"},
                }),
                &["url"],
            )
            .read_only()
            .bringing_outside_text(),
            timeout_seconds: settings.timeout_seconds,
            max_bytes: settings.max_bytes,
            http_client: HttpClient::checking(guard(settings.allow.clone())).trusting(trust),
        }
    }

    fn fetch(&self, url: String, context: &ToolContext<'_>) -> Result<Document, String> {
        let limit = RunLimit::new(self.timeout_seconds, context.deadline);
        let mut url = check(&url)?;
        let first_host = host_of(&url);
        // Whoever redirects chooses the address, which the model is shown.
        let mut is_trusted = true;
        for _ in 0..=MAX_REDIRECTS {
            let outgoing = ClientRequest {
                method: "GET",
                url: &url,
                headers: &[("accept", ACCEPT), ("connection", "close")],
                body: None,
                deadline: limit.deadline,
                cancel: context.cancel,
            };
            let settings = &context.config.tools.web_fetch;
            is_trusted &= host_of(&url).is_some_and(|host| settings.trusts(&host));
            let fetched = self
                .http_client
                .exchange(&outgoing, |answer| self.take(answer));
            match fetched {
                Ok(Fetched::Document(mut document)) => {
                    if let Some(pdf) = document.pdf.take() {
                        let (data_dir, cancel) = (context.data_dir, context.cancel);
                        document.page.text = text_of_pdf(pdf, data_dir, limit.deadline, cancel)
                            .map_err(|why| format!("{url} {why}"))?;
                    }
                    document.url = url;
                    if is_trusted {
                        context.found(Origin::Trusted);
                    }
                    return Ok(document);
                }
                Ok(Fetched::Redirect(target)) => {
                    let target = check(&join(&url, &target)).map_err(|why| {
                        format!("{url} redirects to an address that is not fetched: {why}")
                    })?;
                    // Where this leads may be what the model was made to ask for.
                    let next = host_of(&target);
                    let is_known = next.as_deref().map(without_www)
                        == first_host.as_deref().map(without_www)
                        || next.is_some_and(|host| settings.trusts(&host));
                    if context.stays_on_host && !is_known {
                        return Err(format!(
                            "{url} redirects to another host: if you need what is there, fetch \
                             {target}"
                        ));
                    }
                    url = target;
                }
                Ok(Fetched::Refused(why)) => return Err(format!("{url} {why}")),
                Err(ClientError::Cancelled) => return Err(cancelled(NAME)),
                Err(ClientError::Forbidden(why)) => {
                    log::warn!("tool {NAME}: refused: {why}");
                    return Err(format!("{url} is not fetched: {why}"));
                }
                Err(_) if Instant::now() >= limit.deadline => return Err(limit.exceeded(NAME)),
                Err(error) => return Err(format!("{url} gave no answer: {}", cause(&error))),
            }
        }
        Err(format!(
            "{url} was reached over {MAX_REDIRECTS} redirects and redirects again"
        ))
    }

    fn take(&self, answer: &mut ClientResponse) -> Result<Fetched, ClientError> {
        let status = answer.status();
        if matches!(status, 301 | 302 | 303 | 307 | 308)
            && let Some(target) = answer.header("location")
        {
            return Ok(Fetched::Redirect(target.to_owned()));
        }
        let content_type = answer.header("content-type").unwrap_or_default();
        let content_type = content_type.to_ascii_lowercase();
        let kind = Kind::of(&content_type);
        if !(200..300).contains(&status) {
            let said = match kind {
                None | Some(Kind::Pdf) => String::new(),
                Some(kind) => {
                    let body = read(answer, ERROR_BYTES)?.into_bytes();
                    let text = kind.text(&readable::decode(&body, &content_type)).text;
                    format!(": {}", shorten(text.trim(), ERROR_CHARS))
                }
            };
            return Ok(Fetched::Refused(format!(
                "was answered with status {status}{said}"
            )));
        }
        let Some(kind) = kind else {
            return Ok(Fetched::Refused(format!(
                "is not text but {}, which cannot be read",
                shorten(&content_type, 60)
            )));
        };
        if kind == Kind::Pdf {
            let pdf = read(answer, MAX_PDF_BYTES + 1)?.into_bytes();
            return Ok(Fetched::Document(Document {
                pdf: Some(pdf),
                ..Document::default()
            }));
        }
        let body = read(answer, self.max_bytes)?;
        let is_cut = body.is_cut();
        let body = body.into_bytes();
        let marked = [&[0xFF, 0xFE], &[0xFE, 0xFF]];
        if body.contains(&0) && !marked.iter().any(|mark| body.starts_with(*mark)) {
            return Ok(Fetched::Refused(format!(
                "is binary, {}",
                byte_count(body.len())
            )));
        }
        Ok(Fetched::Document(Document {
            page: kind.text(&readable::decode(&body, &content_type)),
            is_cut,
            ..Document::default()
        }))
    }
}

fn without_www(host: &str) -> &str {
    host.strip_prefix("www.").unwrap_or(host)
}

/// What came of one request.
enum Fetched {
    Document(Document),
    /// The document is at this address.
    Redirect(String),
    /// Why it cannot be used.
    Refused(String),
}

#[derive(Default)]
struct Document {
    url: String,
    /// Its bytes, if its text is still to be read.
    pdf: Option<Vec<u8>>,
    page: readable::Page,
    /// Whether only its beginning was read.
    is_cut: bool,
}

/// How a body is read as text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Html,
    Pdf,
    Plain,
    /// As its content suggests.
    Unknown,
}

impl Kind {
    /// The kind of a content type; None when that is not text.
    fn of(content_type: &str) -> Option<Kind> {
        let essence = content_type.split(';').next().unwrap_or_default().trim();
        match essence {
            "" => Some(Kind::Unknown),
            "text/html" | "application/xhtml+xml" => Some(Kind::Html),
            "application/pdf" | "application/x-pdf" => Some(Kind::Pdf),
            "application/json"
            | "application/xml"
            | "application/javascript"
            | "application/x-ndjson"
            | "application/yaml" => Some(Kind::Plain),
            text if text.starts_with("text/") => Some(Kind::Plain),
            other if other.ends_with("+json") || other.ends_with("+xml") => {
                (!other.starts_with("image/")).then_some(Kind::Plain)
            }
            _ => None,
        }
    }

    fn text(self, text: &str) -> readable::Page {
        if let Some(page) = feed::page(text) {
            return page;
        }
        let is_html = match self {
            Kind::Html => true,
            Kind::Plain | Kind::Pdf => false,
            Kind::Unknown => text.trim_start().starts_with('<'),
        };
        if is_html {
            return readable::page(text);
        }
        let mut page = readable::Page::default();
        text.clone_into(&mut page.text);
        page
    }
}

impl Tool for WebFetch {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn intent(&self, arguments: &Arguments, approver: &Approver<'_>) -> Option<Intent> {
        let url = arguments.get("url")?.as_str()?;
        let checked = check(url).ok();
        let url = checked.as_deref().unwrap_or(url);
        approver.intent("action.web_fetch", &[("url", url)])
    }

    fn asked_address(&self, arguments: &Arguments, config: &Config) -> Option<Address> {
        let url = arguments.get("url")?.as_str()?;
        // Anything else is not fetched.
        let host = host_of(&check(url).ok()?)?;
        let url = url.trim().to_owned();
        (!config.tools.web_fetch.trusts(&host)).then_some(Address { url, host })
    }

    fn run(&self, arguments: &Arguments, context: &ToolContext<'_>) -> Result<String, String> {
        let url = required_text(arguments, "url")?;
        let document = self.fetch(url.to_owned(), context)?;
        let mut lines = vec![document.url.clone()];
        if !document.page.title.is_empty() {
            let title = shorten(&document.page.title, TITLE_CHARS);
            lines.push(format!("Title: {title}"));
        }
        lines.push(String::new());
        if arguments.get("links") == Some(&Value::Bool(true)) {
            lines.extend(links(&document));
        } else if document.page.text.trim().is_empty() {
            lines.push("[the page holds no readable text]".to_owned());
        } else {
            lines.push(context.page(&document.page.text, arguments)?);
        }
        if document.is_cut {
            lines.push(format!(
                "[only the first {} bytes of the page were read]",
                self.max_bytes
            ));
        }
        Ok(lines.join("\n"))
    }
}

/// A page's links, one on each line.
fn links(document: &Document) -> Vec<String> {
    let base = match &document.page.base {
        Some(base) => join(&document.url, base),
        None => document.url.clone(),
    };
    let mut lines: Vec<String> = Vec::new();
    let mut room = LINK_CHARS;
    for (label, address) in &document.page.links {
        let line = format!("- {label}: {}", join(&base, address));
        if lines.contains(&line) {
            continue;
        }
        let Some(left) = room.checked_sub(line.chars().count() + 1) else {
            lines.push("[there are more links]".to_owned());
            return lines;
        };
        room = left;
        lines.push(line);
    }
    if lines.is_empty() {
        lines.push("[the page has no links]".to_owned());
    }
    lines
}

/// Allows the public internet and what the owner has opened.
fn guard(allow: Reachable) -> AddressCheck {
    Arc::new(move |host, address| {
        if allow.allows(host, address) {
            return Ok(());
        }
        let why = match AddressScope::of(address) {
            AddressScope::Public if is_own_network(address) => {
                "an address of the home network".to_owned()
            }
            AddressScope::Public => return Ok(()),
            scope => scope.to_string(),
        };
        let found = match host.trim_matches(['[', ']']) == address.to_string() {
            true => String::new(),
            false => format!(" ({address})"),
        };
        Err(format!(
            "{host} is {why}{found}; the owner can open it with tools.web_fetch.allow"
        ))
    })
}

#[cfg(test)]
mod tests;
