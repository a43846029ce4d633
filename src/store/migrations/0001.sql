-- Every id is the row's primary key and rises with time (see ids.rs).
-- Times are milliseconds since 1970.

CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value
) WITHOUT ROWID;

CREATE TABLE users (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    -- The name in lower case, Unicode's and not just ASCII's.
    folded_name TEXT NOT NULL UNIQUE,
    role TEXT NOT NULL,
    password_hash TEXT NOT NULL,
    created_at INTEGER NOT NULL
);

CREATE TABLE tokens (
    id INTEGER PRIMARY KEY,
    user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    -- SHA-256 of the token: the token itself is never stored.
    fingerprint BLOB NOT NULL UNIQUE,
    role TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER
);
CREATE INDEX tokens_by_user ON tokens (user_id);

CREATE TABLE machines (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    public_key BLOB NOT NULL,
    registered_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE conversations (
    id INTEGER PRIMARY KEY,
    title TEXT NOT NULL,
    channel TEXT NOT NULL,
    -- Set together, for what a webhook account calls by its own name.
    account TEXT,
    external_name TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    message_count INTEGER NOT NULL,
    -- Id of the newest message: the order of the list and its cursor.
    latest INTEGER NOT NULL
);
CREATE UNIQUE INDEX conversations_by_name ON conversations (account, external_name)
    WHERE external_name IS NOT NULL;
CREATE INDEX conversations_by_latest ON conversations (latest);

CREATE TABLE messages (
    id INTEGER PRIMARY KEY,
    conversation_id INTEGER NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    turn_id INTEGER,
    role TEXT NOT NULL,
    content TEXT NOT NULL,
    speaker TEXT,
    created_at INTEGER NOT NULL
);
CREATE INDEX messages_by_conversation ON messages (conversation_id, id);

-- Found by words and listed by id, never ranked: no columnsize. Without an
-- index of beginnings, a word being typed costs as much as there are messages.
CREATE VIRTUAL TABLE messages_fts USING fts5 (
    content,
    content = 'messages',
    content_rowid = 'id',
    columnsize = 0,
    prefix = '2 3 4 5',
    tokenize = 'unicode61 remove_diacritics 2'
);
CREATE TRIGGER messages_fts_insert AFTER INSERT ON messages BEGIN
    INSERT INTO messages_fts (rowid, content) VALUES (new.id, new.content);
END;
CREATE TRIGGER messages_fts_delete AFTER DELETE ON messages BEGIN
    INSERT INTO messages_fts (messages_fts, rowid, content) VALUES ('delete', old.id, old.content);
END;

CREATE TABLE turns (
    id INTEGER PRIMARY KEY,
    conversation_id INTEGER NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    state TEXT NOT NULL,
    channel TEXT NOT NULL,
    account TEXT,
    message_id INTEGER NOT NULL,
    reply_id INTEGER,
    error_code TEXT,
    error_message TEXT,
    error_status INTEGER,
    error_retry_after INTEGER,
    created_at INTEGER NOT NULL,
    started_at INTEGER,
    -- Absent while the state is not a final one.
    finished_at INTEGER
);
CREATE INDEX turns_by_conversation ON turns (conversation_id, id);
CREATE INDEX turns_unfinished ON turns (conversation_id) WHERE finished_at IS NULL;

-- In the order of their ids; the body is JSON.
CREATE TABLE steps (
    id INTEGER PRIMARY KEY,
    turn_id INTEGER NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
    body TEXT NOT NULL
);
CREATE INDEX steps_by_turn ON steps (turn_id);

CREATE TABLE approvals (
    id INTEGER PRIMARY KEY,
    turn_id INTEGER NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
    conversation_id INTEGER NOT NULL,
    call_id TEXT NOT NULL,
    tool TEXT NOT NULL,
    arguments TEXT NOT NULL,
    reason TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    -- Absent while undecided.
    verdict TEXT,
    decided_by TEXT,
    decided_at INTEGER
);
CREATE INDEX approvals_by_turn ON approvals (turn_id);
CREATE INDEX approvals_undecided ON approvals (expires_at) WHERE verdict IS NULL;

CREATE TABLE allowed_tools (
    conversation_id INTEGER NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    tool TEXT NOT NULL,
    PRIMARY KEY (conversation_id, tool)
) WITHOUT ROWID;

CREATE TABLE deliveries (
    id INTEGER PRIMARY KEY,
    turn_id INTEGER NOT NULL,
    conversation_id INTEGER NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    account TEXT NOT NULL,
    body TEXT NOT NULL,
    state TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    next_at INTEGER NOT NULL,
    last_error TEXT,
    -- When it was delivered or given up; absent while pending or held.
    finished_at INTEGER
);
CREATE INDEX deliveries_by_conversation ON deliveries (conversation_id, finished_at);
CREATE INDEX deliveries_by_state ON deliveries (state);
CREATE INDEX deliveries_due ON deliveries (next_at) WHERE state = 'pending';

CREATE TABLE idempotency (
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    request BLOB NOT NULL,
    turn_id INTEGER NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (scope, key)
) WITHOUT ROWID;
CREATE INDEX idempotency_by_turn ON idempotency (turn_id);

CREATE TABLE memories (
    id INTEGER PRIMARY KEY,
    content TEXT NOT NULL UNIQUE,
    speaker TEXT,
    created_at INTEGER NOT NULL
);
CREATE VIRTUAL TABLE memories_fts USING fts5 (
    content,
    content = 'memories',
    content_rowid = 'id',
    prefix = '2 3',
    tokenize = 'unicode61 remove_diacritics 2'
);
CREATE TRIGGER memories_fts_insert AFTER INSERT ON memories BEGIN
    INSERT INTO memories_fts (rowid, content) VALUES (new.id, new.content);
END;
CREATE TRIGGER memories_fts_delete AFTER DELETE ON memories BEGIN
    INSERT INTO memories_fts (memories_fts, rowid, content) VALUES ('delete', old.id, old.content);
END;

CREATE TABLE usage (
    -- UTC, as 2026-11-21.
    day TEXT NOT NULL,
    model TEXT NOT NULL,
    input INTEGER NOT NULL,
    output INTEGER NOT NULL,
    cached INTEGER NOT NULL,
    turns INTEGER NOT NULL,
    PRIMARY KEY (day, model)
) WITHOUT ROWID;
