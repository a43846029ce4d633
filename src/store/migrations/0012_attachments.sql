-- Files. One that a message carries is its conversation's; one that none carries yet,
-- or that has not arrived whole, is its uploader's alone.
CREATE TABLE attachments (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    -- What the content shows; absent until all of it has arrived.
    media_type TEXT,
    -- What the uploader said: a hint.
    declared_type TEXT,
    -- Of one that is still arriving, the space that it may need.
    bytes INTEGER NOT NULL,
    received INTEGER NOT NULL DEFAULT 0,
    user_id INTEGER REFERENCES users (id) ON DELETE CASCADE,
    message_id INTEGER REFERENCES messages (id) ON DELETE CASCADE,
    -- Absent once a message carries it.
    expires_at INTEGER
);
CREATE INDEX attachments_by_message ON attachments (message_id) WHERE message_id IS NOT NULL;
CREATE INDEX attachments_by_user ON attachments (user_id) WHERE user_id IS NOT NULL;
CREATE INDEX attachments_by_expiry ON attachments (expires_at) WHERE expires_at IS NOT NULL;

-- No foreign key: what is large is deleted in parts, after its row.
CREATE TABLE attachment_pieces (
    id INTEGER PRIMARY KEY,
    attachment_id INTEGER NOT NULL,
    start INTEGER NOT NULL,
    data BLOB NOT NULL
);
CREATE UNIQUE INDEX attachment_pieces_by_start ON attachment_pieces (attachment_id, start);
-- Those whose pieces are still to be deleted.
CREATE TABLE deleted_attachments (id INTEGER PRIMARY KEY);

INSERT INTO meta (key, value) VALUES ('attachment_bytes', 0);
CREATE TRIGGER attachments_insert AFTER INSERT ON attachments BEGIN
    UPDATE meta SET value = value + new.bytes WHERE key = 'attachment_bytes';
END;
CREATE TRIGGER attachments_resize AFTER UPDATE OF bytes ON attachments BEGIN
    UPDATE meta SET value = value + new.bytes - old.bytes WHERE key = 'attachment_bytes';
END;
CREATE TRIGGER attachments_delete AFTER DELETE ON attachments BEGIN
    UPDATE meta SET value = value - old.bytes WHERE key = 'attachment_bytes';
    INSERT INTO deleted_attachments (id) VALUES (old.id);
END;

ALTER TABLE messages ADD COLUMN attachment_count INTEGER NOT NULL DEFAULT 0;
