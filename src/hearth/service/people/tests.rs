//! Tokens are no more than their owner.

use super::*;

fn owner(role: UserRole) -> User {
    User {
        id: 1.into(),
        name: "ada".to_owned(),
        role,
        password_hash: String::new(),
        created_at: Timestamp::from_millis(0),
        display_name: None,
        language: None,
        last_language: None,
    }
}

#[test]
fn a_token_has_a_name_and_no_more_than_its_owner_s_role() {
    let owner = owner(UserRole::User);
    let request = |name: &str, role| TokenRequest {
        name: name.to_owned(),
        role,
        ..TokenRequest::default()
    };
    let made = |name: &str, role| new_token(&owner, request(name, role));
    for (name, role, good) in [
        ("phone", None, true),
        ("phone", Some(UserRole::Viewer), true),
        ("phone", Some(UserRole::Admin), false),
        ("", None, false),
        (" ", None, false),
        ("a\nb", None, false),
        // Those are ended with the password.
        ("session", None, false),
    ] {
        assert_eq!(made(name, role).is_ok(), good, "{name:?} {role:?}");
    }
    let (secret, token) = made("phone", None).unwrap();
    assert_eq!(token.role, UserRole::User);
    assert_eq!(token.fingerprint, fingerprint(secret.expose()));
}

#[test]
fn a_narrowed_token_is_no_admin() {
    let owner = owner(UserRole::Admin);
    let tools = |names: &[&str]| Some(names.iter().map(|&name| name.to_owned()).collect());
    let narrow = |tools, only: Option<&str>, speaks_for: &[i64]| TokenRequest {
        name: "display".to_owned(),
        scope: token_scope(tools, only).unwrap(),
        speaks_for: speaks_for.iter().map(|&id| id.into()).collect(),
        ..TokenRequest::default()
    };
    for (tools, only, speaks_for) in [
        (tools(&["recall"]), None, &[][..]),
        (tools(&[]), None, &[]),
        (None, Some(HOUSEHOLD), &[]),
        (None, None, &[2]),
    ] {
        let request = || narrow(tools.clone(), only, speaks_for);
        let (_, made) = new_token(&owner, request()).unwrap();
        assert_eq!(made.role, UserRole::User);
        let role = Some(UserRole::Admin);
        let request = TokenRequest { role, ..request() };
        assert!(new_token(&owner, request).is_err());
    }
    assert!(new_token(&owner, narrow(tools(&["a,b"]), None, &[])).is_err());
    assert!(token_scope(None, Some("mine")).is_err());
}
