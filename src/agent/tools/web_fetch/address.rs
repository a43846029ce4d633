//! Web addresses: which may be fetched, and how relative ones are resolved.

use base::url::{Url, UrlError, percent_encode};

/// Longest address, in bytes.
const MAX_URL: usize = 4_000;
const ONLY_WEB: &str = "only https:// and http:// are fetched";

/// The address to request: without its fragment, and percent-encoded where it is
/// not ASCII.
///
/// # Errors
/// Why it is not fetched, for the model.
pub(super) fn check(url: &str) -> Result<String, String> {
    let url = url.trim();
    if url.len() > MAX_URL {
        return Err(format!("a URL has at most {MAX_URL} bytes"));
    }
    let is_web = |scheme: &str| matches!(scheme, "http" | "https");
    let scheme = url.split("://").next().unwrap_or_default();
    // Percent signs are kept.
    let may_contain = |byte: u8| byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte);
    let url = Url::parse(&percent_encode(url, may_contain)).map_err(|error| match error {
        UrlError::Scheme => "a URL must begin with https:// or http://",
        _ if !is_web(&scheme.to_ascii_lowercase()) => ONLY_WEB,
        _ => "the URL has no host, or its host is not written in ASCII (xn--...)",
    })?;
    if !is_web(&url.scheme) {
        return Err(ONLY_WEB.to_owned());
    }
    if url.user.is_some() {
        return Err("a URL must hold no user name or password".to_owned());
    }
    Ok(format!("{}{}", url.origin(), url.path_and_query()))
}

/// What a reference found at `base`, an address of [`check`], leads to
/// (RFC 3986, 5.2). The result is still to be checked.
pub(crate) fn join(base: &str, reference: &str) -> String {
    let reference = reference.trim();
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
    let Ok(base) = Url::parse(base) else {
        return reference.to_owned();
    };
    if reference.starts_with("//") {
        return format!("{}:{reference}", base.scheme);
    }
    let file = &base.path;
    let joined = match reference.chars().next() {
        None | Some('#') => base.path_and_query(),
        Some('/') => reference.to_owned(),
        Some('?') => format!("{file}{reference}"),
        Some(_) => {
            let directory = file.rfind('/').map_or("/", |place| &file[..=place]);
            format!("{directory}{reference}")
        }
    };
    let end = joined.find(['?', '#']).unwrap_or(joined.len());
    let (path, rest) = joined.split_at(end);
    format!("{}{}{rest}", base.origin(), without_dots(path))
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
            ("https://a.example\\@b.example/", Err("user name")),
            ("https://a.example\\.b.example/", Err("no host")),
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
