-- For a conversation that was imported: its name at the source, so that a
-- second import finds it, and when it came. The name begins with `partial:`
-- until all messages are there.
ALTER TABLE conversations ADD COLUMN imported_from TEXT;
ALTER TABLE conversations ADD COLUMN imported_at INTEGER;
CREATE UNIQUE INDEX conversations_by_import ON conversations (imported_from)
    WHERE imported_from IS NOT NULL;
