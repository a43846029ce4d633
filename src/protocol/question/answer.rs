//! Whether an answer is what was asked for.

use serde_json::{Map, Value};

use super::{Choice, Field, FieldKind, Format, Question};

impl Question {
    /// The answer as the server gets it: only what was asked for, and all that is required.
    ///
    /// # Errors
    /// What is wrong with which field, in words for the person.
    pub fn check(&self, content: &Map<String, Value>) -> Result<Map<String, Value>, String> {
        let is_known = |name: &&String| self.fields.iter().any(|field| field.name == **name);
        if let Some(name) = content.keys().find(|name| !is_known(name)) {
            return Err(format!("the question has no field {name:?}"));
        }
        let mut checked = Map::new();
        for field in &self.fields {
            match content.get(&field.name).filter(|value| !value.is_null()) {
                Some(value) => {
                    let value = field.check(value);
                    let value = value.map_err(|why| format!("{:?} {why}", field.label()))?;
                    checked.insert(field.name.clone(), value);
                }
                None if field.is_required => {
                    return Err(format!("{:?} is missing", field.label()));
                }
                None => {}
            }
        }
        Ok(checked)
    }
}

impl Field {
    /// The value as the server gets it.
    ///
    /// # Errors
    /// What it must be, as the end of a sentence.
    pub fn check(&self, value: &Value) -> Result<Value, String> {
        match &self.kind {
            FieldKind::Text {
                format,
                least,
                most,
            } => {
                let text = value.as_str().ok_or("must be text")?;
                let length = text.chars().count();
                if length < *least || length > *most {
                    return Err(match least {
                        0 => format!("may have at most {most} characters"),
                        _ => format!("must have {least} to {most} characters"),
                    });
                }
                match format {
                    Some(format) if !format.fits(text) => {
                        Err(format!("must be {}", format.described()))
                    }
                    _ => Ok(value.clone()),
                }
            }
            FieldKind::Number {
                is_whole,
                least,
                most,
            } => {
                let given = value.as_f64().filter(|given| given.is_finite());
                let given = given.ok_or("must be a number")?;
                if *is_whole && given.fract() != 0.0 {
                    return Err("must be a whole number".to_owned());
                }
                if let Some(least) = least.filter(|least| given < *least) {
                    return Err(format!("must be at least {least}"));
                }
                if let Some(most) = most.filter(|most| given > *most) {
                    return Err(format!("must be at most {most}"));
                }
                match *is_whole && !value.is_i64() && !value.is_u64() {
                    true => Ok(number(given)),
                    false => Ok(value.clone()),
                }
            }
            FieldKind::Boolean => match value.is_boolean() {
                true => Ok(value.clone()),
                false => Err("must be true or false".to_owned()),
            },
            FieldKind::Choice(options) => match is_option(options, value) {
                true => Ok(value.clone()),
                false => Err("must be one of its options".to_owned()),
            },
            FieldKind::Choices {
                options,
                least,
                most,
            } => {
                let chosen = value.as_array().ok_or("must be a list")?;
                let is_twice = |(at, one): (usize, &Value)| chosen[..at].contains(one);
                if !chosen.iter().all(|one| is_option(options, one))
                    || chosen.iter().enumerate().any(is_twice)
                {
                    return Err("must be among its options, each once".to_owned());
                }
                match (*least..=*most).contains(&chosen.len()) {
                    true => Ok(value.clone()),
                    false if least == most => Err(format!("needs {least} of its options")),
                    false => Err(format!("needs {least} to {most} of its options")),
                }
            }
        }
    }
}

fn is_option(options: &[Choice], value: &Value) -> bool {
    options
        .iter()
        .any(|option| value.as_str() == Some(&option.value))
}

/// A number without a fraction as an integer, as far as those are exact.
pub(super) fn number(number: f64) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match number.fract() == 0.0 && number.abs() < EXACT {
        true => Value::from(number as i64),
        false => Value::from(number),
    }
}

impl Format {
    fn described(self) -> &'static str {
        match self {
            Format::Email => "an e-mail address",
            Format::Uri => "an address such as https://example.org",
            Format::Date => "a date such as 2026-07-28",
            Format::DateTime => "a time such as 2026-07-28T12:00:00Z",
        }
    }

    fn fits(self, text: &str) -> bool {
        let is_plain = !text
            .chars()
            .any(|letter| letter.is_whitespace() || letter.is_control());
        match self {
            Format::Email => {
                let parts: Vec<&str> = text.split('@').collect();
                is_plain
                    && matches!(parts[..], [name, host] if !name.is_empty() && !host.is_empty())
            }
            Format::Uri => {
                let parts = text.split_once(':');
                let is_scheme = |name: &str| {
                    name.starts_with(|letter: char| letter.is_ascii_alphabetic())
                        && (name.bytes())
                            .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
                };
                is_plain
                    && parts.is_some_and(|(scheme, rest)| is_scheme(scheme) && !rest.is_empty())
            }
            Format::Date => is_date(text),
            Format::DateTime => match text.split_at_checked(10) {
                Some((date, rest)) => is_date(date) && is_time(rest),
                None => false,
            },
        }
    }
}

/// The numbers in a text that has them where the pattern has `0`.
fn numbers<const N: usize>(text: &str, pattern: &str) -> Option<[u32; N]> {
    let fits = |(one, wanted): (u8, u8)| match wanted {
        b'0' => one.is_ascii_digit(),
        wanted => one.eq_ignore_ascii_case(&wanted),
    };
    if text.len() != pattern.len() || !text.bytes().zip(pattern.bytes()).all(fits) {
        return None;
    }
    let parts = text.split(|letter: char| !letter.is_ascii_digit());
    let found: Vec<u32> = parts.filter_map(|part| part.parse().ok()).collect();
    found.try_into().ok()
}

fn is_date(text: &str) -> bool {
    let Some([year, month, day]) = numbers(text, "0000-00-00") else {
        return false;
    };
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    (1..=days).contains(&day)
}

/// `T12:00:00`, perhaps with a fraction, and the distance to UTC (RFC 3339).
fn is_time(text: &str) -> bool {
    let Some((time, rest)) = text.split_at_checked(9) else {
        return false;
    };
    let is_time = numbers(time, "T00:00:00")
        .is_some_and(|[hour, minute, second]| hour < 24 && minute < 60 && second <= 60);
    let digits = |rest: &str| rest.bytes().take_while(u8::is_ascii_digit).count();
    let rest = match rest.strip_prefix('.') {
        Some(fraction) if digits(fraction) > 0 => &fraction[digits(fraction)..],
        Some(_) => return false,
        None => rest,
    };
    let is_near = |[hour, minute]: [u32; 2]| hour < 24 && minute < 60;
    let is_zone = rest.eq_ignore_ascii_case("z")
        || numbers(rest, "+00:00").is_some_and(is_near)
        || numbers(rest, "-00:00").is_some_and(is_near);
    is_time && is_zone
}
