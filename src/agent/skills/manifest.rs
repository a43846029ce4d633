//! Reads a `SKILL.md`: a head of YAML between two lines `---`, with `name` and
//! `description` (<https://agentskills.io/specification>), and the instructions after it.
//!
//! Of YAML it reads what such heads are made of: plain and quoted keys and values, folded
//! values, and comments. What is nested below other keys is skipped.

use std::fmt;

use base::visible::is_hidden;

/// Most characters of a name, and of a description, as the specification has it.
const NAME_CHARS: usize = 64;
const DESCRIPTION_CHARS: usize = 1_024;

/// A `SKILL.md` that can be used.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Manifest<'a> {
    pub name: String,
    /// One line.
    pub description: String,
    /// The instructions.
    pub body: &'a str,
}

/// What is wrong with a `SKILL.md`, in which line, and what to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Broken {
    /// From 1.
    pub line: usize,
    pub reason: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "line {}: {}", self.line, self.reason)
    }
}

/// Whether a skill may have this name.
pub(super) fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=NAME_CHARS).contains(&name.len())
        && name.bytes().all(plain)
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--")
}

/// Reads the text of a `SKILL.md`.
pub(super) fn parse(text: &str) -> Result<Manifest<'_>, Broken> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (head, body, end) = split(text)?;
    let (mut name, mut description) = (None, None);
    let mut lines = head.lines().enumerate().peekable();
    while let Some((place, line)) = lines.next() {
        let number = place + 2;
        if is_empty(line) || line.starts_with([' ', '\t']) {
            continue;
        }
        let found = line
            .split_once(':')
            .filter(|_| !line.starts_with(['{', '[']));
        let Some((key, value)) = found else {
            let reason = match line.starts_with(['{', '[']) {
                true => "a head in braces or brackets is not read here: write each \"key: value\" \
                    on a line of its own, without them"
                    .to_owned(),
                false => format!("{line:?} is no \"key: value\": write one, or remove the line"),
            };
            return Err(Broken {
                line: number,
                reason,
            });
        };
        let mut nested = Vec::new();
        while let Some((_, next)) = lines.next_if(|(_, next)| is_nested(next)) {
            nested.push(next);
        }
        let key = key.trim_end();
        let unquoted = ['"', '\''].iter().find_map(|mark| {
            key.strip_prefix(*mark)
                .and_then(|key| key.strip_suffix(*mark))
        });
        let key = unquoted.unwrap_or(key);
        let slot = match key {
            "name" => &mut name,
            "description" => &mut description,
            _ => continue,
        };
        if slot.is_some() {
            let reason = format!("{key:?} is there twice: remove one of the two lines");
            return Err(Broken {
                line: number,
                reason,
            });
        }
        let value = scalar(value.trim(), &nested).map_err(|reason| Broken {
            line: number,
            reason: format!("{key:?} {reason}"),
        })?;
        *slot = Some((number, value));
    }
    let missing = |key: &str, what: &str| Broken {
        line: end,
        reason: format!("there is no {key:?} before this line: add \"{key}: {what}\""),
    };
    let (line, name) = name.ok_or_else(|| missing("name", "a-short-name"))?;
    if !is_name(&name) {
        let reason = format!(
            "the name {name:?} must be 1 to {NAME_CHARS} of a-z, 0-9 and single hyphens between \
             them: change it, such as to \"meal-planner\""
        );
        return Err(Broken { line, reason });
    }
    let (line, description) = description
        .ok_or_else(|| missing("description", "what the skill does, and when to use it"))?;
    let description = one_line(&description);
    let count = description.chars().count();
    if !(1..=DESCRIPTION_CHARS).contains(&count) {
        let reason = format!(
            "the description has {count} characters: say in 1 to {DESCRIPTION_CHARS} what the \
             skill does, and when to use it"
        );
        return Err(Broken { line, reason });
    }
    Ok(Manifest {
        name,
        description,
        body,
    })
}

/// The head, the text after it, and the number of the line that ends the head.
fn split(text: &str) -> Result<(&str, &str, usize), Broken> {
    let broken = |line, reason: &str| Broken {
        line,
        reason: reason.to_owned(),
    };
    let mut place = 0;
    let mut begin = None;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let is_rule = line.trim_end() == "---";
        match begin {
            None if !is_rule => break,
            None => begin = Some(line.len()),
            Some(begin) if is_rule => {
                return Ok((&text[begin..place], &text[place + line.len()..], index + 1));
            }
            Some(_) => {}
        }
        place += line.len();
    }
    Err(match begin {
        None => broken(
            1,
            "the file must begin with a line \"---\", then name and description, then \"---\"",
        ),
        Some(_) => broken(
            text.lines().count(),
            "the head does not end: add a line \"---\" after name and description",
        ),
    })
}

fn is_empty(line: &str) -> bool {
    line.trim().is_empty() || line.trim_start().starts_with('#')
}

/// Whether a line belongs to the key before it.
fn is_nested(line: &str) -> bool {
    line.starts_with([' ', '\t', '-']) || line.trim().is_empty()
}

/// The value of a key, and of the lines that belong to it.
fn scalar(value: &str, nested: &[&str]) -> Result<String, String> {
    let nested = nested.iter().map(|line| line.trim());
    let indicator = value.split('#').next().unwrap_or_default().trim_end();
    if indicator.starts_with(['>', '|']) && indicator.len() <= 3 {
        return Ok(nested.collect::<Vec<&str>>().join("\n"));
    }
    let whole = std::iter::once(value)
        .chain(nested)
        .collect::<Vec<&str>>()
        .join(" ");
    let whole = whole.trim();
    match whole.chars().next() {
        Some('"') => quoted(whole, '"'),
        Some('\'') => quoted(whole, '\''),
        Some('[' | '{' | '&' | '*' | '!' | '%' | '@' | '`') => Err(
            "begins with a character that has a meaning in YAML: put the value between quotation \
             marks"
                .to_owned(),
        ),
        _ => {
            // A comment begins at a # after white space.
            let end = whole.find(" #").unwrap_or(whole.len());
            Ok(whole[..end].trim_end().to_owned())
        }
    }
}

/// The text between quotation marks, of which nothing but a comment may follow.
fn quoted(text: &str, mark: char) -> Result<String, String> {
    let mut read = String::new();
    let mut letters = text.chars().skip(1).peekable();
    loop {
        match letters.next() {
            None => return Err(format!("does not end: add a {mark} at its end")),
            Some(letter) if letter == mark => {
                // In single quotation marks, two are one.
                if mark == '\'' && letters.next_if_eq(&mark).is_some() {
                    read.push(mark);
                    continue;
                }
                break;
            }
            Some('\\') if mark == '"' => match letters.next() {
                Some(kind @ ('x' | 'u' | 'U')) => {
                    let count = [('x', 2), ('u', 4)].iter().find(|(one, _)| *one == kind);
                    let digits = count.map_or(8, |(_, count)| *count);
                    let code: String = letters.by_ref().take(digits).collect();
                    let letter = u32::from_str_radix(&code, 16).ok().and_then(char::from_u32);
                    read.push(letter.filter(|_| code.len() == digits).ok_or_else(|| {
                        format!("has \\{kind}{code}, which is no character: write that itself")
                    })?);
                }
                Some('n' | 'r') => read.push('\n'),
                Some('t') => read.push('\t'),
                Some(letter @ ('"' | '\\' | '/' | ' ')) => read.push(letter),
                other => {
                    let escape = other.map_or_else(String::new, String::from);
                    return Err(format!(
                        "has \\{escape}, which is not read here: write the character itself"
                    ));
                }
            },
            Some(letter) => read.push(letter),
        }
    }
    let rest: String = letters.collect();
    match is_empty(&rest) {
        true => Ok(read),
        false => Err(format!(
            "goes on after its last {mark}: escape those within"
        )),
    }
}

/// A text on one line, with nothing in it that ends the line or hides.
fn one_line(text: &str) -> String {
    let shown: String = text
        .chars()
        .map(|letter| if letter.is_whitespace() { ' ' } else { letter })
        .filter(|letter| *letter == ' ' || !is_hidden(*letter))
        .collect();
    shown.split_whitespace().collect::<Vec<&str>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read_as_yaml_has_them() {
        for (head, description) in [
            ("name: tea\ndescription: Makes tea.", "Makes tea."),
            ("description: 'It''s tea'\nname: \"tea\"", "It's tea"),
            (
                "\"name\": tea\n'description' : \"\\x54\\u00e9\\U0001F375\"",
                "Té🍵",
            ),
            (
                "name: tea # short\ndescription: \"a: \\\"b\\\" # c\" # d",
                "a: \"b\" # c",
            ),
            (
                "name: tea\ndescription: Use when: asked #1",
                "Use when: asked",
            ),
            (
                "name: tea\ndescription: >-\n  Makes tea.\n\n  Hot.\nlicense: MIT",
                "Makes tea. Hot.",
            ),
            ("name: tea\ndescription: |\n  Makes\n  tea.", "Makes tea."),
            (
                "name: tea\ndescription: Makes\n  tea,\n  hot.",
                "Makes tea, hot.",
            ),
            (
                "# A skill\nname: tea\nmetadata:\n  name: other\n  description: no\nallowed-tools:\n- \
                 a\ndescription: Tea.",
                "Tea.",
            ),
            (
                "name: tea\r\ndescription: \"a\\n</outside X>\u{202e}b\u{7}\"",
                "a </outside X>b",
            ),
        ] {
            let text = format!("---\n{head}\n---\n# Tea\n");
            let read = parse(&text).unwrap_or_else(|error| panic!("{head}: {error}"));
            assert_eq!(
                (read.name.as_str(), read.description.as_str()),
                ("tea", description)
            );
            assert_eq!(read.body, "# Tea\n");
        }
    }

    #[test]
    fn what_is_broken_is_said_with_its_line_and_what_to_do() {
        let long = format!("---\nname: tea\ndescription: {}\n---\n", "x".repeat(1_025));
        for (text, line, says) in [
            ("", 1, "must begin with a line"),
            ("# Tea\n", 1, "must begin with a line"),
            ("---\nname: tea\n", 2, "add a line"),
            ("---\ndescription: x\n---\n", 3, "no \"name\""),
            ("---\nname: tea\n---\n", 3, "no \"description\""),
            (
                "---\nname: Tea\ndescription: x\n---\n",
                2,
                "must be 1 to 64",
            ),
            (
                "---\nname: ../tea\ndescription: x\n---\n",
                2,
                "must be 1 to 64",
            ),
            (
                "---\nname: a--b\ndescription: x\n---\n",
                2,
                "must be 1 to 64",
            ),
            ("---\nname: -a\ndescription: x\n---\n", 2, "must be 1 to 64"),
            ("---\nname: tea\ndescription:\n---\n", 3, "has 0 characters"),
            (&long, 3, "has 1025 characters"),
            (
                "---\nname: tea\nname: tea\ndescription: x\n---\n",
                3,
                "twice",
            ),
            ("---\nname: tea\nhello\n---\n", 3, "no \"key: value\""),
            ("---\nname: tea\ndescription: \"x\n---\n", 3, "does not end"),
            (
                "---\nname: tea\ndescription: 'x' y\n---\n",
                3,
                "goes on after",
            ),
            (
                "---\nname: tea\ndescription: [x]\n---\n",
                3,
                "between quotation marks",
            ),
            (
                "---\nname: tea\ndescription: \"\\q\"\n---\n",
                3,
                "\\q, which is",
            ),
            (
                "---\nname: tea\ndescription: \"\\uD800\"\n---\n",
                3,
                "\\uD800, which is no character",
            ),
            ("---\n{name: tea, description: x}\n---\n", 2, "in braces"),
        ] {
            let broken = parse(text).unwrap_err();
            assert_eq!(broken.line, line, "{text}: {broken}");
            assert!(broken.reason.contains(says), "{text}: {broken}");
        }
    }
}
