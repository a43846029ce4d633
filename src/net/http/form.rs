//! Forms, as pages and simple devices send them.

use super::checks::{percent_decoded, query};
use super::message::Head;

/// A field of a form with files.
pub struct Field<'a> {
    head: &'a str,
    /// What was entered, or the file.
    pub content: &'a [u8],
}

impl<'a> Field<'a> {
    /// A parameter of its disposition, such as `name` and `filename`.
    pub fn parameter(&self, name: &str) -> Option<&'a str> {
        let (_, value) = self.head.split_once(&format!("; {name}=\""))?;
        value.split('"').next()
    }

    /// The type that the sender gives its content.
    pub fn media_type(&self) -> Option<&'a str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(':'));
        let of_type = lines.find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        let kind = of_type.map(|(_, kind)| kind.trim()).unwrap_or_default();
        let is_plain = |byte: u8| byte.is_ascii_graphic();
        (!kind.is_empty() && kind.bytes().all(is_plain)).then_some(kind)
    }
}

/// The fields of a body of the type `multipart/form-data` (RFC 7578); none if it is not one.
pub fn multipart<'a>(head: &Head, body: &'a [u8]) -> Option<Vec<Field<'a>>> {
    let find = |text: &[u8], wanted: &[u8]| {
        let mut places = text.windows(wanted.len());
        places.position(|place| place == wanted)
    };
    let (_, boundary) = head.header("content-type")?.split_once("boundary=")?;
    let boundary = boundary.split(';').next()?.trim().trim_matches('"');
    let between = format!("\r\n--{boundary}").into_bytes();
    let mut rest = body.strip_prefix(&between[2..])?;
    let mut fields = Vec::new();
    while let Some(field) = rest.strip_prefix(b"\r\n") {
        let end = find(field, &between)?;
        let head_end = find(&field[..end], b"\r\n\r\n")?;
        fields.push(Field {
            head: std::str::from_utf8(&field[..head_end]).ok()?,
            content: &field[head_end + 4..end],
        });
        rest = &field[end + between.len()..];
    }
    rest.starts_with(b"--").then_some(fields)
}

/// The names and values of a query or of a body of the type
/// `application/x-www-form-urlencoded` (the URL Standard, section 5).
pub fn urlencoded(text: &str) -> impl Iterator<Item = (String, String)> {
    let decoded = |text: &str| percent_decoded(&text.replace('+', " "));
    query(Some(text))
        .filter(|(name, _)| !name.is_empty())
        .map(move |(name, value)| (decoded(name), decoded(value)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::head;

    #[test]
    fn a_form_in_a_line_is_decoded() {
        let fields: Vec<_> = urlencoded("a=1&b=x+y%26%C3%BC&&c&=d&e=f=g").collect();
        let expected = [("a", "1"), ("b", "x y&\u{fc}"), ("c", ""), ("e", "f=g")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(fields, expected);
    }

    #[test]
    fn a_form_with_a_file_has_its_fields() {
        let body = b"--x\r\nContent-Disposition: form-data; name=\"message\"\r\n\r\nhi\r\n\
            --x\r\nContent-Disposition: form-data; name=\"file01\"; filename=\"a.png\"\r\n\
            content-type: image/png\r\n\r\n\x89PNG\r\n\r\n\r\n--x--\r\n";
        let typed = |kind| head("POST", "/", &[("content-type", kind)]);
        let fields = multipart(&typed("multipart/form-data; boundary=x"), body).unwrap();
        assert_eq!(fields.len(), 2);
        assert_eq!(fields[0].parameter("name"), Some("message"));
        assert_eq!(
            (fields[0].content, fields[0].media_type()),
            (&b"hi"[..], None)
        );
        assert_eq!(fields[1].parameter("filename"), Some("a.png"));
        assert_eq!(fields[1].media_type(), Some("image/png"));
        assert_eq!(fields[1].content, b"\x89PNG\r\n\r\n");
        for kind in ["multipart/form-data; boundary=y", "multipart/form-data"] {
            assert!(multipart(&typed(kind), body).is_none(), "{kind}");
        }
        let cut = &body[..body.len() - 8];
        assert!(multipart(&typed("multipart/form-data; boundary=x"), cut).is_none());
    }
}
