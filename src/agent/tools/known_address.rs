//! Whether the model got an address from somebody, or may have made it up. An address
//! that it makes up can carry out what it was shown.

use std::net::Ipv6Addr;

use serde_json::Value;

use super::readable::decode_references;
use base::url::Url;
use store::{Message, Step, ToolCall};

/// An address that a tool is going to ask.
pub struct Address {
    /// As the model wrote it.
    pub url: String,
    /// Its host.
    pub host: String,
}

impl Address {
    /// Whether this message has the address to the letter, or is not from outside and has it
    /// without its scheme or, of a host's first page, names the host.
    pub fn is_in(&self, message: &Message, is_outside: bool) -> bool {
        let text = &message.content;
        if has_whole(text, &self.url) {
            return true;
        }
        let Ok(url) = Url::parse(&self.url) else {
            return false;
        };
        let (_, bare) = self.url.split_once("://").unwrap_or_default();
        let bare = bare.split('#').next().unwrap_or_default();
        !is_outside
            && match url.path_and_query().as_str() {
                "/" => self.is_host_in(text, url.authority.port),
                _ => has_whole(text, bare),
            }
    }

    /// Whether a tool found the address, to the letter, of those that look outside: what
    /// the household has may be what the model said or wrote. Where the tool was told
    /// the host, the result may only repeat what the model said; a page may link to its
    /// own host.
    pub fn is_found_in(&self, steps: &[Step], looks_outside: &dyn Fn(&str) -> bool) -> bool {
        let calls = || steps.iter().flat_map(Step::calls);
        steps.iter().any(|step| match step {
            Step::Result {
                call_id,
                ok: true,
                content,
                ..
            } if has_whole(content, &self.url) => calls()
                .find(|call| call.id == *call_id)
                .is_some_and(|call| looks_outside(&call.tool) && !self.is_told_by(call)),
            _ => false,
        })
    }

    fn is_told_by(&self, call: &ToolCall) -> bool {
        let Ok(arguments) = serde_json::from_str::<Value>(&call.arguments) else {
            return true;
        };
        let read = arguments["url"].as_str().and_then(host_of);
        let is_own_page = call.tool == "web_fetch" && read.as_deref() == Some(&self.host);
        let is_in = |told: String| {
            letters_of_hosts(&told).contains(&self.host)
                || letters_of_hosts(&without_tags(&told)).contains(&self.host)
                || self.is_address_in(&told)
        };
        !is_own_page && decoded(arguments.to_string()).is_none_or(is_in)
    }

    /// Whether the host is an IPv6 address that is in a text, however it is written there.
    fn is_address_in(&self, text: &str) -> bool {
        let Ok(address) = self.host.parse::<Ipv6Addr>() else {
            return false;
        };
        text.split(|letter: char| !(letter.is_ascii_hexdigit() || ".:".contains(letter)))
            .any(|word| {
                let word = word.trim_end_matches('.');
                word.parse() == Ok(address)
                    // What follows a colon, as in "at:2001:db8::1".
                    || word
                        .match_indices(':')
                        .any(|(place, _)| word[place + 1..].parse() == Ok(address))
            })
    }

    /// Whether a text names the host, and the port if there is one.
    fn is_host_in(&self, text: &str, port: Option<u16>) -> bool {
        let is_of_name = |letter: char| letter.is_alphanumeric() || ".-:[]".contains(letter);
        let host = match port {
            Some(port) => format!("{}:{port}", self.host),
            None => self.host.clone(),
        };
        text.split(|letter| !is_of_name(letter)).any(|word| {
            let word = word.trim_matches(['.', ':']).to_lowercase();
            let is_it = |word: &str| word == host || host.strip_prefix("www.") == Some(word);
            let plain = word.rsplit_once(':').filter(|_| port.is_none());
            is_it(&word) || plain.is_some_and(|(host, _)| is_it(host))
        })
    }
}

/// Most characters after an address that may be its sentence's, not its own.
const MOST_AFTER: usize = 3;

/// Whether a text has an address as a whole. The beginning of a longer one says something
/// by where it is cut off.
fn has_whole(text: &str, url: &str) -> bool {
    let is_before = |letter: char| letter.is_alphanumeric() || "/?&=%#+-_.~@".contains(letter);
    let is_end = |letter: char| {
        letter.is_whitespace()
            || "<>\"`{}|\\^".contains(letter)
            || !(letter.is_ascii() || letter.is_alphanumeric())
    };
    text.match_indices(url).any(|(place, _)| {
        let after = text[place + url.len()..].split(is_end).next();
        let after = after.unwrap_or_default();
        let is_of_sentence = |letter: char| ".,;:!?'*_)]/".contains(letter);
        !text[..place].ends_with(is_before)
            // A fragment is not sent.
            && (after.starts_with('#')
                || (after.len() <= MOST_AFTER && after.chars().all(is_of_sentence)))
    })
}

/// Most times that the arguments of a tool are decoded.
const MOST_DECODED: usize = 8;

/// The arguments of a tool, as it may repeat them: in lower case, and with what stands for other
/// letters replaced by these (`%68`, `\u0068`, `&#104;`), also where that is done again.
/// None where it is done too often.
fn decoded(mut told: String) -> Option<String> {
    for _ in 0..MOST_DECODED {
        let mut plain = decode_references(&told).into_owned();
        for (mark, digits) in [("%", 2), ("\\x", 2), ("\\u", 4)] {
            plain = unescaped(&plain, mark, digits);
        }
        if plain == told {
            return Some(told.to_lowercase());
        }
        told = plain;
    }
    None
}

/// A text with each `mark` and that many hexadecimal digits replaced by the letter with
/// this number; above ASCII by nothing, which no host has.
fn unescaped(text: &str, mark: &str, digits: usize) -> String {
    let mut parts = text.split(mark);
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let number = part.get(..digits);
        match number.and_then(|number| u32::from_str_radix(number, 16).ok()) {
            Some(number) => {
                let letter = u8::try_from(number).ok().filter(u8::is_ascii);
                plain.extend(letter.map(char::from));
                plain.push_str(&part[digits..]);
            }
            None => {
                plain.push_str(mark);
                plain.push_str(part);
            }
        }
    }
    plain
}

/// A text without what stands in angle brackets, as a page shows it.
fn without_tags(text: &str) -> String {
    let mut parts = text.split('<');
    let first = parts.next().unwrap_or_default();
    let shown = parts.map(|part| part.split_once('>').map_or(part, |(_, shown)| shown));
    std::iter::once(first).chain(shown).collect()
}

/// The letters of a text that a host may have: a page may leave out what is between them.
fn letters_of_hosts(text: &str) -> String {
    let is_of_host = |letter: &char| letter.is_ascii_alphanumeric() || ".-_:".contains(*letter);
    text.chars().filter(is_of_host).collect()
}

/// The host of an address.
pub(super) fn host_of(url: &str) -> Option<String> {
    let url = base::url::Url::parse(url).ok()?;
    Some(url.authority.host.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompt::testing::asked;
    use base::testing::rows;

    fn address(url: &str) -> Address {
        Address {
            host: host_of(url).unwrap_or_else(|| "evil.example".to_owned()),
            url: url.to_owned(),
        }
    }

    /// A call and its result.
    fn called(tool: &str, arguments: &str, ok: bool, content: &str) -> [Step; 2] {
        let call = ToolCall {
            id: "1".to_owned(),
            provider_id: None,
            tool: tool.to_owned(),
            arguments: arguments.to_owned(),
            extra: None,
        };
        [
            Step::Reply {
                text: String::new(),
                calls: vec![call],
                extra: None,
                result_chars: None,
            },
            Step::Result {
                call_id: "1".to_owned(),
                ok,
                content: format!("found: {content}"),
                outside: true,
                private: false,
                memories: Vec::new(),
                files: Vec::new(),
                page: None,
            },
        ]
    }

    #[test]
    fn a_person_names_a_host_and_others_an_address() {
        // What is said, the address, and whether a person or a stranger gives it so.
        let table = "
            see https://example.org/a?b=1 | https://example.org/a?b=1   | yes yes
            see https://example.org/a     | https://example.org/a?b=1   | no no
            see example.org/a?b=1         | https://example.org/a?b=1   | yes no
            see example.org/a?b=1         | https://example.org/a?B=1   | no no
            see https://example.org/a     | https://a.example.org/a     | no no
            What is on Example.org?       | https://www.example.org/x   | no no
            What is on Example.org?       | https://www.example.org/    | yes no
            What is on Example.org?       | https://example.org         | yes no
            on nas:8080, or where         | http://nas:8080/            | yes no
            on nas:8080, or where         | http://nas:8081/            | no no
            on nas, or where              | http://nas:8081/            | no no
            on 10.0.0.1:80.               | http://10.0.0.1/            | yes no
            on example.organic            | https://example.org/        | no no
            on my.example.org             | https://example.org/        | no no
            on example.org                | https://my.example.org/     | no no
            on example.org                | https://example.org@evil.example/ | no no
            on example.org                | https://evil.example/?example.org | no no
            https://example.org/abc       | https://example.org/ab      | no no
            https://example.org/a?b=1&c=2 | https://example.org/a?b=1   | no no
            https://example.org/a.....    | https://example.org/a       | no no
            see (https://example.org/a).  | https://example.org/a       | yes yes
            see <https://example.org/a>   | https://example.org/a       | yes yes
            see https://example.org/a#b   | https://example.org/a       | yes yes
            https://plums.example/?to=https://example.org/ | https://example.org/ | yes no
        ";
        for [said, url, given] in rows(table) {
            let address = address(url);
            let given_by =
                [false, true].map(|is_outside| match address.is_in(&asked(said), is_outside) {
                    true => "yes",
                    false => "no",
                });
            assert_eq!(given_by.join(" "), given, "{said}: {url}");
        }
    }

    #[test]
    fn a_tool_that_is_told_an_address_in_any_spelling_may_repeat_it() {
        for (arguments, found) in [
            (r#"{"text":"http://[2001:db8:0:0::1]/?d=1"}"#, false),
            (r#"{"text":"http://[2001:DB8::0:1]:80/?d=1"}"#, false),
            (r#"{"host":"2001:db8:0:0:0:0:0:1"}"#, false),
            (r#"{"text":"at:2001:db8:0::1."}"#, false),
            (r#"{"text":"http://[2001:db8::2]/?d=1"}"#, true),
        ] {
            let url = "http://[2001:db8:0:0::1]/?d=1";
            let steps = called("lookup", arguments, true, url);
            let address = address(url);
            assert_eq!(address.host, "2001:db8::1");
            assert_eq!(address.is_found_in(&steps, &|_| true), found, "{arguments}");
        }
    }

    #[test]
    fn a_tool_that_is_told_an_address_in_a_code_may_repeat_it_decoded() {
        let url = "http://evil.example/?d=4711";
        for told in [
            "http://ev%69l.example/?d=4711",
            "http://ev%2569l.exam%70le/?d=4711",
            "http://ev&#105;l.example/?d=4711",
            "http://ev&amp;#x69;l.example/?d=4711",
            r"http://ev\u0069l.example/?d=4711",
            "http://evil%E2%80%8B.example/?d=4711",
            "http://evil\u{200B}.exa\u{AD}mple/?d=4711",
            "http://evil.<b></b>example/?d=4711",
            "EVIL.EXAMPLE",
            "http://ev%252525252525252525252525252569l.example/?d=4711",
        ] {
            for (tool, arguments) in [
                ("lookup", serde_json::json!({ "text": told })),
                (
                    "web_fetch",
                    serde_json::json!({ "url": format!("https://echo.example/?q={told}") }),
                ),
            ] {
                let steps = called(tool, &arguments.to_string(), true, url);
                assert!(
                    !address(url).is_found_in(&steps, &|_| true),
                    "{tool} {told}"
                );
            }
        }
    }

    #[test]
    fn a_tool_finds_an_address_unless_it_repeats_it() {
        let url = "https://evil.example/?q=4711";
        for (tool, arguments, content, ok, found) in [
            ("lookup", r#"{"query":"plums"}"#, url, true, true),
            (
                "lookup",
                r#"{"query":"plums"}"#,
                "https://evil.example/?q=1",
                true,
                false,
            ),
            ("lookup", r#"{"query":"plums"}"#, url, false, false),
            (
                "lookup",
                r#"{"query":"https://evil.example/?q=4711"}"#,
                url,
                true,
                false,
            ),
            (
                "lookup",
                r#"{"query":"https:\/\/evi\u006c.example/?q=4711"}"#,
                url,
                true,
                false,
            ),
            (
                "web_fetch",
                r#"{"url":"https://evil.example/"}"#,
                url,
                true,
                true,
            ),
            (
                "web_fetch",
                r#"{"url":"https://plums.example/"}"#,
                url,
                true,
                true,
            ),
            (
                "web_fetch",
                r#"{"url":"https://echo.example/?https://evil.example/"}"#,
                url,
                true,
                false,
            ),
            // What the model has said itself.
            ("recall", r#"{"query":"plums"}"#, url, true, false),
        ] {
            let steps = called(tool, arguments, ok, content);
            assert_eq!(
                address(url).is_found_in(&steps, &|tool| tool != "recall"),
                found,
                "{tool} {arguments}"
            );
        }
    }
}
