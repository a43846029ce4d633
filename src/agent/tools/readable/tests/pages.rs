//! The saved pages of tests/data: what must be found in them, and what must not.

use std::path::Path;

use serde::Deserialize;

use super::super::page;

#[derive(Deserialize)]
struct Expected {
    file: String,
    half: String,
    facts: Vec<String>,
    noise: Vec<String>,
}

/// In lower case, with white space collapsed.
fn comparable(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").to_lowercase()
}

#[test]
fn saved_pages_keep_their_facts_and_lose_their_noise() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/pages");
    let expected = std::fs::read_to_string(folder.join("expected.json")).unwrap();
    let pages: Vec<Expected> = serde_json::from_str(&expected).unwrap();
    assert!(pages.len() >= 16);
    for half in ["tuning", "held_out"] {
        let (mut facts, mut found, mut noise, mut heard) = (0, 0, 0, 0);
        for expected in pages.iter().filter(|page| page.half == half) {
            let html = std::fs::read_to_string(folder.join(&expected.file)).unwrap();
            let text = comparable(&page(&html).text);
            let has = |wanted: &&String| text.contains(&comparable(wanted));
            facts += expected.facts.len();
            found += expected.facts.iter().filter(has).count();
            noise += expected.noise.len();
            heard += expected.noise.iter().filter(has).count();
            if half == "tuning" {
                for fact in expected.facts.iter().filter(|fact| !has(fact)) {
                    println!("{}: lacks {fact:?}", expected.file);
                }
                for noise in expected.noise.iter().filter(has) {
                    println!("{}: has {noise:?}", expected.file);
                }
            }
        }
        println!("{half}: facts {found} of {facts}, noise {heard} of {noise}");
        assert!(
            found * 100 >= facts * 85,
            "{half}: {found} of {facts} facts"
        );
        assert!(
            heard * 100 <= noise * 25,
            "{half}: {heard} of {noise} noise"
        );
    }
}
