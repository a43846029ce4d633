//! Forms with a file (RFC 7578).

use base::secret::{base32_lower, random_bytes};

/// The file of a form.
#[derive(Clone, Copy, Debug)]
pub struct FormFile<'a> {
    /// The field that it is in.
    pub field: &'a str,
    /// What it is called.
    pub name: &'a str,
    /// Its media type.
    pub media_type: &'a str,
    /// What is in it.
    pub bytes: &'a [u8],
}

/// The media type and the body of a form with these fields, whose values are no longer than a
/// line, and a file. None of them has the boundary, which nobody knows before.
pub fn form(fields: &[(&str, &str)], file: &FormFile<'_>) -> (String, Vec<u8>) {
    let boundary = base32_lower(&random_bytes::<20>());
    let mut form = Vec::with_capacity(file.bytes.len() + 1_024);
    for (name, value) in fields {
        let field = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"
        );
        form.extend_from_slice(field.as_bytes());
    }
    let name = file.name.replace('"', "%22").replace(['\r', '\n'], " ");
    let head = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"{}\"; filename=\"{name}\"\r\n\
         Content-Type: {}\r\n\r\n",
        file.field, file.media_type
    );
    form.extend_from_slice(head.as_bytes());
    form.extend_from_slice(file.bytes);
    form.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
    (format!("multipart/form-data; boundary={boundary}"), form)
}
