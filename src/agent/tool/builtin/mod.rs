//! The tools that every household has. Their descriptions are short, since
//! all of them go with every request to a model.

mod clock;
mod conversations;
mod function;
mod memory;
mod schedule;

use std::sync::Arc;

use super::definition::Tool;

/// All built-in tools, in the order in which a model sees them.
pub(super) fn all() -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(clock::current_time()),
        Arc::new(memory::remember()),
        Arc::new(memory::recall()),
        Arc::new(memory::forget()),
        Arc::new(conversations::search()),
        Arc::new(schedule::schedule()),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_specs_are_small() {
        let request: Vec<Value> = all()
            .iter()
            .map(|tool| {
                let spec = tool.spec();
                json!({"type": "function", "function": {
                    "name": spec.name,
                    "description": spec.description,
                    "parameters": *spec.parameters,
                }})
            })
            .collect();
        let size = Value::Array(request).to_string().len();
        assert!(size < 2048, "{size} bytes of tools in every request");
    }

    #[test]
    fn only_readers_are_read_only() {
        let readers: Vec<String> = all()
            .iter()
            .filter(|tool| tool.definition().is_read_only)
            .map(|tool| tool.spec().name.clone())
            .collect();
        assert_eq!(readers, ["current_time", "recall", "search_conversations"]);
    }
}
