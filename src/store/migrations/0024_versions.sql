-- A message may be written anew. All its versions name the oldest one. One of them is shown, with
-- what follows it; each of the others, and what follows it, names the version that it goes with.
ALTER TABLE messages ADD COLUMN version_of INTEGER;
ALTER TABLE messages ADD COLUMN hidden_with INTEGER;
CREATE INDEX messages_by_version ON messages (version_of) WHERE version_of IS NOT NULL;
CREATE INDEX messages_hidden ON messages (hidden_with) WHERE hidden_with IS NOT NULL;

-- What its owner chose for a conversation; absent for what the household has.
ALTER TABLE conversations ADD COLUMN model TEXT;
ALTER TABLE conversations ADD COLUMN instructions TEXT;
-- The model that one turn is to ask.
ALTER TABLE turns ADD COLUMN wanted_model TEXT;

-- How each person keeps the conversations that they see. Without read_until, what others brought
-- about since this version is new to them.
CREATE TABLE conversation_marks (
    user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    conversation_id INTEGER NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    is_pinned INTEGER NOT NULL DEFAULT 0,
    is_archived INTEGER NOT NULL DEFAULT 0,
    read_until INTEGER,
    PRIMARY KEY (user_id, conversation_id)
) WITHOUT ROWID;
CREATE INDEX conversation_marks_by_conversation ON conversation_marks (conversation_id);
INSERT INTO meta (key, value) SELECT 'unread_since', ifnull(max(id), 0) FROM messages;
