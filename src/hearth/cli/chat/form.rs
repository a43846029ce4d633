//! The form of a question of a running tool, filled in field by field.

use serde_json::{Map, Value};

use base::visible::one_line;
use protocol::question::{Choice, Field, FieldKind, Question};

/// Columns of a line. A terminal may have more.
pub const COLUMNS: usize = 80;

/// A form that is being filled in.
#[derive(Debug, Default)]
pub struct Form {
    content: Map<String, Value>,
    /// The field that is asked for; after the last one, whether to send all.
    at: usize,
}

/// What a line comes to.
#[derive(Debug)]
pub enum Filled {
    /// This is asked next, perhaps after what is wrong.
    Ask(String),
    /// The answer is to be sent.
    Send(Map<String, Value>),
    /// It is declined.
    Decline,
    /// It is cancelled.
    Cancel,
    /// It is left as it is.
    Later,
}

impl Form {
    /// What is asked now.
    pub fn prompt(&self, question: &Question) -> String {
        let Some(field) = question.fields.get(self.at) else {
            let mut text = String::new();
            for field in &question.fields {
                if let Some(value) = self.content.get(&field.name) {
                    let line = format!("{}: {}", label(field), shown(field, value));
                    text.push_str(&format!("{}\n", marked(&line)));
                }
            }
            let again = if question.fields.is_empty() {
                ""
            } else {
                "(e)dit, "
            };
            return format!("{text}(s)end, {again}(d)ecline, (c)ancel or (l)ater: ");
        };
        let mut text = label(field);
        if let Some(description) = &field.description {
            text.push_str(&format!(" ({})", one_line(description)));
        }
        match &field.kind {
            FieldKind::Boolean => text.push_str(", yes or no"),
            FieldKind::Choice(options) => text.push_str(&numbered(options)),
            FieldKind::Choices { options, .. } => {
                text.push_str(&numbered(options));
                text.push_str("; several with commas");
            }
            FieldKind::Number { least, most, .. } => text.push_str(&match (least, most) {
                (Some(least), Some(most)) => format!(", {least} to {most}"),
                (Some(least), None) => format!(", at least {least}"),
                (None, Some(most)) => format!(", at most {most}"),
                (None, None) => String::new(),
            }),
            FieldKind::Text { .. } => {}
        }
        let usual = self.usual(field).map(|value| shown(field, value));
        match usual {
            Some(value) => text.push_str(&format!(" [{value}]")),
            None if !field.is_required => text.push_str(" [nothing]"),
            None => {}
        }
        let help = match self.at {
            0 => "/decline, /cancel or /later; Enter takes what is in brackets\n",
            _ => "",
        };
        format!("{help}{}: ", marked(&text))
    }

    /// What an empty line means: what was given before, or the default.
    fn usual<'a>(&'a self, field: &'a Field) -> Option<&'a Value> {
        self.content.get(&field.name).or(field.default.as_ref())
    }

    /// Handles a line.
    pub fn take(&mut self, line: &str, question: &Question) -> Filled {
        match line {
            "/decline" => return Filled::Decline,
            "/cancel" => return Filled::Cancel,
            "/later" => return Filled::Later,
            _ => {}
        }
        let Some(field) = question.fields.get(self.at) else {
            return self.finish(line, question);
        };
        let given = match line {
            "" => self.usual(field).cloned(),
            "/skip" if !field.is_required => None,
            line => Some(value(field, line)),
        };
        let name = &field.name;
        match given {
            None if field.is_required => {
                return Filled::Ask(format!("this is needed\n{}", self.prompt(question)));
            }
            None => {
                self.content.remove(name);
            }
            Some(given) => match field.check(&given) {
                Ok(checked) => {
                    self.content.insert(name.clone(), checked);
                }
                Err(why) => {
                    let prompt = self.prompt(question);
                    return Filled::Ask(format!("This {why}\n{prompt}"));
                }
            },
        }
        self.at += 1;
        Filled::Ask(self.prompt(question))
    }

    fn finish(&mut self, line: &str, question: &Question) -> Filled {
        match line.to_ascii_lowercase().as_str() {
            "s" | "send" => Filled::Send(std::mem::take(&mut self.content)),
            "d" | "decline" => Filled::Decline,
            "c" | "cancel" => Filled::Cancel,
            "l" | "later" => Filled::Later,
            "e" | "edit" => {
                self.at = 0;
                Filled::Ask(self.prompt(question))
            }
            // A typing mistake must not send anything.
            _ => Filled::Ask(self.prompt(question)),
        }
    }
}

/// A server's words, each line behind a bar, so that none looks like a question of ours: also
/// where a terminal would begin a new one.
pub fn marked(text: &str) -> String {
    let mut marked = Vec::new();
    for line in text.split('\n') {
        let letters: Vec<char> = line.chars().collect();
        let mut parts = letters.chunks(COLUMNS - 4);
        let first = parts.next().unwrap_or_default();
        marked.extend([first].into_iter().chain(parts).map(|part| {
            let part: String = part.iter().collect();
            format!("  | {part}")
        }));
    }
    marked.join("\n")
}

/// What to call a field, on one line.
pub fn label(field: &Field) -> String {
    one_line(field.label())
}

fn numbered(options: &[Choice]) -> String {
    let numbered = options.iter().enumerate();
    let numbered = numbered.map(|(at, one)| format!("{} {}", at + 1, one_line(&one.title)));
    format!(": {}", numbered.collect::<Vec<_>>().join(", "))
}

/// A line as the value of a field; what does not fit is refused by its check.
fn value(field: &Field, line: &str) -> Value {
    let option = |options: &[Choice], line: &str| {
        let number = line
            .parse::<usize>()
            .ok()
            .and_then(|number| number.checked_sub(1));
        let by_number = number.and_then(|at| options.get(at));
        let by_text = |one: &&Choice| one.value == line || one.title.eq_ignore_ascii_case(line);
        let found = options.iter().find(by_text).or(by_number);
        Value::from(found.map_or(line, |one| one.value.as_str()))
    };
    match &field.kind {
        FieldKind::Text { .. } => Value::from(line),
        FieldKind::Number { .. } => match line.parse::<i64>() {
            Ok(number) => Value::from(number),
            Err(_) => line.parse::<f64>().map_or(Value::from(line), Value::from),
        },
        FieldKind::Boolean => match line.to_ascii_lowercase().as_str() {
            "y" | "yes" | "true" => Value::from(true),
            "n" | "no" | "false" => Value::from(false),
            _ => Value::from(line),
        },
        FieldKind::Choice(options) => option(options, line),
        FieldKind::Choices { options, .. } => {
            let parts = line
                .split(',')
                .map(str::trim)
                .filter(|part| !part.is_empty());
            parts.map(|part| option(options, part)).collect()
        }
    }
}

/// A value for the person.
fn shown(field: &Field, value: &Value) -> String {
    let title = |options: &[Choice], value: &Value| {
        let found = options
            .iter()
            .find(|one| value.as_str() == Some(&one.value));
        found.map_or_else(|| value.to_string(), |one| one_line(&one.title))
    };
    match (&field.kind, value) {
        (FieldKind::Choice(options), value) => title(options, value),
        (FieldKind::Choices { options, .. }, Value::Array(chosen)) => {
            let chosen: Vec<String> = chosen.iter().map(|one| title(options, one)).collect();
            chosen.join(", ")
        }
        (_, Value::Bool(true)) => "yes".to_owned(),
        (_, Value::Bool(false)) => "no".to_owned(),
        (_, Value::String(text)) => one_line(text),
        (_, other) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_of_a_server_begins_like_one_of_ours() {
        let sly = format!("Room?\n{}(o)nce, (a)lways:\n\nMay it?", " ".repeat(80));
        let shown = marked(&sly);
        assert_eq!(shown.lines().count(), 5);
        for line in shown.lines() {
            assert!(line.starts_with("  | "), "{line:?}");
            assert!(line.chars().count() <= COLUMNS, "{line:?}");
        }
    }
}
