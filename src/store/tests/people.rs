//! Users and tokens.

use std::time::Duration;

use crate::testing::*;
use base::clock::Timestamp;
use base::error::Code;
use base::ids::{MachineId, UserId};

fn token(store: &Store, user: &User, name: &str, fingerprint: u8, role: UserRole) -> Token {
    store
        .add_token(NewToken {
            name: name.to_owned(),
            ..NewToken::session(user.id, role, [fingerprint; 32])
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
    let alike = store.add_user("b0b", UserRole::User, "hash").unwrap_err();
    let told = "there is already a user \"bob\", whose name looks the same";
    assert_eq!(
        (alike.code(), alike.message()),
        (Code::InvalidRequest, told)
    );
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
    let last = store.remove_user(first.id, None).unwrap_err();
    assert_eq!(last.code(), Code::InvalidRequest);
    store.add_user("second", UserRole::Admin, "hash").unwrap();
    token(&store, &first, "api", 1, UserRole::Admin);
    store.remove_user(first.id, None).unwrap();
    assert_eq!(store.identity(&[1; 32]).unwrap(), None);
    assert_eq!(
        store.remove_user(first.id, None).unwrap_err().code(),
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
        name: "api".to_owned(),
        ..NewToken::session(UserId::from(3), UserRole::User, [9; 32])
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
    store.set_password(user.id, "new", None).unwrap();
    assert_eq!(store.user("ann").unwrap().unwrap().password_hash, "new");
    assert!(store.token_role(session.id).unwrap().is_none());
    assert!(store.token_role(api.id).unwrap().is_some());
    store.revoke_token(api.id).unwrap();
    assert!(store.token_role(api.id).unwrap().is_none());
    assert_eq!(
        store.revoke_token(api.id).unwrap_err().code(),
        Code::NotFound
    );
    let nobody = store.set_password(UserId::from(1), "x", None).unwrap_err();
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
            expires_at: Some(clock.now().plus(Duration::from_secs(60))),
            ..NewToken::session(user.id, UserRole::User, [1; 32])
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
                connection.row(
                    "SELECT name FROM machines WHERE id = ?",
                    params![id.as_str()],
                    |row| Ok(row.get(0)?),
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
        let new = NewToken::session(
            ada.id,
            UserRole::User,
            base::secret::sha256(&number.to_le_bytes()),
        );
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
    store.set_password(ada.id, "another hash", None).unwrap();
    assert!(!known(&ada, tokens::PLACES));
}

fn link(fingerprint: u8, until: Timestamp) -> NewInvitation {
    NewInvitation {
        fingerprint: [fingerprint; 32],
        created_by: "ada".to_owned(),
        expires_at: until,
    }
}

#[test]
fn a_link_sets_a_password_once_and_for_a_day() {
    let (dir, clock) = (TemporaryDirectory::new(), Clock::system());
    let store = open_with(&dir, &clock);
    let day = Duration::from_secs(24 * 3600);
    let tomorrow = clock.now().plus(day);
    let ada = store.add_user("ada", UserRole::Admin, "hash").unwrap();
    let invited = store.invite("bob", UserRole::Admin, link(1, tomorrow));
    assert!(!invited.unwrap().is_reset);
    let taken = store.invite("BOB", UserRole::User, link(2, tomorrow));
    assert_eq!(taken.unwrap_err().code(), Code::InvalidRequest);
    assert!(store.user("bob").unwrap().unwrap().is_invited());
    // Nobody who cannot sign in is an admin that could remain.
    assert!(store.remove_user(ada.id, None).is_err());

    assert_eq!(store.invitation(&[1; 32]).unwrap().unwrap().name, "bob");
    let bob = store.accept_invitation([1; 32], "new").unwrap();
    assert_eq!((bob.name.as_str(), bob.is_invited()), ("bob", false));
    let again = store.accept_invitation([1; 32], "another").unwrap_err();
    assert_eq!(again.code(), Code::InvalidToken);
    assert_eq!(store.user("bob").unwrap().unwrap().password_hash, "new");

    // A reset ends sessions; only the newest link works, and a new password ends it.
    let session = token(&store, &bob, SESSION, 9, UserRole::User);
    store.add_invitation(bob.id, link(3, tomorrow)).unwrap();
    let second = store.add_invitation(bob.id, link(4, tomorrow)).unwrap();
    assert!(second.is_reset);
    assert!(store.accept_invitation([3; 32], "x").is_err());
    store.accept_invitation([4; 32], "reset").unwrap();
    assert_eq!(store.token_role(session.id).unwrap(), None);
    store.add_invitation(bob.id, link(5, tomorrow)).unwrap();
    store.set_password(bob.id, "set", None).unwrap();
    assert!(store.accept_invitation([5; 32], "x").is_err());

    store.add_invitation(bob.id, link(6, tomorrow)).unwrap();
    assert_eq!(store.invitations().unwrap().len(), 1);
    assert!(store.revoke_invitation(bob.id).unwrap());
    assert!(!store.revoke_invitation(bob.id).unwrap());
    assert!(store.accept_invitation([6; 32], "x").is_err());

    store.add_invitation(bob.id, link(7, tomorrow)).unwrap();
    clock.advance(day);
    assert!(store.invitation(&[7; 32]).unwrap().is_none());
    assert!(store.invitations().unwrap().is_empty());
    assert!(store.accept_invitation([7; 32], "x").is_err());
}

#[test]
fn a_new_password_may_keep_one_session() {
    let store = TestStore::new();
    let ada = store.add_user("ada", UserRole::Admin, "hash").unwrap();
    let [kept, other] = [1, 2].map(|one| token(&store, &ada, SESSION, one, UserRole::Admin));
    store.set_password(ada.id, "new", Some(kept.id)).unwrap();
    assert!(store.token_role(kept.id).unwrap().is_some());
    assert!(store.token_role(other.id).unwrap().is_none());
}

#[test]
fn people_see_and_end_their_own_tokens() {
    let store = TestStore::new();
    let [ada, bob] = ["ada", "bob"].map(|name| {
        let role = UserRole::Admin;
        store.add_user(name, role, "hash").unwrap()
    });
    let [first, of_bob] = [(&ada, 1), (&bob, 2)]
        .map(|(user, one)| token(&store, user, SESSION, one, UserRole::Admin));
    let api = token(&store, &ada, "phone", 3, UserRole::User);
    let ids = |tokens: Vec<Token>| tokens.into_iter().map(|one| one.id).collect::<Vec<_>>();
    assert_eq!(ids(store.tokens_of(ada.id).unwrap()), [api.id, first.id]);
    assert_eq!(
        store.revoke_token_of(ada.id, of_bob.id).unwrap_err().code(),
        Code::NotFound
    );
    assert_eq!(store.sign_out_everywhere(ada.id, false).unwrap(), 1);
    assert_eq!(ids(store.tokens_of(ada.id).unwrap()), [api.id]);
    assert_eq!(store.sign_out_everywhere(ada.id, true).unwrap(), 1);
    assert_eq!(ids(store.tokens(true).unwrap()), [of_bob.id]);
}

#[test]
fn a_token_is_as_narrow_as_it_was_made() {
    let store = TestStore::new();
    let ada = store.add_user("ada", UserRole::Admin, "hash").unwrap();
    let bob = store.add_user("Bob", UserRole::Viewer, "hash").unwrap();
    store.add_user("eve", UserRole::User, "hash").unwrap();
    let scope = TokenScope {
        tools: Some(["a", "b"].map(str::to_owned).into()),
        household_only: true,
    };
    let made = store.add_token(NewToken {
        name: "display".to_owned(),
        scope: scope.clone(),
        speaks_for: vec![bob.id],
        ..NewToken::session(ada.id, UserRole::User, [1; 32])
    });
    let speaks_for = Some(vec!["Bob".to_owned()]);
    assert_eq!(made.unwrap().speaks_for, speaks_for);
    let listed = store.tokens(false).unwrap().remove(0);
    assert_eq!((&listed.scope, listed.speaks_for), (&scope, speaks_for));
    let identity = store.identity(&[1; 32]).unwrap().unwrap();
    assert_eq!(identity.scope, scope);
    assert!(identity.is_narrowed);
    let as_bob = store.speak_for(&identity, "BOB").unwrap();
    assert_eq!(
        (
            as_bob.user_id,
            as_bob.user.as_str(),
            as_bob.role,
            &as_bob.scope
        ),
        (bob.id, "Bob", UserRole::Viewer, &scope)
    );
    assert_eq!(store.speak_for(&identity, "Ada").unwrap(), identity);
    let refusals = ["eve", "nobody"].map(|name| store.speak_for(&identity, name).unwrap_err());
    assert_eq!(refusals[0].code(), Code::Unauthorized);
    assert_eq!(refusals[0].message(), refusals[1].message());
    store.remove_user(bob.id, None).unwrap();
    assert!(store.speak_for(&identity, "bob").is_err());
}

#[test]
fn a_token_that_may_less_than_its_person_is_narrowed() {
    let store = TestStore::new();
    let ada = store.add_user("ada", UserRole::Admin, "hash").unwrap();
    let bob = store.add_user("bob", UserRole::User, "hash").unwrap();
    let few = TokenScope {
        tools: Some([].into()),
        household_only: false,
    };
    let common = TokenScope {
        tools: None,
        household_only: true,
    };
    let all = TokenScope::default();
    for (number, (role, scope, speaks_for, is_narrowed)) in [
        (UserRole::Admin, &all, vec![], false),
        (UserRole::User, &all, vec![], true),
        (UserRole::Admin, &few, vec![], true),
        (UserRole::Admin, &common, vec![], true),
        (UserRole::Admin, &all, vec![bob.id], true),
    ]
    .into_iter()
    .enumerate()
    {
        let fingerprint = [number as u8; 32];
        store
            .add_token(NewToken {
                name: "display".to_owned(),
                scope: scope.clone(),
                speaks_for,
                ..NewToken::session(ada.id, role, fingerprint)
            })
            .unwrap();
        let identity = store.identity(&fingerprint).unwrap().unwrap();
        assert_eq!(identity.is_narrowed, is_narrowed, "{number}");
    }
    // Also when everybody it spoke for is gone.
    store.remove_user(bob.id, None).unwrap();
    assert!(store.identity(&[4; 32]).unwrap().unwrap().is_narrowed);
    let listed = store.tokens(false).unwrap().into_iter();
    let speaks_for: Vec<_> = listed.map(|token| token.speaks_for).collect();
    assert_eq!(speaks_for, [Some(vec![]), None, None, None, None]);
    let scopes = [all, few, common].map(|scope| scope.key_scope(ada.id));
    assert_eq!(scopes[0], format!("user:{}", ada.id));
    assert!(scopes[0] != scopes[1] && scopes[1] != scopes[2] && scopes[0] != scopes[2]);
}
