//! Text in which an accented letter is one character, however it was typed: keyboards, file
//! names and voice put some together from a letter and an accent that follows it.

use crate::visible::without_hidden;

/// Accents (Unicode, Combining Diacritical Marks), each with the Latin, Greek and Cyrillic
/// letters that it goes with, and what they become (UnicodeData.txt 16.0, canonical
/// decompositions). White space does not count.
const ACCENTS: [(char, &str); 17] = [
    (
        '\u{300}',
        "AÀEÈIÌOÒUÙaàeèiìoòuùÜǛüǜNǸnǹЕЀИЍеѐиѝĒḔēḕŌṐōṑWẀwẁÂẦâầĂẰăằÊỀêề \
        ÔỒôồƠỜơờƯỪưừYỲyỳ",
    ),
    (
        '\u{301}',
        "AÁEÉIÍOÓUÚYÝaáeéiíoóuúyýCĆcćLĹlĺNŃnńRŔrŕSŚsśZŹzźÜǗüǘGǴgǵÅǺåǻ \
        ÆǼæǽØǾøǿ¨΅ΑΆΕΈΗΉΙΊΟΌΥΎΩΏϊΐαάεέηήιίϋΰοόυύωώϒϓГЃКЌгѓкќÇḈçḉĒḖēḗ \
        ÏḮïḯKḰkḱMḾmḿÕṌõṍŌṒōṓPṔpṕŨṸũṹWẂwẃÂẤâấĂẮăắÊẾêếÔỐôốƠỚơớƯỨưứ",
    ),
    (
        '\u{302}',
        "AÂEÊIÎOÔUÛaâeêiîoôuûCĈcĉGĜgĝHĤhĥJĴjĵSŜsŝWŴwŵYŶyŷZẐzẑẠẬạậẸỆẹệ \
        ỌỘọộ",
    ),
    (
        '\u{303}',
        "AÃNÑOÕaãnñoõIĨiĩUŨuũVṼvṽÂẪâẫĂẴăẵEẼeẽÊỄêễÔỖôỗƠỠơỡƯỮưữYỸyỹ",
    ),
    (
        '\u{304}',
        "AĀaāEĒeēIĪiīOŌoōUŪuūÜǕüǖÄǞäǟȦǠȧǡÆǢæǣǪǬǫǭÖȪöȫÕȬõȭȮȰȯȱYȲyȳИӢиӣ \
        УӮуӯGḠgḡḶḸḷḹṚṜṛṝ",
    ),
    (
        '\u{306}',
        "AĂaăEĔeĕGĞgğIĬiĭOŎoŏUŬuŭУЎИЙийуўЖӁжӂАӐаӑЕӖеӗȨḜȩḝẠẶạặ",
    ),
    (
        '\u{307}',
        "CĊcċEĖeėGĠgġIİZŻzżAȦaȧOȮoȯBḂbḃDḊdḋFḞfḟHḢhḣMṀmṁNṄnṅPṖpṗRṘrṙSṠ \
        sṡŚṤśṥŠṦšṧṢṨṣṩTṪtṫWẆwẇXẊxẋYẎyẏſẛ",
    ),
    (
        '\u{308}',
        "AÄEËIÏOÖUÜaäeëiïoöuüyÿYŸΙΪΥΫιϊυϋϒϔЕЁІЇеёіїАӒаӓӘӚәӛЖӜжӝЗӞзӟИӤ \
        иӥОӦоӧӨӪөӫЭӬэӭУӰуӱЧӴчӵЫӸыӹHḦhḧÕṎõṏŪṺūṻWẄwẅXẌxẍtẗ",
    ),
    (
        '\u{309}',
        "AẢaảÂẨâẩĂẲăẳEẺeẻÊỂêểIỈiỉOỎoỏÔỔôổƠỞơởUỦuủƯỬưửYỶyỷ",
    ),
    ('\u{30a}', "AÅaåUŮuůwẘyẙ"),
    ('\u{30b}', "OŐoőUŰuűУӲуӳ"),
    (
        '\u{30c}',
        "CČcčDĎdďEĚeěLĽlľNŇnňRŘrřSŠsšTŤtťZŽzžAǍaǎIǏiǐOǑoǒUǓuǔÜǙüǚGǦgǧ \
        KǨkǩƷǮʒǯjǰHȞhȟ",
    ),
    ('\u{31b}', "OƠoơUƯuư"),
    (
        '\u{323}',
        "BḄbḅDḌdḍHḤhḥKḲkḳLḶlḷMṂmṃNṆnṇRṚrṛSṢsṣTṬtṭVṾvṿWẈwẉZẒzẓAẠaạEẸeẹ \
        IỊiịOỌoọƠỢơợUỤuụƯỰưựYỴyỵ",
    ),
    ('\u{326}', "SȘsșTȚtț"),
    ('\u{327}', "CÇcçGĢgģKĶkķLĻlļNŅnņRŖrŗSŞsşTŢtţEȨeȩDḐdḑHḨhḩ"),
    ('\u{328}', "AĄaąEĘeęIĮiįUŲuųOǪoǫ"),
];

/// A text on one line, in which what looks the same is the same.
pub fn line(text: &str) -> String {
    let seen = |word: &str| composed(&without_hidden(word));
    let words = text.split_whitespace().map(seen);
    let words: Vec<String> = words.filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

/// The text with letters and the accents that follow them put together, as in Unicode's form C:
/// Latin, Greek and Cyrillic letters, kana and Hangul.
pub fn composed(text: &str) -> String {
    let mut composed = String::with_capacity(text.len());
    for letter in text.chars() {
        let pair = composed.chars().next_back();
        match pair.and_then(|before| together(before, letter)) {
            Some(one) => {
                composed.pop();
                composed.push(one);
            }
            None => composed.push(letter),
        }
    }
    composed
}

/// The text without the accents that [`composed`] knows.
pub fn without_accents(text: &str) -> String {
    let mut letters: Vec<char> = composed(text).chars().collect();
    for letter in &mut letters {
        while let Some(plain) = plain(*letter) {
            *letter = plain;
        }
    }
    letters.into_iter().collect()
}

/// The letter of one with an accent.
fn plain(accented: char) -> Option<char> {
    ACCENTS.iter().find_map(|(_, pairs)| {
        let mut letters = pairs.chars().filter(|one| !one.is_whitespace());
        while let (Some(plain), Some(known)) = (letters.next(), letters.next()) {
            if known == accented {
                return Some(plain);
            }
        }
        None
    })
}

/// What a letter and what follows it become.
fn together(letter: char, mark: char) -> Option<char> {
    let code = u32::from(letter);
    let after = |more: u32| char::from_u32(code + more);
    match u32::from(mark) {
        0x300..=0x328 => {
            let (_, pairs) = ACCENTS.iter().find(|(accent, _)| *accent == mark)?;
            let mut letters = pairs.chars().filter(|one| !one.is_whitespace());
            while let (Some(plain), accented) = (letters.next(), letters.next()) {
                if plain == letter {
                    return accented;
                }
            }
            None
        }
        // Voiced kana come after the others; katakana are in the order of hiragana.
        voice @ (0x3099 | 0x309A) => match (code.wrapping_sub(0x3041) % 0x60, voice) {
            _ if !(0x3041..=0x30FF).contains(&code) => None,
            (0x0A..=0x20, 0x3099) if code % 2 == 1 => after(1),
            (0x23 | 0x25 | 0x27, 0x3099) => after(1),
            (kana @ 0x2E..=0x3A, _) if (kana - 0x2E) % 3 == 0 => after(voice - 0x3098),
            (0x05, 0x3099) => after(0x4E),
            _ => None,
        },
        // Hangul: a consonant and a vowel, and then perhaps another consonant (The Unicode
        // Standard 16.0, 3.12).
        vowel @ 0x1161..=0x1175 if (0x1100..=0x1112).contains(&code) => {
            char::from_u32(0xAC00 + ((code - 0x1100) * 21 + vowel - 0x1161) * 28)
        }
        end @ 0x11A8..=0x11C2 if (0xAC00..=0xD7A3).contains(&code) && (code - 0xAC00) % 28 == 0 => {
            after(end - 0x11A7)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_and_their_accents_become_one() {
        for (typed, one) in [
            ("", ""),
            ("a\u{308}pfel", "\u{e4}pfel"),
            ("\u{e4}pfel", "\u{e4}pfel"),
            (
                "cre\u{300}me bru\u{302}le\u{301}e",
                "cr\u{e8}me br\u{fb}l\u{e9}e",
            ),
            ("pho\u{31b}\u{309}", "ph\u{1edf}"),
            ("\u{43c}\u{438}\u{306}", "\u{43c}\u{439}"),
            ("\u{3b1}\u{301}", "\u{3ac}"),
            (
                "\u{304b}\u{3099}\u{306f}\u{309a}\u{3064}\u{3099}",
                "\u{304c}\u{3071}\u{3065}",
            ),
            (
                "\u{30ab}\u{3099}\u{30db}\u{309a}\u{30a6}\u{3099}",
                "\u{30ac}\u{30dd}\u{30f4}",
            ),
            ("\u{1112}\u{1161}\u{11ab}", "\u{d55c}"),
            // Nothing is there to go with.
            ("\u{301}x\u{301}3\u{301}", "\u{301}x\u{301}3\u{301}"),
            ("\u{3042}\u{3099}", "\u{3042}\u{3099}"),
        ] {
            assert_eq!(composed(typed), one, "{typed:?}");
            assert_eq!(composed(one), one, "{one:?}");
        }
    }
}
