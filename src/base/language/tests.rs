use super::{LANGUAGES, Said, Words, accepted, capital, code_of};
use crate::testing::rows;

const WORDS: Words = Words(
    "files.one\t{count} file\nfiles.other\t{count} files\nlanguage.one\t0 1\nlist.and\t{before} et {last}\nopen\t{ x\nwrite\twrite {path} {path}",
);

#[test]
fn fields_are_filled_once_and_a_key_without_words_is_shown_as_it_is() {
    assert_eq!(
        WORDS.say("write", &[("path", "{path}")]),
        "write {path} {path}"
    );
    assert_eq!(WORDS.say("write", &[]), "write path path");
    assert_eq!(WORDS.word("open"), "{ x");
    assert_eq!(WORDS.word("no.such"), "no.such");
    // What a language has not, English says.
    let english = Words::ENGLISH.word("answer.deny");
    assert_eq!(WORDS.word("answer.deny"), english);
}

#[test]
fn numbers_have_their_form_and_lists_their_end() {
    for [count, said] in rows("0 | 0 file\n1 | 1 file\n2 | 2 files") {
        assert_eq!(WORDS.count("files", count), said);
    }
    let items = ["a", "b", "c"].map(str::to_owned);
    assert_eq!(WORDS.list(&items), "a, b et c");
    assert_eq!(WORDS.list(&items[..1]), "a");
    assert_eq!(WORDS.list(&[]), "");
    assert_eq!(capital("öffnen"), "Öffnen");
}

#[test]
fn a_tag_names_a_language() {
    for [tag, code] in rows("de | de\nde-AT | de\nFR_ca | fr\nen | en\npl | none\nd | none") {
        assert_eq!(code_of(tag).unwrap_or("none"), code, "{tag}");
    }
    for [field, code] in rows("pl, fr-CA;q=0.9, en;q=0.5 | fr\n*, pl | en\nEN-gb | en") {
        assert_eq!(accepted(field), code, "{field}");
    }
    for code in LANGUAGES {
        let words = Words::of(code);
        assert!(words.find("answer.deny").is_some(), "{code}");
        assert_eq!(words == Words::ENGLISH, code == "en", "{code}");
    }
    assert_eq!(Words::of("pl"), Words::ENGLISH);
    assert_eq!(Words::of("fr").count("when.minutes", 0), "0 minute");
}

#[test]
fn every_line_has_a_key_of_its_own_and_a_text() {
    let mut keys: Vec<&str> = Words::ENGLISH.keys().collect();
    for key in &keys {
        let text = Words::ENGLISH.find(key).unwrap_or_default();
        assert!(!text.is_empty() && !text.contains('\t'), "{key}");
        assert_eq!(
            text.matches('{').count(),
            text.matches('}').count(),
            "{key}"
        );
    }
    let count = keys.len();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), count, "a key comes twice");
}

#[test]
fn a_sentence_is_stored_for_every_language_and_old_ones_are_read() {
    const DUTCH: Words = Words::from_lines(
        "broke\t{server} is kapot ({status})\nnone\ter is geen {what} {id}\nthing.list\tlijst",
    );
    let said = Said::of("broke", &[("status", "{500}")]).with("server", "De [\"x\"] server");
    let stored = said.to_stored();
    assert_eq!(Said::from_stored(&stored), said);
    assert_eq!(said.in_words(DUTCH), "De [\"x\"] server is kapot ({500})");
    // A program reads the id.
    let none = Said::of("none", &[("what", "list"), ("id", "list_1")]);
    let none = Said::from_stored(&none.to_stored());
    assert_eq!(none.in_words(DUTCH), "er is geen lijst");
    for plain in ["it broke", "[it] broke", "\"it\"", "[]", "", "[\"a\", 1]"] {
        assert_eq!(Said::from_stored(plain), Said::from(plain));
        assert_eq!(Said::from(plain).to_stored(), plain);
    }
}
