//! Web addresses: which may be fetched, and what a relative one leads to.

use super::super::template::percent_encode;

/// Longest address, in bytes.
const MAX_URL: usize = 4_000;

/// The address as it is sent: without its fragment, and with what is not ASCII
/// percent-encoded.
///
/// # Errors
/// Why it is not fetched, for the model.
pub(super) fn check(url: &str) -> Result<String, String> {
    let url = url.trim();
    if url.len() > MAX_URL {
        return Err(format!("a URL has at most {MAX_URL} bytes"));
    }
    let (scheme, rest) = url
        .split_once("://")
        .filter(|(scheme, _)| !scheme.contains(['/', '?', '#']))
        .ok_or("a URL must begin with https:// or http://")?;
    let scheme = scheme.to_ascii_lowercase();
    if !matches!(scheme.as_str(), "http" | "https") {
        return Err("only https:// and http:// are fetched".to_owned());
    }
    let rest = rest.split('#').next().unwrap_or_default();
    let (authority, path) = rest.split_at(rest.find(['/', '?', '\\']).unwrap_or(rest.len()));
    if authority.contains('@') {
        return Err("a URL must hold no user name or password".to_owned());
    }
    if authority.is_empty() || path.starts_with('\\') {
        return Err("the URL has no host".to_owned());
    }
    if !authority.is_ascii() {
        return Err("the URL's host must be written in ASCII (xn--...)".to_owned());
    }
    let slash = if path.starts_with('/') { "" } else { "/" };
    Ok(format!("{scheme}://{authority}{slash}{}", encoded(path)))
}

/// Encodes what no URL may hold and leaves the rest, percent signs too.
fn encoded(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    let mut buffer = [0; 4];
    for letter in path.chars() {
        match letter {
            '"'
            | '<'
            | '>'
            | '\\'
            | '^'
            | '`'
            | '{'
            | '|'
            | '}'
            | ' '
            | '\0'..='\x1F'
            | '\x7F'.. => {
                text.push_str(&percent_encode(letter.encode_utf8(&mut buffer)));
            }
            plain => text.push(plain),
        }
    }
    text
}

/// What a reference found at `base`, an address of [`check`], leads to
/// (RFC 3986, 5.2). What comes out must be checked.
pub(super) fn join(base: &str, reference: &str) -> String {
    let reference = reference.trim();
    let scheme_end = base.find("://").map_or(0, |place| place + 3);
    let path_start = base[scheme_end..]
        .find('/')
        .map_or(base.len(), |place| place + scheme_end);
    let (origin, path) = base.split_at(path_start);
    let path = path.split('#').next().unwrap_or_default();
    let scheme = reference.split_once(':').map(|(scheme, _)| scheme);
    let is_absolute = scheme.is_some_and(|scheme| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    });
    if is_absolute {
        return reference.to_owned();
    }
    if let Some(rest) = reference.strip_prefix("//") {
        return format!("{}{rest}", &base[..scheme_end]);
    }
    let file = path.split('?').next().unwrap_or_default();
    let joined = match reference.chars().next() {
        None | Some('#') => path.to_owned(),
        Some('/') => reference.to_owned(),
        Some('?') => format!("{file}{reference}"),
        Some(_) => {
            let directory = &file[..file.rfind('/').map_or(0, |place| place + 1)];
            format!("{directory}{reference}")
        }
    };
    let end = joined.find(['?', '#']).unwrap_or(joined.len());
    let (path, rest) = joined.split_at(end);
    format!("{origin}{}{rest}", without_dots(path))
}

/// The path without `.` and `..` (RFC 3986, 5.2.4).
fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment {
            "." | ".." => {
                if segment == ".." {
                    kept.pop();
                }
                if is_last {
                    kept.push("");
                }
            }
            segment => kept.push(segment),
        }
    }
    format!("/{}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_checked() {
        for (url, sent) in [
            (" https://a.example ", Ok("https://a.example/")),
            ("HTTP://a.example?x=1#top", Ok("http://a.example/?x=1")),
            (
                "https://a.example/ü b%20c/[x]",
                Ok("https://a.example/%C3%BC%20b%20c/[x]"),
            ),
            ("http://[::1]:8080/x", Ok("http://[::1]:8080/x")),
            ("https://a.example/x@y", Ok("https://a.example/x@y")),
            ("https://user:pw@a.example/", Err("user name")),
            ("https://a.example\\@b.example/", Err("no host")),
            ("ftp://a.example/", Err("only https")),
            ("file:///etc/passwd", Err("only https")),
            ("a.example", Err("must begin")),
            ("/x?u=http://a", Err("must begin")),
            ("javascript:alert(1)", Err("must begin")),
            ("https:///x", Err("no host")),
            ("https://münchen.example/", Err("ASCII")),
            (&format!("https://a/{}", "x".repeat(4000)), Err("at most")),
        ] {
            match (check(url), sent) {
                (Ok(found), Ok(sent)) => assert_eq!(found, sent),
                (Err(found), Err(why)) => assert!(found.contains(why), "{url}: {found}"),
                (found, _) => panic!("{url}: {found:?}"),
            }
        }
    }

    #[test]
    fn references_are_resolved() {
        let base = "http://a/b/c/d;p?q";
        // RFC 3986, 5.4.
        for (reference, target) in [
            ("g:h", "g:h"),
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            ("#s", "http://a/b/c/d;p?q"),
            ("g#s", "http://a/b/c/g#s"),
            (";x", "http://a/b/c/;x"),
            ("", "http://a/b/c/d;p?q"),
            (".", "http://a/b/c/"),
            ("./", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../../g", "http://a/g"),
            ("../../../g", "http://a/g"),
            ("/./g", "http://a/g"),
            ("/../g", "http://a/g"),
            ("g.", "http://a/b/c/g."),
            ("..g", "http://a/b/c/..g"),
            ("./../g", "http://a/b/g"),
            ("g/../h", "http://a/b/c/h"),
            ("g;x=1/../y", "http://a/b/c/y"),
            ("g?y/../x", "http://a/b/c/g?y/../x"),
        ] {
            assert_eq!(join(base, reference), target, "{reference}");
        }
    }
}
