//! The words that people read: none is missing, none is left over.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use base::language::Words;

/// What a key begins with that code puts together; the tests of that code look for them.
const MADE: [&str; 7] = [
    "tool.",
    "about.",
    "argument.",
    "outside.",
    "weekday.",
    "month.",
    "error.model.",
];

/// The sources below a folder, without their tests.
fn sources(folder: &Path, texts: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            sources(&path, texts);
        } else if name.ends_with(".rs") && !path.ends_with("tests.rs") {
            texts.push(fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn no_word_is_missing_or_left_over() {
    let mut texts = Vec::new();
    sources(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        &mut texts,
    );
    let quoted: HashSet<&str> = texts.iter().flat_map(|text| text.split('"')).collect();
    for key in Words::ENGLISH.keys() {
        // What is counted is asked for by the beginning of its keys.
        let counted = key.strip_suffix(".one").or(key.strip_suffix(".other"));
        let is_used = |key: &str| quoted.contains(key);
        let is_made = MADE.iter().any(|beginning| key.starts_with(beginning));
        let is_action = key.starts_with("action.") && is_used("action.{name}");
        assert!(
            is_made || is_action || is_used(key) || counted.is_some_and(is_used),
            "nothing says {key:?} any more: remove it"
        );
    }
    for source in &texts {
        for call in [".say(\"", ".word(\"", ".count(\""] {
            for rest in source.split(call).skip(1) {
                let key = rest.split('"').next().unwrap();
                let is_known = |key: &str| Words::ENGLISH.find(key).is_some();
                assert!(
                    is_known(key)
                        || is_known(&format!("{key}.other"))
                        || !key.contains('.')
                        || key.contains(' '),
                    "there are no words for {key:?}: add them to src/base/language/en.tsv"
                );
            }
        }
    }
}
