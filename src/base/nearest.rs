//! Suggestions for mistyped words.

/// Longest part of a mistyped word that is compared, in characters.
const COMPARED_CHARACTERS: usize = 64;

/// The known word nearest to a mistyped one, whatever their case, if one is near
/// enough: a third of its characters may differ, at most three.
pub fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let word = word.to_lowercase();
    known
        .into_iter()
        .map(|candidate| (distance(&word, &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= (candidate.chars().count() / 3).clamp(1, 3))
        .min()
        .map(|(_, nearest)| nearest)
}

/// Edits (insert, remove, replace, swap neighbours) from one word to the other
/// (optimal string alignment).
fn distance(from: &str, to: &str) -> usize {
    let from: Vec<char> = from.chars().take(COMPARED_CHARACTERS).collect();
    let to: Vec<char> = to.chars().take(COMPARED_CHARACTERS).collect();
    let mut rows: Vec<Vec<usize>> = vec![(0..=to.len()).collect()];
    for i in 1..=from.len() {
        let mut row = vec![i];
        for j in 1..=to.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(from[i - 1] != to[j - 1]);
            let mut least = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[from.len()][to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_suggested_and_a_far_one_is_not() {
        let known = "serve chat user token config deliveries model permission_mode port";
        for (word, near) in [
            ("sevre", Some("serve")),
            ("server", Some("serve")),
            ("cofnig", Some("config")),
            ("delivery", Some("deliveries")),
            ("tokens", Some("token")),
            ("chta", Some("chat")),
            ("permision_mode", Some("permission_mode")),
            ("Modle", Some("model")),
            ("prot", Some("port")),
            ("teapot", None),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known.split(' ')), near, "{word:?}");
        }
    }
}
