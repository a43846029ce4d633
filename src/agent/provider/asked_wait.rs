//! How long a server asks to wait, where it says so in the body of an error.

use serde_json::Value;

/// What stands before the time.
const BEFORE: [&str; 4] = [
    "try again in ",
    "retry in ",
    "retry after ",
    "try again after ",
];

/// The seconds that an error asks to wait: in its words (Groq, OpenAI, Azure), or as Gemini's
/// `RetryInfo`.
pub fn asked_wait(message: &str, error: &Value) -> Option<f64> {
    let message = message.to_lowercase();
    let mut words = BEFORE.iter();
    let said = words.find_map(|before| seconds(message.split_once(before)?.1));
    let details = error.get("details").and_then(Value::as_array);
    let mut details = details.into_iter().flatten();
    let delay = details.find_map(|detail| seconds(detail.get("retryDelay")?.as_str()?));
    said.into_iter().chain(delay).reduce(f64::max)
}

/// The time at the beginning of a text: `1.98s`, `644ms`, `7m26.4s`, `26 seconds`.
fn seconds(text: &str) -> Option<f64> {
    let mut rest = text;
    let mut sum = None;
    loop {
        let is_number = |letter: char| letter.is_ascii_digit() || letter == '.';
        let end = rest.find(|letter| !is_number(letter)).unwrap_or(rest.len());
        let Ok(number) = rest[..end].parse::<f64>() else {
            return sum;
        };
        let behind = rest[end..].trim_start();
        let end = behind.find(|letter: char| !letter.is_ascii_alphabetic());
        let (unit, behind) = behind.split_at(end.unwrap_or(behind.len()));
        let length = match unit {
            "ms" | "milliseconds" => 0.001,
            "s" | "sec" | "second" | "seconds" => 1.0,
            "m" | "min" | "minute" | "minutes" => 60.0,
            "h" | "hour" | "hours" => 3600.0,
            "d" | "day" | "days" => 86400.0,
            _ => return sum,
        };
        sum = Some(sum.unwrap_or(0.0) + number * length);
        rest = behind;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_time_is_found_in_words_and_in_details() {
        for (message, expected) in [
            ("Please try again in 1.984s. Need more tokens?", Some(1.984)),
            ("Please try again in 644ms.", Some(0.644)),
            ("Please try again in 7m26.4s.", Some(446.4)),
            ("limit: 10\nPlease retry in 2.82s.", Some(2.82)),
            ("Please retry after 26 seconds.", Some(26.0)),
            ("Please try again in a minute", None),
            ("Please try again in 5", None),
            ("no", None),
        ] {
            assert_eq!(asked_wait(message, &Value::Null), expected, "{message}");
        }
        let info = json!({ "details": [{ "@type": "Help" }, { "retryDelay": "34s" }] });
        assert_eq!(asked_wait("no", &info), Some(34.0));
        assert_eq!(asked_wait("retry in 34.6s", &info), Some(34.6));
    }
}
