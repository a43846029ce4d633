-- A key outlives the turn that it began: a repeat after that was deleted must not run again.
CREATE TABLE lasting_keys (
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    request BLOB NOT NULL,
    -- Whose row may be gone.
    turn_id INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (scope, key)
) WITHOUT ROWID;
INSERT INTO lasting_keys (scope, key, request, turn_id, created_at)
    SELECT scope, key, request, turn_id, created_at FROM idempotency;
DROP TABLE idempotency;
ALTER TABLE lasting_keys RENAME TO idempotency;
CREATE INDEX idempotency_by_turn ON idempotency (turn_id);
