//! `hearth list`: the lists of the household. Works on the database directly; a running
//! server and the model read it again each time, and a page that is open shows a change
//! when it is opened again.

use super::arguments::Arguments;
use super::command::Command;
use super::context::{CliContext, CliResult};
use super::data_directory::open_store;
use super::table::{self, ListView};
use crate::service::views;
use serde_json::json;
use store::{List, ListChange, ListItem, ListSummary, Viewer};

pub const COMMAND: Command = Command::new(
    "\
list: See and change the household's lists: shopping, to-do
Works whether or not the server runs.",
)
.members(&[
    Command::new(
        "\
show [LIST]: Show what is on a list, or which lists there are
--json
--data-dir",
    )
    .run(show),
    Command::new(
        "\
add LIST ITEM [ITEM...]: Add items to a list
Quote an item of several words. A list that does not exist is made.
--json
--data-dir",
    )
    .run(add),
    Command::new("check LIST ITEM [ITEM...]: Tick off items\n--json\n--data-dir").run(check),
    Command::new("uncheck LIST ITEM [ITEM...]: Undo the ticking off of items\n--json\n--data-dir")
        .run(uncheck),
    Command::new("remove LIST ITEM [ITEM...]: Remove items\n--json\n--data-dir").run(remove),
    Command::new("delete LIST: Delete a list with all that is on it\n--data-dir").run(delete),
]);

/// `hearth list show`
fn show(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let store = open_store(arguments, context)?;
    if let Some(name) = arguments.operand(0) {
        return print(arguments, context, &store.list(&Viewer::server(), name)?);
    }
    let view = ListView {
        columns: &["list", "open", "items"],
        row: &|list: &ListSummary| {
            vec![
                list.name.clone(),
                list.unchecked.to_string(),
                list.items.to_string(),
            ]
        },
        json: &|list| json!(views::list_summary(list)),
        empty: "There are no lists yet. Begin one: hearth list add shopping milk",
    };
    view.print(&store.lists(&Viewer::server())?, arguments, context)
}

/// `hearth list add LIST ITEM...`
fn add(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    change(arguments, context, |change| &mut change.add)
}

/// `hearth list check LIST ITEM...`
fn check(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    change(arguments, context, |change| &mut change.check)
}

/// `hearth list uncheck LIST ITEM...`
fn uncheck(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    change(arguments, context, |change| &mut change.uncheck)
}

/// `hearth list remove LIST ITEM...`
fn remove(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    change(arguments, context, |change| &mut change.remove)
}

/// `hearth list delete LIST`
fn delete(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let store = open_store(arguments, context)?;
    let name = store.delete_list(&Viewer::server(), arguments.required(0))?;
    context.note(format_args!("Deleted the list {name}."))
}

fn change(
    arguments: &Arguments,
    context: &mut CliContext,
    what: fn(&mut ListChange) -> &mut Vec<String>,
) -> CliResult {
    let mut change = ListChange::default();
    let items = (1..).map_while(|place| arguments.operand(place));
    what(&mut change).extend(items.map(str::to_owned));
    let store = open_store(arguments, context)?;
    let list = store.update_list(&Viewer::server(), arguments.required(0), change)?;
    print(arguments, context, &list)
}

fn print(arguments: &Arguments, context: &mut CliContext, list: &List) -> CliResult {
    let view = ListView {
        columns: &["done", "item"],
        row: &|item: &ListItem| {
            let done = if item.is_checked { "x" } else { "-" };
            vec![done.to_owned(), item.text.clone()]
        },
        json: &|item| json!(views::item(item)),
        empty: "There is nothing on this list.",
    };
    match arguments.has("json") {
        true => table::print_json(context, &json!(views::list(list))),
        false => view.print(&list.items, arguments, context),
    }
}
