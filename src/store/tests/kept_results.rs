//! Results of tools that are kept whole.

use crate::testing::*;
use crate::{KEPT_RESULT_BYTES, KEPT_RESULTS};
use base::error::Code;

#[test]
fn a_result_is_for_its_conversation_and_goes_with_it() {
    let store = TestStore::new();
    let (one, other) = (conversation(&store, "one"), conversation(&store, "other"));
    let id = store.keep_result(one, "long", true, None).unwrap().unwrap();
    assert_eq!(
        store.seen(&Viewer::server()).kept_result(one, id).unwrap(),
        ("long".to_owned(), true)
    );
    assert_eq!(
        store
            .seen(&Viewer::server())
            .kept_result(other, id)
            .unwrap_err()
            .code(),
        Code::NotFound
    );
    let too_long = "x".repeat(KEPT_RESULT_BYTES + 1);
    assert_eq!(store.keep_result(one, &too_long, true, None).unwrap(), None);
    store.delete_conversation(&all(), one).unwrap();
    assert_eq!(
        store
            .seen(&Viewer::server())
            .kept_result(one, id)
            .unwrap_err()
            .code(),
        Code::NotFound
    );
}

#[test]
fn the_newest_are_kept_for_a_week() {
    let dir = TemporaryDirectory::new();
    let clock = Clock::system();
    let store = open_with(&dir, &clock);
    let one = conversation(&store, "one");
    let keep = |text: &str| store.keep_result(one, text, false, None).unwrap().unwrap();
    let first = keep("first");
    let ids: Vec<_> = (0..KEPT_RESULTS)
        .map(|number| keep(&number.to_string()))
        .collect();
    assert!(
        store
            .seen(&Viewer::server())
            .kept_result(one, first)
            .is_err()
    );
    assert!(
        store
            .seen(&Viewer::server())
            .kept_result(one, ids[0])
            .is_ok()
    );
    let days = |days: u64| std::time::Duration::from_secs(days * 24 * 3600);
    clock.advance(days(6));
    store.purge().unwrap();
    assert!(
        store
            .seen(&Viewer::server())
            .kept_result(one, ids[0])
            .is_ok()
    );
    clock.advance(days(1));
    store.purge().unwrap();
    assert!(
        store
            .seen(&Viewer::server())
            .kept_result(one, ids[0])
            .is_err()
    );
    store.close();
}
