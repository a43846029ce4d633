use super::*;
use crate::Store;
use crate::testing::TemporaryDirectory;
use base::clock::Clock;

fn refusal(path: &Path) -> String {
    let error = Store::open(path, Clock::system())
        .map(|_| ())
        .expect_err("must be refused");
    error.to_string()
}

#[test]
fn a_new_file_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let dir = TemporaryDirectory::new();
    let path = dir.path().join("hearth.db");
    let store = Store::open(&path, Clock::system()).unwrap();
    store.set_meta("a", "b").unwrap();
    for name in ["hearth.db", "hearth.db-wal"] {
        let mode = std::fs::metadata(dir.path().join(name))
            .unwrap()
            .permissions();
        assert_eq!(mode.mode() & 0o777, 0o600, "{name}");
    }
}

#[test]
fn a_file_that_is_not_ours_is_refused_and_left_alone() {
    let dir = TemporaryDirectory::new();
    let sql = |name: &str, batch: &str| {
        let path = dir.path().join(name);
        Connection::open(&path)
            .unwrap()
            .execute_batch(batch)
            .unwrap();
        path
    };
    let text = dir.path().join("notes.txt");
    std::fs::write(
        &text,
        "not a database at all, but long enough\n".repeat(200),
    )
    .unwrap();
    let newer = format!(
        "PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = 99; CREATE TABLE t (a)"
    );
    let damaged = format!(
        "PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = 1;
         CREATE TABLE t (a); PRAGMA writable_schema = 1;
         UPDATE sqlite_schema SET rootpage = 99 WHERE name = 't'"
    );
    for (path, says) in [
        (text, "is not a database: move it away"),
        (
            sql("foreign.db", "CREATE TABLE t (a)"),
            "of another program",
        ),
        (
            sql("marked.db", "PRAGMA application_id = 7; CREATE TABLE t (a)"),
            "of another program",
        ),
        (
            sql("newer.db", &newer),
            "was written by a newer Hearth (schema 99; this one knows",
        ),
        (sql("damaged.db", &damaged), "is damaged"),
    ] {
        let before = std::fs::read(&path).unwrap();
        let text = refusal(&path);
        assert!(text.contains(says), "{text}");
        assert!(text.contains(&path.display().to_string()), "{text}");
        assert_eq!(std::fs::read(&path).unwrap(), before, "{text}");
    }
}

#[test]
fn a_missing_directory_is_named() {
    let dir = TemporaryDirectory::new();
    let text = refusal(&dir.path().join("nowhere/hearth.db"));
    assert!(text.contains("nowhere/hearth.db"), "{text}");
    assert!(text.ends_with("its directory does not exist"), "{text}");
}

#[test]
fn a_directory_is_no_database() {
    let dir = TemporaryDirectory::new();
    let text = refusal(dir.path());
    assert!(
        text.contains("cannot be written: check that it is a file"),
        "{text}"
    );
}

#[test]
fn several_may_create_the_same_file_at_once() {
    let dir = TemporaryDirectory::new();
    let path = dir.path().join("hearth.db");
    std::thread::scope(|scope| {
        let open = || Store::open(&path, Clock::system()).map(|store| store.close());
        let openers: Vec<_> = (0..4).map(|_| scope.spawn(open)).collect();
        for opener in openers {
            opener.join().unwrap().unwrap();
        }
    });
}

/// Makes a database of an older schema, with a person in it.
fn older(path: &Path, schema: usize) {
    let connection = Connection::open(path).unwrap();
    for sql in &MIGRATIONS[..schema] {
        connection.execute_batch(sql).unwrap();
    }
    connection
        .pragma_update(None, "application_id", APPLICATION_ID)
        .unwrap();
    connection
        .pragma_update(None, "user_version", schema as i32)
        .unwrap();
}

fn schema_in(path: &Path) -> i32 {
    let connection = Connection::open(path).unwrap();
    connection
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .unwrap()
}

#[test]
fn a_database_is_copied_before_it_is_migrated() {
    let dir = TemporaryDirectory::new();
    let path = dir.path().join("hearth.db");
    let backups = dir.path().join("backups");
    let newest = MIGRATIONS.len();
    let open = || Store::open(&path, Clock::system()).unwrap().close();
    open();
    open();
    assert!(!backups.exists(), "nothing was migrated");
    for schema in [newest - 3, newest - 2, newest - 1] {
        std::fs::remove_file(&path).unwrap();
        older(&path, schema);
        open();
        assert_eq!(schema_in(&path), newest as i32);
        let copy = backups.join(format!("hearth-schema-{schema}.db"));
        assert_eq!(schema_in(&copy), schema as i32);
    }
    let mut left: Vec<_> = std::fs::read_dir(&backups)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    let names = [newest - 2, newest - 1].map(|schema| format!("hearth-schema-{schema}.db"));
    assert_eq!(left, names, "the two newest are kept");
}

#[test]
fn a_database_that_cannot_be_copied_is_not_migrated() {
    let dir = TemporaryDirectory::new();
    let path = dir.path().join("hearth.db");
    older(&path, MIGRATIONS.len() - 1);
    std::fs::write(dir.path().join("backups"), "a file in the way").unwrap();
    let text = refusal(&path);
    assert!(text.contains("was not upgraded"), "{text}");
    assert_eq!(schema_in(&path), MIGRATIONS.len() as i32 - 1);
}

#[test]
fn what_running_tools_asked_is_closed_and_permissions_stay_open() {
    let dir = TemporaryDirectory::new();
    let path = dir.path().join("hearth.db");
    older(&path, 32);
    let connection = Connection::open(&path).unwrap();
    let batch = "PRAGMA foreign_keys = OFF;
        INSERT INTO approvals (id, turn_id, conversation_id, call_id, tool, arguments, reason,
                               created_at, expires_at, question)
        VALUES (1, 1, 1, '', 'book', '{}', '', 5, 9, '{}'), (2, 1, 1, 'c', 'book', '{}', '', 5, 9, NULL)";
    connection.execute_batch(batch).unwrap();
    Store::open(&path, Clock::system()).unwrap().close();
    let left = "SELECT group_concat(id || ifnull(verdict, '-') || ifnull(decided_at, '-'))
        FROM approvals";
    let left: String = connection.query_row(left, [], |row| row.get(0)).unwrap();
    assert_eq!(left, "1expired5,2--");
}
