//! Users and tokens.

use std::time::Duration;

use crate::testing::*;
use base::error::Code;
use base::ids::{MachineId, UserId};

fn token(store: &Store, user: &User, name: &str, fingerprint: u8, role: UserRole) -> Token {
    store
        .add_token(NewToken {
            user_id: user.id,
            name: name.to_owned(),
            fingerprint: [fingerprint; 32],
            role,
            expires_at: None,
        })
        .unwrap()
}

#[test]
fn names_differ_in_more_than_case() {
    let store = TestStore::new();
    store.add_user("Änne", UserRole::Admin, "hash").unwrap();
    let taken = store.add_user("änne", UserRole::User, "hash").unwrap_err();
    assert_eq!(taken.code(), Code::InvalidRequest);
    assert_eq!(taken.message(), "there is already a user \"Änne\"");
    assert_eq!(store.user("ÄNNE").unwrap().unwrap().name, "Änne");
    assert!(store.user("anne").unwrap().is_none());
    store.add_user("bob", UserRole::User, "hash").unwrap();
    store.add_user("Al", UserRole::User, "hash").unwrap();
    let users = store.users().unwrap();
    let names: Vec<&str> = users.iter().map(|user| user.name.as_str()).collect();
    assert_eq!(names, ["Al", "bob", "Änne"]);
}

#[test]
fn the_last_admin_stays() {
    let store = TestStore::new();
    let first = store.add_user("first", UserRole::Admin, "hash").unwrap();
    store.add_user("user", UserRole::User, "hash").unwrap();
    let last = store.remove_user(first.id).unwrap_err();
    assert_eq!(last.code(), Code::InvalidRequest);
    store.add_user("second", UserRole::Admin, "hash").unwrap();
    token(&store, &first, "api", 1, UserRole::Admin);
    store.remove_user(first.id).unwrap();
    assert_eq!(store.identity(&[1; 32]).unwrap(), None);
    assert_eq!(
        store.remove_user(first.id).unwrap_err().code(),
        Code::NotFound
    );
}

#[test]
fn tokens_follow_the_role_of_their_user() {
    let store = TestStore::new();
    let first = store.add_user("first", UserRole::Admin, "hash").unwrap();
    let last = store.set_role(first.id, UserRole::User).unwrap_err();
    assert_eq!(last.code(), Code::InvalidRequest);
    store.set_role(first.id, UserRole::Admin).unwrap();
    let second = store.add_user("second", UserRole::User, "hash").unwrap();
    store.set_role(second.id, UserRole::Admin).unwrap();
    let tokens = [UserRole::Viewer, UserRole::User, UserRole::Admin];
    let [display, phone, script] = tokens.map(|role| {
        let number = role as u8;
        token(&store, &first, "api", number, role).id
    });
    let session = token(&store, &first, SESSION, 9, UserRole::Admin).id;
    let granted = |id| store.token_role(id).unwrap();
    assert_eq!(granted(script), Some(UserRole::Admin));
    store.set_role(first.id, UserRole::User).unwrap();
    assert_eq!(store.user("first").unwrap().unwrap().role, UserRole::User);
    assert_eq!(granted(session), None);
    // A lowered token stays low when the role of its owner rises again.
    store.set_role(first.id, UserRole::Admin).unwrap();
    for (id, role) in [
        (display, UserRole::Viewer),
        (phone, UserRole::User),
        (script, UserRole::User),
    ] {
        assert_eq!(granted(id), Some(role));
    }
    let nobody = store.set_role(UserId::from(1), UserRole::User).unwrap_err();
    assert_eq!(nobody.code(), Code::NotFound);
}

#[test]
fn a_token_grants_the_lesser_of_two_roles() {
    let store = TestStore::new();
    let admin = store.add_user("admin", UserRole::Admin, "hash").unwrap();
    let viewer = store.add_user("viewer", UserRole::Viewer, "hash").unwrap();
    for (number, user, asked, granted) in [
        (1, &admin, UserRole::Admin, UserRole::Admin),
        (2, &admin, UserRole::Viewer, UserRole::Viewer),
        (3, &viewer, UserRole::Admin, UserRole::Viewer),
    ] {
        token(&store, user, "api", number, asked);
        let identity = store.identity(&[number; 32]).unwrap().unwrap();
        assert_eq!((identity.role, identity.user), (granted, user.name.clone()));
    }
    let unknown = NewToken {
        user_id: UserId::from(3),
        name: "api".to_owned(),
        fingerprint: [9; 32],
        role: UserRole::User,
        expires_at: None,
    };
    assert_eq!(store.add_token(unknown).unwrap_err().code(), Code::NotFound);
}

#[test]
fn a_new_password_ends_sessions_and_keeps_api_tokens() {
    let store = TestStore::new();
    let user = store.add_user("ann", UserRole::Admin, "old").unwrap();
    let session = token(&store, &user, SESSION, 1, UserRole::Admin);
    let api = token(&store, &user, "phone", 2, UserRole::User);
    let listed: Vec<_> = store.tokens(false).unwrap().iter().map(|t| t.id).collect();
    assert_eq!(listed, [api.id]);
    assert_eq!(store.tokens(true).unwrap().len(), 2);
    store.set_password(user.id, "new").unwrap();
    assert_eq!(store.user("ann").unwrap().unwrap().password_hash, "new");
    assert!(store.token_role(session.id).unwrap().is_none());
    assert!(store.token_role(api.id).unwrap().is_some());
    store.revoke_token(api.id).unwrap();
    assert!(store.token_role(api.id).unwrap().is_none());
    assert_eq!(
        store.revoke_token(api.id).unwrap_err().code(),
        Code::NotFound
    );
    let nobody = store.set_password(UserId::from(1), "x").unwrap_err();
    assert_eq!(nobody.code(), Code::NotFound);
}

#[test]
fn a_token_ends_when_its_time_comes() {
    let dir = TemporaryDirectory::new();
    let clock = Clock::system();
    let store = open_with(&dir, &clock);
    let user = store.add_user("ann", UserRole::User, "hash").unwrap();
    let token = store
        .add_token(NewToken {
            user_id: user.id,
            name: SESSION.to_owned(),
            fingerprint: [1; 32],
            role: UserRole::User,
            expires_at: Some(clock.now().plus(Duration::from_secs(60))),
        })
        .unwrap();
    assert!(store.identity(&[1; 32]).unwrap().is_some());
    clock.advance(Duration::from_secs(61));
    assert!(store.identity(&[1; 32]).unwrap().is_none());
    assert!(store.token_role(token.id).unwrap().is_none());
}

#[test]
fn a_machine_that_registers_again_has_its_new_name() {
    let store = TestStore::new();
    let key = [7; 32];
    let id = MachineId::of_public_key(&key);
    for name in ["attic", "cellar"] {
        store.register_machine(&id, name, &key).unwrap();
        let stored: Option<String> = store
            .read(|connection| {
                row(
                    connection,
                    "SELECT name FROM machines WHERE id = ?",
                    params![id.as_str()],
                    |row| row.get(0),
                )
            })
            .unwrap();
        assert_eq!(stored.as_deref(), Some(name));
    }
}

#[test]
fn the_newest_places_of_a_person_are_remembered_until_the_password_changes() {
    let store = TestStore::new();
    let ada = store.add_user("ada", UserRole::User, "hash").unwrap();
    let bob = store.add_user("bob", UserRole::User, "hash").unwrap();
    let sign_in = |number: usize, place: usize| {
        let new = NewToken {
            user_id: ada.id,
            name: SESSION.to_owned(),
            fingerprint: base::secret::sha256(&number.to_le_bytes()),
            role: UserRole::User,
            expires_at: None,
        };
        store.add_session(new, format!("place {place}")).unwrap();
    };
    for number in 0..=tokens::PLACES {
        sign_in(number, number);
    }
    let known = |user: &User, place| {
        let place = format!("place {place}");
        store.has_signed_in(user.id, &place).unwrap()
    };
    let count = (0..=tokens::PLACES).filter(|place| known(&ada, *place));
    assert_eq!(count.count(), tokens::PLACES);
    assert!(known(&ada, tokens::PLACES), "the newest stays");
    assert!(!known(&bob, tokens::PLACES), "they are each person's own");
    store.set_password(ada.id, "another hash").unwrap();
    assert!(!known(&ada, tokens::PLACES));
}
