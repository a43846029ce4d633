//! An update of the program: the database as each earlier version left it is copied,
//! then upgraded with every row as it was.

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use rusqlite::types::Value;
use serde_json::json;

use crate::scenarios::{check_integrity, count};
use support::home::{TemporaryDirectory, write_config};
use support::program::{printed, run};

/// The data directories of earlier versions that are kept, with their schemas.
const FROZEN: [(&str, i64); 2] = [("0.1.0", 6), ("schema-32", 32)];

/// Tables that an upgrade drops on purpose.
const DROPPED: [&str; 1] = ["allowed_tools"];
/// Columns that an upgrade changes on purpose.
const CHANGED: [(&str, &str); 8] = [
    ("approvals", "decided_at"),
    ("approvals", "decided_by"),
    ("approvals", "verdict"),
    ("conversations", "owner_id"),
    ("memories", "speaker"),
    ("messages", "speaker"),
    ("schedules", "owner"),
    ("schedules", "owner_id"),
];

/// Everything in these columns, as text, sorted.
fn rows(database: &Connection, table: &str, columns: &[String]) -> Vec<String> {
    let sql = format!("SELECT {} FROM \"{table}\"", columns.join(", "));
    let mut statement = database.prepare(&sql).unwrap();
    let mut rows: Vec<String> = statement
        .query_map([], |row| {
            let values: Result<Vec<Value>, _> = (0..columns.len()).map(|at| row.get(at)).collect();
            Ok(format!("{:?}", values?))
        })
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    rows.sort();
    rows
}

fn names(database: &Connection, sql: &str) -> Vec<String> {
    let mut statement = database.prepare(sql).unwrap();
    let names = statement.query_map([], |row| row.get(0)).unwrap();
    names.collect::<Result<_, _>>().unwrap()
}

fn columns(database: &Connection, table: &str) -> Vec<String> {
    names(
        database,
        &format!("SELECT name FROM pragma_table_info('{table}')"),
    )
}

fn copy_of(folder: &Path, schema: i64) -> Connection {
    let path = folder.join(format!("backups/hearth-schema-{schema}.db"));
    assert!(path.exists(), "{}", path.display());
    Connection::open(path).unwrap()
}

#[test]
fn every_row_of_every_frozen_directory_is_copied_and_upgraded() {
    for (version, schema) in FROZEN {
        let folder = TemporaryDirectory::new();
        let released = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
        let released = released.join(version).join("hearth.db");
        let database = folder.path().join("hearth.db");
        fs::copy(&released, &database).unwrap();
        write_config(folder.path(), json!({}));

        // A command upgrades it and does nothing else.
        let output = run(folder.path(), &["memory", "list"]);
        assert!(output.status.success(), "{}", printed(&output));

        // Opening writes beside the file, which may not be ours.
        let as_released = folder.path().join("as-released.db");
        fs::copy(&released, &as_released).unwrap();
        let before = Connection::open(&as_released).unwrap();
        let after = Connection::open(&database).unwrap();
        let pragma = "SELECT user_version FROM pragma_user_version";
        let is_upgraded = count(&after, pragma) > schema;
        let copy = is_upgraded.then(|| copy_of(folder.path(), schema));
        if let Some(copy) = &copy {
            // The earlier version opens it again: nothing in it is newer than that.
            assert_eq!(count(copy, pragma), schema, "{version}");
            let objects = "SELECT sql FROM sqlite_schema
                 WHERE sql NOT NULL AND tbl_name <> 'backup_files' ORDER BY sql";
            assert_eq!(names(copy, objects), names(&before, objects), "{version}");
        }
        check_integrity(&after);
        let tables = names(
            &before,
            "SELECT name FROM pragma_table_list
             WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite_%'",
        );
        assert!(tables.len() > 10, "{tables:?}");
        let mut seen = 0;
        for table in tables {
            let of_before = columns(&before, &table);
            let expected = rows(&before, &table, &of_before);
            if let Some(copy) = &copy {
                assert_eq!(rows(copy, &table, &of_before), expected, "{table}");
            }
            let of_after = columns(&after, &table);
            if of_after.is_empty() {
                assert!(DROPPED.contains(&&*table), "{table} is gone");
                continue;
            }
            let is_kept = |column: &String| {
                of_after.contains(column) && !CHANGED.contains(&(&*table, &**column))
            };
            let kept: Vec<String> = of_before.into_iter().filter(is_kept).collect();
            let found = rows(&after, &table, &kept);
            for row in rows(&before, &table, &kept) {
                assert!(
                    found.contains(&row),
                    "{table} {kept:?}: {row} is not in {found:#?}"
                );
                seen += 1;
            }
        }
        assert!(seen > 100, "{seen} rows");

        // The way back.
        drop((before, after, copy));
        let path = folder
            .path()
            .join(format!("backups/hearth-schema-{schema}.db"));
        let restored = run(folder.path(), &["restore", path.to_str().unwrap()]);
        assert!(restored.status.success(), "{}", printed(&restored));
        let database = Connection::open(&database).unwrap();
        assert_eq!(count(&database, pragma), schema, "{version}");
    }
}
