//! Lists of the household: what to buy, what to do.

use serde_json::json;

use crate::tools::definition::{
    Arguments, Change, Definition, ToolContext, required_text, text, texts,
};
use crate::tools::function::FunctionTool;
use crate::tools::wording::{Approver, Intent};
use store::{List, ListChange};

pub(super) fn lists() -> FunctionTool {
    FunctionTool {
        definition: Definition::builtin(
            "lists",
            "Household lists: what to buy or do, not memories. show alone: names. add makes new \
             ones.",
            json!({
                "action": {
                    "type": "string",
                    "enum": ["show", "add", "check", "uncheck", "remove"],
                },
                "list": {"type": "string"},
                "items": {"type": "array", "items": {"type": "string"}},
            }),
            &["action"],
        )
        .for_readers(),
        intent,
        run,
    }
}

fn intent(arguments: &Arguments, approver: &Approver<'_>) -> Option<Intent> {
    let key = match text(arguments, "action")? {
        "show" => "action.lists.show",
        "add" => "action.lists.add",
        "check" => "action.lists.check",
        "uncheck" => "action.lists.uncheck",
        "remove" => "action.lists.remove",
        _ => return None,
    };
    let Some(list) = text(arguments, "list") else {
        return approver.intent("action.lists", &[]);
    };
    let items = approver.words.list(&texts(arguments, "items"));
    approver.intent(key, &[("list", list), ("items", &items)])
}

fn run(arguments: &Arguments, context: &ToolContext<'_>) -> Result<String, String> {
    let mut change = ListChange {
        is_outside: context.is_outside,
        turn_id: context.turn_id,
        ..ListChange::default()
    };
    let changed = match text(arguments, "action") {
        Some("show") => {
            let Some(name) = text(arguments, "list") else {
                return names(context);
            };
            return Ok(shown(&context.seen()?.list(name)?, context));
        }
        Some("add") => &mut change.add,
        Some("check") => &mut change.check,
        Some("uncheck") => &mut change.uncheck,
        Some("remove") => &mut change.remove,
        _ => {
            return Err(
                "the argument \"action\" must be show, add, check, uncheck or remove".to_owned(),
            );
        }
    };
    let name = required_text(arguments, "list")?;
    let items = texts(arguments, "items");
    if items.is_empty() {
        return Err("the argument \"items\" must name at least one item".to_owned());
    }
    *changed = items;
    let list = context.store.update_list(&context.viewer, name, change)?;
    context.changed(vec![Change::List(list.name.clone())]);
    Ok(shown(&list, context))
}

/// Somebody outside may have chosen a list's name, too.
fn names(context: &ToolContext<'_>) -> Result<String, String> {
    let lists = context.seen()?.lists()?;
    if lists.is_empty() {
        return Ok("There are no lists yet.".to_owned());
    }
    context.shows_kept(lists.iter().any(|list| list.is_outside));
    let lines: Vec<String> = lists
        .iter()
        .map(|list| format!("{} ({} open of {})", list.name, list.unchecked, list.items))
        .collect();
    Ok(lines.join("\n"))
}

/// What is still open comes first: the end of a long list may be cut.
fn shown(list: &List, context: &ToolContext<'_>) -> String {
    context.shows_kept(list.is_outside || list.items.iter().any(|item| item.is_outside));
    let (done, open): (Vec<_>, Vec<_>) = list.items.iter().partition(|item| item.is_checked);
    let mut lines = vec![format!(
        "{}: {} open of {}",
        list.name,
        open.len(),
        list.items.len()
    )];
    lines.extend(open.iter().map(|item| format!("[ ] {}", item.text)));
    lines.extend(done.iter().map(|item| format!("[x] {}", item.text)));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use crate::tools::testing::Household;
    use base::testing::rows;
    use serde_json::Value;
    use store::Viewer;

    #[test]
    fn a_list_is_made_shown_and_ticked_off() {
        let household = Household::new();
        let run = |arguments: &str| household.run("lists", arguments.parse().unwrap());
        assert_eq!(
            run(r#"{"action": "show"}"#).unwrap(),
            "There are no lists yet."
        );
        let table = r#"
            {"action": "add", "list": "Shopping", "items": ["milk", "bread"]}  | Shopping: 2 open of 2¶[ ] milk¶[ ] bread
            {"action": "check", "list": "shopping", "items": ["Milk"]}         | Shopping: 1 open of 2¶[ ] bread¶[x] milk
            {"action": "add", "list": "to-do", "items": ["call  the\nbank"]}   | to-do: 1 open of 1¶[ ] call the bank
            {"action": "show"}                                                 | Shopping (1 open of 2)¶to-do (1 open of 1)
            {"action": "uncheck", "list": "shopping", "items": ["milk"]}       | Shopping: 2 open of 2¶[ ] milk¶[ ] bread
            {"action": "remove", "list": "shopping", "items": ["milk", "bread"]} | Shopping: 0 open of 0
            {"action": "show", "list": "to-do", "items": []}                   | to-do: 1 open of 1¶[ ] call the bank
        "#;
        for [arguments, said] in rows(table) {
            assert_eq!(
                run(arguments).unwrap(),
                said.replace('¶', "\n"),
                "{arguments}"
            );
        }
        let table = r#"
            {"action": "wait"}                                     | must be one of
            {"action": "add", "items": ["x"]}                      | "list" must not be empty
            {"action": "add", "list": "to-do"}                     | at least one item
            {"action": "add", "list": "to-do", "items": [" "]}     | an item has 1 to
            {"action": "check", "list": "gone", "items": ["x"]}    | there is no list "gone"
            {"action": "check", "list": "to-do", "items": ["x"]}   | there is no "x" on the list "to-do"
        "#;
        for [arguments, problem] in rows(table) {
            let error = run(arguments).unwrap_err();
            assert!(error.contains(problem), "{arguments}: {error}");
        }
    }

    #[test]
    fn a_person_is_told_what_changes() {
        let household = Household::new();
        let table = r#"
            {"action": "show"}                                          | look at the lists
            {"action": "show", "list": "shopping"}                      | look at the list shopping
            {"action": "add", "list": "shopping", "items": ["a", "b"]}  | add to the list shopping: a and b
            {"action": "check", "list": "shopping", "items": ["a"]}     | tick off on the list shopping: a
            {"action": "remove", "list": "shopping", "items": ["a"]}    | remove from the list shopping: a
        "#;
        for [arguments, intent] in rows(table) {
            let arguments: Value = arguments.parse().unwrap();
            let found = super::intent(
                arguments.as_object().unwrap(),
                &household.approver(&Viewer::server()),
            );
            assert_eq!(found.unwrap().action, intent);
        }
    }
}
