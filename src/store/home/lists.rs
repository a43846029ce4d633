//! Lists of the household: what to buy, what to do. Whoever belongs to the household
//! sees and changes them.

use rusqlite::{Connection, Row, params};

use super::trigger::{self, Trigger};
use crate::engine::database::Store;
use crate::engine::failure::{Failure, Outcome};
use crate::engine::job::Write;
use crate::engine::query::{Statements, from_row};
use crate::sight::snapshot::Snapshot;
use crate::sight::viewer::{Belongs, Sight, Viewer};
use base::composed::line;
use base::error::{Error, Result};
use base::ids::{AudienceId, ItemId, TurnId};
use base::language::Said;
use base::people::folded;

/// Most lists.
pub const LISTS: usize = 100;
/// Most items of a list.
pub const ITEMS: usize = 500;
/// Longest name of a list, in bytes.
pub const LIST_NAME_BYTES: usize = 100;
/// Longest item, in bytes.
pub const ITEM_BYTES: usize = 500;

/// A list with all that is on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List {
    /// Unique, in any case.
    pub name: String,
    /// In the order in which they were added.
    pub items: Vec<ListItem>,
    /// Whether text from outside was in the conversation in which it was made.
    pub is_outside: bool,
}

/// One line of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListItem {
    /// Names it, as its text does.
    pub id: ItemId,
    /// One line; unique in its list, in any case.
    pub text: String,
    /// Whether it is bought or done.
    pub is_checked: bool,
    /// Whether text from outside was in the conversation in which it was added.
    pub is_outside: bool,
}

/// A list without what is on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListSummary {
    /// Its name.
    pub name: String,
    /// How many items it has.
    pub items: u64,
    /// How many of them are not checked.
    pub unchecked: u64,
    /// Whether text from outside was in the conversation in which it was made.
    pub is_outside: bool,
}

/// What changes on a list, in this order. An item is named by its id or its text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListChange {
    /// Texts of new items. One that is there already is only unchecked.
    pub add: Vec<String>,
    /// Items that are bought or done.
    pub check: Vec<String>,
    /// Items that are not, after all.
    pub uncheck: Vec<String>,
    /// Items to delete.
    pub remove: Vec<String>,
    /// Whether text from outside is in the conversation.
    pub is_outside: bool,
    /// The turn that changes it, if one does.
    pub turn_id: Option<TurnId>,
}

impl Snapshot<'_> {
    /// All lists, oldest first.
    pub fn lists(&self) -> Result<Vec<ListSummary>> {
        if !self.sight.sees(&HOUSEHOLD) {
            return Ok(Vec::new());
        }
        let summaries = self.rows(SUMMARIES, params![], |row| {
            Ok(from_row!(row => ListSummary { name, items, unchecked, is_outside }))
        })?;
        Ok(summaries)
    }

    /// The list of this name, in any case.
    ///
    /// # Errors
    /// `not_found`.
    pub fn list(&self, name: &str) -> Result<List> {
        let found = match self.sight.sees(&HOUSEHOLD) {
            true => find(self.connection(), name)?,
            false => None,
        };
        let (id, list) = found.ok_or_else(|| unknown(name))?;
        Ok(List {
            items: self.rows(ITEMS_OF, params![id], item)?,
            ..list
        })
    }
}

impl Store {
    /// Changes a list, all or nothing, and returns it. One that does not exist is made
    /// by what is added.
    ///
    /// # Errors
    /// `not_found` for the list or an item, `invalid_request` over a limit,
    /// `unauthorized` for who does not see the lists.
    pub fn update_list(&self, viewer: &Viewer, name: &str, change: ListChange) -> Result<List> {
        let name = name.to_owned();
        self.write_for(viewer, move |write, sight| {
            check_sees(sight)?;
            let (id, mut list) = match find(write.connection, &name)? {
                Some(found) => found,
                None if change.add.is_empty() => return Err(unknown(&name)),
                None => make(write, &name, change.is_outside)?,
            };
            list.items = write.rows(ITEMS_OF, params![id], item)?;
            apply(write, id, &mut list, &change)?;
            let trigger = Trigger::List(folded(&list.name));
            let (cause, is_outside) = (change.turn_id, change.is_outside);
            trigger::fire(
                write,
                &trigger,
                cause,
                &told(&list, &change),
                is_outside,
                AudienceId::HOUSEHOLD,
            )?;
            Ok(list)
        })
    }

    /// Adds to the list of this name what is not on it yet, all or nothing. What is there stays
    /// as it is. Returns how many items that were, and whether the list is new.
    ///
    /// # Errors
    /// As of [`Store::update_list`].
    pub fn import_list(&self, viewer: &Viewer, new: List) -> Result<(usize, bool)> {
        self.write_for(viewer, move |write, sight| {
            check_sees(sight)?;
            let found = find(write.connection, &new.name)?;
            let is_new = found.is_none();
            let (id, mut list) = match found {
                Some(found) => found,
                None => make(write, &new.name, new.is_outside)?,
            };
            list.items = write.rows(ITEMS_OF, params![id], item)?;
            let before = list.items.len();
            for item in &new.items {
                let text = checked_line(&item.text, "error.item_text", ITEM_BYTES)?;
                if known(&mut list, &text).is_none() {
                    add(
                        write,
                        id,
                        &mut list,
                        text,
                        (item.is_checked, item.is_outside),
                    )?;
                }
            }
            Ok((list.items.len() - before, is_new))
        })
    }

    /// Deletes a list with all that is on it, and returns its name.
    ///
    /// # Errors
    /// `not_found`; `unauthorized` for who does not see the lists.
    pub fn delete_list(&self, viewer: &Viewer, name: &str) -> Result<String> {
        let name = name.to_owned();
        self.write_for(viewer, move |write, sight| {
            check_sees(sight)?;
            let (id, list) = find(write.connection, &name)?.ok_or_else(|| unknown(&name))?;
            write.execute("DELETE FROM lists WHERE id = ?", params![id])?;
            Ok(list.name)
        })
    }
}

/// All lists belong to the household.
const HOUSEHOLD: Belongs = Belongs {
    owner_id: None,
    audience_id: AudienceId::HOUSEHOLD,
    account: None,
};

fn check_sees(sight: &Sight<'_>) -> Outcome<()> {
    match sight.sees(&HOUSEHOLD) {
        true => Ok(()),
        false => Err(Error::unauthorized(Said::of("error.lists_of_household", &[])).into()),
    }
}

fn unknown(name: &str) -> Failure {
    let shown: String = name.chars().take(LIST_NAME_BYTES).collect();
    Error::not_found(Said::of("error.no_list", &[("name", &shown)])).into()
}

/// A list, without its items, and its number.
fn find(connection: &Connection, name: &str) -> Outcome<Option<(i64, List)>> {
    let wanted = folded(&line(name));
    connection.row(FIND, params![wanted], |row| {
        let list = List {
            name: row.get("name")?,
            items: Vec::new(),
            is_outside: row.get("is_outside")?,
        };
        Ok((row.get("id")?, list))
    })
}

fn item(row: &Row<'_>) -> Outcome<ListItem> {
    Ok(from_row!(row => ListItem {
        id, text, is_checked, is_outside
    }))
}

/// What changes, for the routines that wait for it.
fn told(list: &List, change: &ListChange) -> String {
    let parts = [
        ("added", &change.add),
        ("ticked off", &change.check),
        ("no longer ticked off", &change.uncheck),
        ("removed", &change.remove),
    ];
    let parts = parts.iter().filter(|(_, items)| !items.is_empty());
    let parts: Vec<String> = parts
        .map(|(what, items)| format!("{what}: {}", items.join(", ")))
        .collect();
    format!("{}: {}", list.name, parts.join("; "))
}

fn make(write: &Write<'_>, name: &str, is_outside: bool) -> Outcome<(i64, List)> {
    let name = checked_line(name, "error.list_name", LIST_NAME_BYTES)?;
    let count: Option<usize> = write.value(COUNT, params![])?;
    if count.unwrap_or_default() >= LISTS {
        return Err(too_many("error.lists_full", LISTS));
    }
    let id: i64 = write.id();
    write.execute(
        "INSERT INTO lists (id, name, folded, is_outside) VALUES (?1, ?2, ?3, ?4)",
        params![id, name, folded(&name), is_outside],
    )?;
    let items = Vec::new();
    Ok((
        id,
        List {
            name,
            items,
            is_outside,
        },
    ))
}

fn apply(write: &Write<'_>, id: i64, list: &mut List, change: &ListChange) -> Outcome<()> {
    // Each is compared with all items, while other writes wait.
    let named = [&change.add, &change.check, &change.uncheck, &change.remove];
    if named.iter().map(|items| items.len()).sum::<usize>() > ITEMS {
        return Err(too_many("error.items_at_once", ITEMS));
    }
    for text in &change.add {
        let text = checked_line(text, "error.item_text", ITEM_BYTES)?;
        match known(list, &text) {
            Some(known) => check(write, known, false)?,
            None => add(write, id, list, text, (false, change.is_outside))?,
        }
    }
    for (named, is_checked) in [(&change.check, true), (&change.uncheck, false)] {
        for item in named {
            let place = place_of(list, item)?;
            check(write, &mut list.items[place], is_checked)?;
        }
    }
    for item in &change.remove {
        let gone = list.items.remove(place_of(list, item)?);
        write.execute("DELETE FROM list_items WHERE id = ?", params![gone.id])?;
    }
    Ok(())
}

/// The item with this text.
fn known<'a>(list: &'a mut List, text: &str) -> Option<&'a mut ListItem> {
    let wanted = folded(text);
    (list.items.iter_mut()).find(|one| folded(&one.text) == wanted)
}

fn add(
    write: &Write<'_>,
    id: i64,
    list: &mut List,
    text: String,
    (is_checked, is_outside): (bool, bool),
) -> Outcome<()> {
    if list.items.len() >= ITEMS {
        return Err(too_many("error.list_full", ITEMS));
    }
    let item = ListItem {
        id: write.id(),
        text,
        is_checked,
        is_outside,
    };
    write.execute(
        "INSERT INTO list_items (id, list_id, text, is_checked, is_outside)
         VALUES (?1, ?2, ?3, ?4, ?5)",
        params![item.id, id, item.text, item.is_checked, item.is_outside],
    )?;
    list.items.push(item);
    Ok(())
}

fn check(write: &Write<'_>, item: &mut ListItem, is_checked: bool) -> Outcome<()> {
    if item.is_checked != is_checked {
        item.is_checked = is_checked;
        write.execute(
            "UPDATE list_items SET is_checked = ?2 WHERE id = ?1",
            params![item.id, is_checked],
        )?;
    }
    Ok(())
}

/// Where an item is, by its id or its text.
fn place_of(list: &List, item: &str) -> Outcome<usize> {
    let id: Option<ItemId> = item.parse().ok();
    let text = folded(&line(item));
    let by_id = (list.items.iter()).position(|one| Some(one.id) == id);
    let by_text = || (list.items.iter()).position(|one| folded(&one.text) == text);
    by_id.or_else(by_text).ok_or_else(|| {
        let shown: String = item.chars().take(ITEM_BYTES).collect();
        let fields = [("item", &*shown), ("list", &list.name)];
        Error::not_found(Said::of("error.no_item", &fields)).into()
    })
}

fn too_many(key: &'static str, most: usize) -> Failure {
    Error::refused(key, &[("most", &most.to_string())]).into()
}

fn checked_line(text: &str, refused: &'static str, most: usize) -> Outcome<String> {
    let is_control = |letter: char| letter.is_control() && !letter.is_whitespace();
    let has_control = text.contains(is_control);
    let text = line(text);
    if text.is_empty() || text.len() > most || has_control {
        return Err(too_many(refused, most));
    }
    Ok(text)
}

const COUNT: &str = "SELECT count(*) FROM lists";

const SUMMARIES: &str = "SELECT name, l.is_outside AS is_outside, count(i.id) AS items,
         count(i.id) FILTER (WHERE i.is_checked = 0) AS unchecked
     FROM lists l LEFT JOIN list_items i ON i.list_id = l.id
     GROUP BY l.id ORDER BY l.id";

pub(crate) const FIND: &str = "SELECT id, name, is_outside FROM lists WHERE folded = ?";

pub(crate) const ITEMS_OF: &str =
    "SELECT id, text, is_checked, is_outside FROM list_items WHERE list_id = ? ORDER BY id";
