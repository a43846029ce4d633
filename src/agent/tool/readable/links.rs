//! Where links lead.

fn scheme(address: &str) -> Option<&str> {
    address
        .split_once(':')
        .map(|(scheme, _)| scheme)
        .filter(|scheme| scheme.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

/// Whether an address leads to another place on the web, or in the page.
pub(super) fn is_elsewhere(address: &str) -> bool {
    let is_web =
        |scheme: &str| scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    !address.is_empty() && scheme(address).is_none_or(is_web)
}

/// Whether an address leads to another page.
pub(super) fn is_followable(address: &str) -> bool {
    is_elsewhere(address) && !address.starts_with('#')
}
