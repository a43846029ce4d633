//! A command of the terminal as a row: the request that it sends, and how the response is
//! shown.

use serde_json::{Value, json};

use super::arguments::Arguments;
use super::chat::connection::SignedIn;
use super::context::{CliContext, CliError, CliResult};
use super::door::{Configuration, Door};
use super::table;
use base::people::Audience;
use base::visible::lines;

/// Makes the request of a command line, with its `type`.
pub type Request = fn(&Arguments) -> Result<Value, CliError>;

/// What a command sends, and how it shows the response.
#[derive(Clone, Copy)]
pub struct Row {
    /// What is sent.
    pub request: Request,
    /// How the data of the response is shown. With `--json` it is printed as it is, but
    /// for a list, which is an array.
    pub shown: Shown,
    /// Whether it is sent as a person who signs in to a server, not as the owner of the machine.
    pub is_own: bool,
}

/// How the data of a response is shown.
#[derive(Clone, Copy)]
pub enum Shown {
    /// As a table.
    List {
        /// The member of the data that holds the records.
        member: &'static str,
        columns: &'static [Column],
        /// Said instead of an empty table.
        empty: &'static str,
    },
    /// The same, of one record with members of its own: `--json` prints all of it.
    Record {
        /// The member of the data that holds the rows.
        member: &'static str,
        columns: &'static [Column],
        /// Said instead of an empty table.
        empty: &'static str,
    },
    /// As a line on standard output.
    Line(fn(&Value) -> String),
    /// As a sentence for the person, on standard error.
    Sentence(fn(&Value) -> String),
    /// As a line on standard output, and a sentence for the person.
    Result(fn(&Value) -> String, fn(&Value) -> String),
}

/// A column of a list: its title, and the cell of a record.
pub type Column = (&'static str, fn(&Value) -> String);

impl Row {
    /// Runs the command. What is wrong with the arguments is said before anything is asked.
    pub fn run(&self, arguments: &Arguments, context: &mut CliContext) -> CliResult {
        let request = (self.request)(arguments)?;
        if self.is_own {
            let data = SignedIn::named(arguments, context)?.ask(&request)?;
            return self.shown.print(&data, arguments, context);
        }
        let mut door = Door::of(Configuration::Needed, arguments, context);
        let mut data = door.ask(&request)?;
        if self.shown.is_table() && !arguments.has("json") {
            name_people(&mut data, &mut door)?;
        }
        self.shown.print(&data, arguments, context)
    }
}

impl Shown {
    /// Whether it is a table, which `--json` prints as it is.
    pub fn is_table(&self) -> bool {
        matches!(self, Shown::List { .. } | Shown::Record { .. })
    }

    /// Prints the data of a response.
    pub fn print(
        &self,
        data: &Value,
        arguments: &Arguments,
        context: &mut CliContext,
    ) -> CliResult {
        match self {
            Shown::List { member, .. } if arguments.has("json") => {
                table::print_json(context, &data[member])
            }
            _ if arguments.has("json") => table::print_json(context, data),
            Shown::Line(line) => context.print(lines(&line(data))),
            Shown::Sentence(sentence) => context.note(lines(&sentence(data))),
            Shown::Result(line, sentence) => {
                context.print(lines(&line(data)))?;
                context.note(lines(&sentence(data)))
            }
            Shown::List {
                member,
                columns,
                empty,
            }
            | Shown::Record {
                member,
                columns,
                empty,
            } => {
                let records = data[member].as_array().map_or(&[][..], Vec::as_slice);
                let rows: Vec<Vec<String>> = records
                    .iter()
                    .map(|record| columns.iter().map(|(_, cell)| cell(record)).collect())
                    .collect();
                let titles: Vec<&str> = columns.iter().map(|(title, _)| *title).collect();
                table::print(context, &titles, &rows, empty)
            }
        }
    }
}

/// Adds what people are called to the names by which they sign in.
pub fn name_people(data: &mut Value, door: &mut Door) -> Result<(), CliError> {
    let people = door.ask(&json!({ "type": "list_people" }))?;
    rename(data, people["people"].as_array().map_or(&[], Vec::as_slice));
    Ok(())
}

/// Adds what these people are called, of the data of `list_people`.
pub fn rename(data: &mut Value, people: &[Value]) {
    let call = |name: &mut Value| {
        let known = people.iter().find(|person| person["name"] == *name);
        if let Some(called) = known.map(|person| &person["display_name"])
            && called != name
        {
            *name = json!(format!("{} ({})", text(called), text(name)));
        }
    };
    match data {
        Value::Array(all) => all.iter_mut().for_each(|one| rename(one, people)),
        Value::Object(members) => {
            for (member, value) in members {
                match (member.as_str(), value) {
                    ("owner" | "person" | "speaker" | "user" | "created_by", name)
                        if name.is_string() =>
                    {
                        call(name);
                    }
                    ("audience", Value::Array(names)) => names.iter_mut().for_each(call),
                    (_, value) => rename(value, people),
                }
            }
        }
        _ => {}
    }
}

/// A text or a number, or `-` where there is none.
pub fn text(value: &Value) -> String {
    match value {
        Value::String(text) if !text.is_empty() => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => "-".to_owned(),
    }
}

/// A time as people read it, or `-` where there is none.
pub fn time(value: &Value) -> String {
    match serde_json::from_value(value.clone()) {
        Ok(time) => table::time(time),
        Err(_) => "-".to_owned(),
    }
}

/// Who sees a thing.
pub fn audience(value: &Value) -> String {
    match serde_json::from_value(value.clone()) {
        Ok(Audience::People(names)) => names.join(", "),
        _ => text(value),
    }
}
