//! What a tool of the configuration shows of an answer: its JSON or XML in the form that the
//! settings give it.

use serde_json::Value;

use super::xml::{self, list};
use config::AnswerForm;

/// Most bytes of one item.
const ITEM_BYTES: usize = 64 * 1024;

/// The answer in the first form whose list is there; none where the answer has no such list.
pub(super) fn shown(forms: &[AnswerForm], body: &str) -> Option<String> {
    let document = document(body)?;
    forms.iter().find_map(|form| in_form(form, &document))
}

/// Whether one of the forms is meant for this answer: what it lists has some of the parts that
/// it shows. A page of another service has none of them, though it may be read as XML.
pub(super) fn is_expected(forms: &[AnswerForm], body: &str) -> bool {
    let Some(document) = document(body) else {
        return false;
    };
    let has_parts = |form: &AnswerForm, item: &Value| {
        let mut parts = form.text.pointers();
        parts.any(|part| item.pointer(part).is_some())
    };
    forms.iter().any(|form| {
        let each = form.each.as_deref().unwrap_or_default();
        match document.pointer(each) {
            None | Some(Value::Null) => false,
            Some(Value::Array(items)) => {
                items.is_empty() || items.iter().any(|item| has_parts(form, item))
            }
            Some(one) => has_parts(form, one),
        }
    })
}

fn document(body: &str) -> Option<Value> {
    let json = serde_json::from_str(body).ok();
    json.or_else(|| xml::document(body))
}

fn in_form(form: &AnswerForm, document: &Value) -> Option<String> {
    let fill = |item: &Value| {
        let text = form.text.fill(item, ITEM_BYTES);
        let lines = text.lines().map(str::trim_end);
        let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
        lines.join("\n")
    };
    let Some(each) = &form.each else {
        return Some(fill(document));
    };
    let items = match document.pointer(each)? {
        Value::Null => return None,
        items => list(items),
    };
    let mut texts: Vec<String> = items.iter().take(form.most).map(fill).collect();
    match items.len().saturating_sub(form.most) {
        0 if texts.is_empty() => texts.push("Nothing was found.".to_owned()),
        0 => {}
        more => texts.push(format!("({more} more are not shown.)")),
    }
    let has_lines = texts.iter().any(|text| text.contains('\n'));
    Some(texts.join(if has_lines { "\n\n" } else { "\n" }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use config::Template;

    fn form(each: Option<&str>, text: &str) -> AnswerForm {
        AnswerForm {
            each: each.map(str::to_owned),
            text: Template::parse(text).unwrap(),
            most: 2,
        }
    }

    #[test]
    fn the_first_form_whose_list_is_there_is_shown() {
        let forms = [
            form(Some("/results"), "{/title}\n{/url}"),
            form(Some("/entry"), "{/id}: {/text}"),
        ];
        let item = |title: &str| json!({"title": title, "url": "http://h/"});
        for (answer, expected) in [
            (
                json!({"results": [item("a"), {"title": "b"}]}),
                Some("a\nhttp://h/\n\nb"),
            ),
            (
                json!({"results": [item("a"), {"title": "b"}, {}, {}]}),
                Some("a\nhttp://h/\n\nb\n\n(2 more are not shown.)"),
            ),
            (json!({"results": []}), Some("Nothing was found.")),
            (
                json!({"results": null, "entry": {"id": 1, "text": "x"}}),
                Some("1: x"),
            ),
            (json!({"error": "no"}), None),
        ] {
            let shown = shown(&forms, &answer.to_string());
            assert_eq!(shown.as_deref(), expected, "{answer}");
        }
        assert_eq!(shown(&forms, "no JSON"), None);
        let whole = [form(None, "It is {/t} °C.\n{/none}")];
        let answer = shown(&whole, "{\"t\": 4.5}");
        assert_eq!(answer.as_deref(), Some("It is 4.5 °C."));
        let page = "<html>login</html>";
        let results = [form(Some("/results"), "{/title}"), form(None, "{/t}")];
        for (answer, expected) in [
            ("{\"results\": []}", true),
            ("{\"results\": [{\"title\": \"a\"}]}", true),
            ("{\"results\": [\"a\"]}", false),
            ("{\"results\": null, \"t\": null}", true),
            ("{\"error\": \"no\"}", false),
            (page, false),
            ("no JSON", false),
        ] {
            assert_eq!(is_expected(&results, answer), expected, "{answer}");
        }
        let list = [form(Some(""), "{/id}")];
        assert!(!is_expected(&list, page) && is_expected(&list, "[]"));
        let answer = shown(&list, "[{\"id\": 1}, {\"id\": 2}]");
        assert_eq!(answer.as_deref(), Some("1\n2"));
    }
}
