//! The words that people read: in every language none is missing, none is left over, none
//! has other fields than in English, and none is left in the code of the page.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use base::language::Words;

/// What a key begins with that code puts together; the tests of that code look for them.
const MADE: [&str; 10] = [
    "tool.",
    "about.",
    "argument.",
    "outside.",
    "offline.example.",
    "weekday.",
    "month.",
    "error.model.",
    "thing.",
    "catalogue.",
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

/// The other languages.
const LANGUAGES: [&str; 5] = ["de", "es", "fr", "it", "nl"];
/// Scripts of the page that hold words of programming languages and of mathematics alone, and
/// the one that has the words said.
const OF_NOTHING: [&str; 3] = ["highlight.js", "math.js", "words.js"];
/// What stays in the code of the page: names, keys of the keyboard, lines to type.
const NAMES: [&str; 20] = [
    "Anthropic",
    "Bearer ",
    "Cerebras",
    "End",
    "Enter",
    "Escape",
    "Files",
    "Fireworks",
    "Gemini",
    "Gotify",
    "Groq",
    "Hearth",
    "Hearth: ",
    "Home",
    "LM Studio",
    "Mistral",
    "Ollama",
    "Telegram",
    "Together",
    "noopener noreferrer nofollow",
];

fn folder(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// All words of a language by their keys, those of the page too.
fn words_of(language: &str) -> BTreeMap<String, String> {
    let path = folder("src/base/language").join(format!("{language}.tsv"));
    let text = fs::read_to_string(path).unwrap();
    let mut words = BTreeMap::new();
    for line in text.lines() {
        let (key, text) = line.split_once('\t').unwrap();
        let text = text.to_owned();
        assert!(
            !text.trim().is_empty() && !text.contains('\t'),
            "{language}: {key}"
        );
        let earlier = words.insert(key.to_owned(), text);
        assert_eq!(earlier, None, "{language}: {key} comes twice");
    }
    words
}

/// The fields of a text, as often as they come.
fn fields(text: &str) -> Vec<&str> {
    let parts = text.split('{').skip(1);
    let mut fields: Vec<&str> = parts.map(|part| part.split_once('}').unwrap().0).collect();
    fields.sort_unstable();
    fields
}

#[test]
fn every_language_has_the_words_of_english_with_the_same_fields() {
    let english = words_of("en");
    let mut wrong = Vec::new();
    for language in LANGUAGES {
        let words = words_of(language);
        for key in words.keys().filter(|key| !english.contains_key(*key)) {
            wrong.push(format!("{language}: English has no {key}"));
        }
        for (key, text) in &english {
            let Some(said) = words.get(key) else {
                wrong.push(format!("{language}: {key} is missing"));
                continue;
            };
            // One of something may be said without its number.
            let mut expected = fields(text);
            if key.ends_with(".one") && fields(said) != expected {
                expected.retain(|field| *field != "count");
            }
            if fields(said) != expected {
                wrong.push(format!("{language}: {key} has other fields: {said}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The scripts of the page without their comments, by their names.
fn scripts() -> BTreeMap<String, String> {
    let mut scripts = BTreeMap::new();
    for entry in fs::read_dir(folder("src/hearth/web/page")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if name.ends_with(".js") && !OF_NOTHING.contains(&name.as_str()) {
            let text = fs::read_to_string(path).unwrap();
            let is_comment = |line: &str| line.starts_with("//") || line.starts_with(['*', '/']);
            let lines = text.lines().filter(|line| !is_comment(line.trim_start()));
            let code = lines.map(|line| line.split(" // ").next().unwrap());
            scripts.insert(name, code.collect::<Vec<_>>().join("\n"));
        }
    }
    scripts
}

/// The texts between quotation marks of a line, and those between backticks without their
/// values.
fn literals(line: &str) -> Vec<&str> {
    let quoted = line.split('"').skip(1).step_by(2);
    let templates = line.split('`').skip(1).step_by(2);
    let around = templates.flat_map(|text| {
        let parts = text.split("${").enumerate();
        parts.map(|(at, part)| match part.split_once('}') {
            Some((_, after)) if at > 0 => after,
            _ => part,
        })
    });
    quoted.chain(around).collect()
}

/// Whether a person would read this: several words, or one that begins with a capital.
fn is_said(text: &str) -> bool {
    let words: Vec<&str> = text.split(' ').filter(|word| !word.is_empty()).collect();
    let is_word = |word: &&str| {
        let word = word.trim_matches(['.', ',', ';', ':', '…', '!', '?', '“', '”']);
        word.chars().count() > 1
            && word
                .chars()
                .all(|letter| letter.is_alphabetic() || letter == '’')
    };
    let is_capital = text.starts_with(char::is_uppercase)
        && !text.chars().skip(1).any(char::is_uppercase)
        && words.len() == 1
        && is_word(&words[0]);
    is_capital || words.windows(2).any(|pair| pair.iter().all(is_word))
}

#[test]
fn the_page_says_only_words_of_its_language() {
    let english = words_of("en");
    let build = fs::read_to_string(folder("src/hearth/build/words.rs")).unwrap();
    let first = build.split("const FIRST").nth(1).unwrap();
    let first = first
        .split_once("= [")
        .unwrap()
        .1
        .split_once(']')
        .unwrap()
        .0;
    let first: BTreeSet<&str> = first.split('"').skip(1).step_by(2).collect();
    let (mut used, mut made) = (BTreeSet::new(), BTreeSet::new());
    let mut wrong = Vec::new();
    for (name, code) in scripts() {
        let is_later = code.contains("from \"./more.js\"");
        for line in code.lines() {
            for (call, end) in [
                ("say(", ""),
                ("pieces(", ""),
                ("count(", ".other"),
                ("named(", "."),
            ] {
                for (place, _) in line.match_indices(call) {
                    let keys = argument(&line[place + call.len()..]);
                    let is_made = keys.contains('`') || call == "named(";
                    // Of a choice, `say(isOne ? "a" : "b")`, all of them.
                    for key in literals(keys).into_iter().filter(|key| key.contains('.')) {
                        let area = key.split('.').next().unwrap();
                        if !is_later && !first.contains(area) {
                            wrong.push(format!("{name}: {key} is not there yet: import more.js"));
                        }
                        let whole = format!("page.{key}{end}");
                        if is_made {
                            made.insert(whole);
                        } else if !english.contains_key(&whole) {
                            wrong.push(format!("{name}: there are no words for {whole}"));
                        }
                    }
                }
            }
            for text in literals(line) {
                used.insert(format!("page.{text}"));
                if is_said(text) && !NAMES.contains(&text) && !is_code(text) {
                    wrong.push(format!("{name} says {text:?}: write it into en.tsv"));
                }
            }
        }
    }
    for key in english.keys().filter(|key| key.starts_with("page.")) {
        let counted = key.strip_suffix(".one").or(key.strip_suffix(".other"));
        let is_used = used.contains(key) || counted.is_some_and(|key| used.contains(key));
        if !is_used && !made.iter().any(|beginning| key.starts_with(beginning)) {
            wrong.push(format!("nothing says {key} any more: remove it"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The first argument of a call.
fn argument(rest: &str) -> &str {
    let (mut depth, mut mark) = (0, None);
    for (at, letter) in rest.char_indices() {
        match (mark, letter) {
            (Some(open), _) if letter == open => mark = None,
            (Some(_), _) => {}
            (None, '"' | '`') => mark = Some(letter),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ',' | ')') if depth == 0 => return &rest[..at],
            (None, ')' | ']' | '}') => depth -= 1,
            _ => {}
        }
    }
    rest
}

/// Lines to type, selectors, classes and media queries.
fn is_code(text: &str) -> bool {
    let is_selector = text
        .split([' ', ','])
        .any(|word| ["button", "a", "li", "pre", "table", "(pointer:"].contains(&word));
    let is_class = ["message person ", "primary send", "box done"].contains(&text);
    text.starts_with("hearth ") || is_selector || is_class
}
