//! People of the household: what they may do, when two names are the same, and who sees a thing.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::composed::{composed, without_accents};
use crate::language::Said;
use crate::visible::is_hidden;

/// What an actor may do. Each role includes the ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UserRole {
    /// May read.
    Viewer,
    /// May also chat.
    User,
    /// May also configure, decide approvals and retry deliveries.
    Admin,
    /// Whoever runs commands on the machine itself. No user, session, token or relay has
    /// this role: only a connection over `hearth.sock` with the secret of this start does.
    Owner,
}

impl UserRole {
    /// The roles that a user or a token may have, lowest first.
    pub const ALL: [UserRole; 3] = [UserRole::Viewer, UserRole::User, UserRole::Admin];

    /// Its word in columns, on the wire and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            UserRole::Viewer => "viewer",
            UserRole::User => "user",
            UserRole::Admin => "admin",
            UserRole::Owner => "owner",
        }
    }

    /// The role of a word, if a user or a token may have it.
    pub fn parse(word: &str) -> Option<UserRole> {
        UserRole::ALL.into_iter().find(|role| role.as_str() == word)
    }
}

/// The form of a user's name that is compared: names that differ only in case are
/// the same name.
pub fn folded(name: &str) -> String {
    name.to_lowercase()
}

/// What a name looks like: two that a reader takes for each other look the same. It knows the
/// letters that other scripts share with Latin, and those that Latin has twice.
pub fn look(name: &str) -> String {
    let seen = name.chars().map(|letter| match letter {
        'I' => 'l',
        letter => letter,
    });
    let letters = folded(&seen.collect::<String>());
    let letters = letters.chars().filter(|letter| *letter != '\u{307}');
    let looks = letters.map(|letter| match letter {
        '\u{3b1}' | '\u{430}' => 'a',
        '\u{441}' => 'c',
        '\u{501}' => 'd',
        '\u{435}' => 'e',
        '\u{4bb}' => 'h',
        '\u{131}' | '\u{3b9}' | '\u{456}' => 'i',
        '\u{237}' | '\u{3f3}' | '\u{458}' => 'j',
        '1' | '\u{4cf}' => 'l',
        '0' | '\u{3bf}' | '\u{43e}' | '\u{585}' => 'o',
        '\u{3c1}' | '\u{440}' => 'p',
        '\u{51b}' => 'q',
        '\u{455}' => 's',
        '\u{3c5}' | '\u{57d}' => 'u',
        '\u{3bd}' | '\u{475}' => 'v',
        '\u{51d}' => 'w',
        '\u{3c7}' | '\u{445}' => 'x',
        '\u{443}' => 'y',
        letter => letter,
    });
    looks.collect()
}

/// What a name looks like where its spaces and punctuation are not looked at, nor whether its
/// letters are wide. One of nothing else stays as it is.
pub fn plain_look(name: &str) -> String {
    let narrow = name.chars().map(|letter| match u32::from(letter) {
        code @ 0xFF01..=0xFF5E => char::from_u32(code - 0xFEE0).unwrap_or(letter),
        _ => letter,
    });
    let is_punctuation = |letter: char| {
        letter.is_whitespace()
            || letter.is_ascii_punctuation()
            || matches!(letter, '\u{a1}'..='\u{bf}' | '\u{2010}'..='\u{205e}' | '\u{3001}'..='\u{303f}')
    };
    let letters: String = narrow.filter(|letter| !is_punctuation(*letter)).collect();
    look(if letters.is_empty() { name } else { &letters })
}

/// Most characters of a user's name.
pub const NAME_CHARACTERS: usize = 64;

/// Whether a new user may have this name: letters and digits of one script, and `-`, `_` and
/// `.` behind the first of them, so that no two names look the same and nothing in them hides.
/// An accented letter must be one character ([`composed`]).
pub fn is_user_name(name: &str) -> bool {
    let mut letters = name.chars().filter(|letter| !"-_.".contains(*letter));
    let mut scripts = letters
        .by_ref()
        .filter(|letter| !letter.is_ascii_digit())
        .map(script);
    let is_of_one = match scripts.next() {
        None => true,
        Some(None) => false,
        Some(first) => scripts.all(|other| other == first),
    };
    (1..=NAME_CHARACTERS).contains(&name.chars().count())
        && !name.starts_with(['-', '_', '.'])
        && !name.ends_with('.')
        && reserved_name(name).is_none()
        && is_of_one
        && composed(name) == name
}

/// What nobody is called: words of audiences and roles, and what stands for the assistant, the
/// server, or nobody in particular.
const RESERVED_NAMES: [&str; 15] = [
    "owner",
    "household",
    "private",
    "null",
    "Hearth",
    "assistant",
    "the assistant",
    "system",
    "everybody",
    "everyone",
    "somebody",
    "someone",
    "nobody",
    "anybody",
    "the household",
];

/// What nobody is called that a reader takes this name for, if any; accents do not tell them
/// apart.
pub fn reserved_name(name: &str) -> Option<&'static str> {
    let looks = plain_look(&without_accents(name));
    let mut reserved = RESERVED_NAMES.into_iter();
    reserved.find(|reserved| plain_look(reserved) == looks)
}

/// Why people may not be called so, if they may not. A display name is in any script, with
/// spaces between words, and nothing in it hides, or passes for somebody or something else.
pub fn refused_display_name(name: &str) -> Option<Said> {
    let may_be = |letter: char| letter == ' ' || !is_hidden(letter);
    if !(1..=NAME_CHARACTERS).contains(&name.chars().count()) {
        let most = NAME_CHARACTERS.to_string();
        return Some(Said::of("error.called.length", &[("most", &most)]));
    }
    if !name.chars().all(may_be) || name.trim() != name {
        return Some(Said::of("error.called.hidden", &[]));
    }
    if let Some(reserved) = reserved_name(name) {
        return Some(Said::of("error.called.reserved", &[("name", reserved)]));
    }
    (name.contains(" by webhook ")).then(|| Said::of("error.called.webhook", &[]))
}

/// A number for the script of a letter or digit, by its place in Unicode: most scripts have 128
/// places of their own. None for what is neither, and for other forms of such letters.
fn script(letter: char) -> Option<u32> {
    let code = u32::from(letter);
    let is_mark = matches!(code, 0xE47..=0xE4E)
        // What joins consonants, in the scripts of India.
        || (0x900..0xD80).contains(&code) && code & 0x7F == 0x4D;
    let is_other_form = is_hidden(letter)
        || matches!(code,
            0xAA | 0xB5 | 0xBA | 0x2B0..=0x36F | 0x1100..=0x11FF | 0x1D00..=0x1DFF
            | 0x1F00..=0x2BFF | 0x3130..=0x318F | 0xF900..);
    ((letter.is_alphanumeric() || is_mark) && !is_other_form).then_some(match code {
        // Latin, with what Vietnamese needs.
        0..=0x24F | 0x1E00..=0x1EFF => 0,
        // Cyrillic, Armenian, Arabic, Ethiopic.
        0x400..=0x52F => 0x400,
        0x530..=0x58F => 0x530,
        0x600..=0x77F => 0x600,
        0x1200..=0x139F => 0x1200,
        // What Chinese and Japanese are written with; Hangul.
        0x3005..=0x9FFF => 0x3005,
        0xAC00..=0xD7A3 => 0xAC00,
        other => other & !0x7F,
    })
}

/// How people and the model are shown the name under which the caller of a webhook account
/// speaks: it may be anybody's. A name of that form stays as it is.
pub fn by_webhook(name: &str, account: &str) -> String {
    let end = format!(" by webhook {account}");
    let name = name.strip_suffix(&end).unwrap_or(name);
    format!("{name}{end}")
}

/// Who sees a thing, as people write it: `"private"`, `"household"`, or a list of
/// names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Audience {
    /// Its owner.
    Private,
    /// Everybody with role user or admin.
    Household,
    /// Its owner and these people, guests too. The owner is not among them.
    People(Vec<String>),
}

impl Serialize for Audience {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Audience::Private => serializer.serialize_str("private"),
            Audience::Household => serializer.serialize_str("household"),
            Audience::People(names) => serializer.collect_seq(names),
        }
    }
}

impl<'de> Deserialize<'de> for Audience {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Audience, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Word(String),
            Names(Vec<String>),
        }
        match Written::deserialize(deserializer)? {
            Written::Word(word) if word == "private" => Ok(Audience::Private),
            Written::Word(word) if word == "household" => Ok(Audience::Household),
            Written::Word(_) => Err(D::Error::custom("neither \"private\" nor \"household\"")),
            // Its owner sees a thing in any case.
            Written::Names(names) if names.is_empty() => Ok(Audience::Private),
            Written::Names(names) => Ok(Audience::People(names)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_s_name_is_letters_and_digits_of_one_script() {
        let table = "
            ada 7 j\u{fc}rgen home-assistant ann.m_2 \u{421}\u{430}\u{448}\u{430}
            \u{5d3}\u{5d5}\u{5d3} \u{645}\u{631}\u{64a}\u{645} \u{3b1}\u{3bd}\u{3bd}\u{3b1}
            \u{915}\u{943}\u{937}\u{94d}\u{923} \u{e19}\u{e49}\u{e33} \u{82b1}\u{3053}\u{30a2}
            \u{bbfc}\u{c9c0} Nguy\u{1ec5}n
        ";
        for name in table.split_whitespace() {
            assert!(is_user_name(name), "{name:?}");
        }
        for name in [
            "",
            "ada lovelace",
            "ada@example.org",
            "-ada",
            ".",
            "ada.",
            // Words of audiences and roles.
            "owner",
            "Household",
            "private",
            "null",
            // Those who speak in prompts, exports and pages.
            "assistant",
            "System",
            "HEARTH",
            "h\u{e9}arth",
            "\u{e4}ss\u{ed}stant",
            "sys.tem",
            "hearth-",
            "ada\n",
            "\u{1b}[2J",
            // Of another script: Cyrillic, Greek, and letters for how words sound.
            "\u{430}da",
            "ad\u{3b1}",
            "\u{251}da",
            // What is not seen, or turns the others round.
            "a\u{200b}da",
            "ada\u{202e}",
            "\u{115f}\u{1100}",
            // Other forms of the same letters.
            "\u{ff41}da",
            "\u{212a}im",
            "\u{1d41a}da",
            "ju\u{308}rgen",
        ] {
            assert!(!is_user_name(name), "{name:?}");
        }
        assert!(is_user_name(&"x".repeat(NAME_CHARACTERS)));
        assert!(!is_user_name(&"x".repeat(NAME_CHARACTERS + 1)));
    }

    #[test]
    fn names_that_a_reader_takes_for_each_other_look_the_same() {
        for (name, other) in [
            ("admin", "adm\u{131}n"),
            ("Ali", "A1i"),
            ("Ali", "AIi"),
            ("otto", "0tt0"),
            ("\u{130}lker", "ilker"),
            ("caxapo", "\u{441}\u{430}\u{445}\u{430}\u{440}\u{43e}"),
        ] {
            assert_eq!(look(name), look(other));
        }
        for (name, other) in [
            ("anna", "anne"),
            ("j\u{fc}rgen", "jurgen"),
            ("ann.m", "ann_m"),
        ] {
            assert_ne!(look(name), look(other));
        }
    }

    #[test]
    fn people_are_called_in_any_script() {
        for name in [
            "Oma Trude",
            "李雷",
            "Анна-Мария",
            "समीर",
            "Zoë 2",
            "O'Neil",
            "🐸",
        ] {
            assert_eq!(refused_display_name(name), None, "{name:?}");
        }
        for name in [
            "",
            " ",
            " Ann",
            "Ann ",
            "Ann\n",
            "Ann\u{202e}",
            "\u{200b}",
            "a\u{200b}b",
            "owner",
            "Household",
            "Hearth",
            "H e a r t h",
            "\u{ff28}\u{ff45}\u{ff41}\u{ff52}\u{ff54}\u{ff48}",
            "Every-body",
            "Ass\u{ed}stant",
            "The Assistant.",
            "admin by webhook door",
            "\u{1b}[2J",
        ] {
            assert!(refused_display_name(name).is_some(), "{name:?}");
        }
        assert_eq!(refused_display_name(&"李".repeat(NAME_CHARACTERS)), None);
        assert!(refused_display_name(&"李".repeat(NAME_CHARACTERS + 1)).is_some());
    }

    #[test]
    fn an_audience_is_read_as_it_is_written() {
        for (written, expected) in [
            ("\"private\"", Some(Audience::Private)),
            ("\"household\"", Some(Audience::Household)),
            ("[\"ada\"]", Some(Audience::People(vec!["ada".to_owned()]))),
            ("\"ada\"", None),
            ("[1]", None),
            ("null", None),
        ] {
            let read = serde_json::from_str::<Audience>(written).ok();
            assert_eq!(read, expected, "{written}");
            if let Some(audience) = read {
                assert_eq!(serde_json::to_string(&audience).unwrap(), written);
            }
        }
        assert_eq!(
            serde_json::from_str::<Audience>("[]").unwrap(),
            Audience::Private
        );
    }
}
