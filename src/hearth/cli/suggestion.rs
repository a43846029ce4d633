//! Suggestions for mistyped commands and options.

/// The known word nearest to a mistyped one, if one is near enough.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .min_by_key(|&(distance, _)| distance)
        .filter(|&(distance, candidate)| distance <= candidate.len().max(3) / 3)
        .map(|(_, candidate)| candidate)
}

/// Edit distance in which swapping two neighbours counts as one edit (optimal
/// string alignment).
fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().take(64).collect();
    let right: Vec<char> = right.chars().collect();
    let mut rows: Vec<Vec<usize>> = vec![(0..=right.len()).collect()];
    for i in 1..=left.len() {
        let mut row = vec![i];
        for j in 1..=right.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(left[i - 1] != right[j - 1]);
            let mut least = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[left.len()][right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_suggested_and_a_far_one_is_not() {
        let known = ["serve", "chat", "user", "token", "config", "deliveries"];
        for (word, near) in [
            ("sevre", Some("serve")),
            ("server", Some("serve")),
            ("cofnig", Some("config")),
            ("delivery", Some("deliveries")),
            ("tokens", Some("token")),
            ("chta", Some("chat")),
            ("teapot", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known), near, "{word:?}");
        }
    }
}
