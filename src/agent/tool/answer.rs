//! What a tool of the configuration shows of an answer: its JSON or XML in the form that the
//! settings give it.

use serde_json::Value;

use super::xml;
use config::AnswerForm;

/// Most bytes of one item.
const ITEM_BYTES: usize = 64 * 1024;

/// The answer in the first form whose list is there; none where the answer has no such list.
pub(super) fn shown(forms: &[AnswerForm], body: &str) -> Option<String> {
    let document = match serde_json::from_str(body) {
        Ok(document) => document,
        Err(_) => xml::document(body)?,
    };
    forms.iter().find_map(|form| in_form(form, &document))
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
        Value::Array(items) => items.as_slice(),
        one => std::slice::from_ref(one),
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
        let list = [form(Some(""), "{/id}")];
        let answer = shown(&list, "[{\"id\": 1}, {\"id\": 2}]");
        assert_eq!(answer.as_deref(), Some("1\n2"));
    }
}
