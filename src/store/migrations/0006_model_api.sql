-- What a client asked the model to keep to, in this turn alone.
ALTER TABLE turns ADD COLUMN instructions TEXT;

-- Conversations with clients that send their whole history with every message
-- and name no conversation: found again by what was said last.
CREATE TABLE retold_conversations (
    conversation_id INTEGER PRIMARY KEY REFERENCES conversations (id) ON DELETE CASCADE,
    user_id INTEGER NOT NULL,
    -- SHA-256 of the newest message that the user sent this way.
    newest BLOB NOT NULL
);
CREATE INDEX retold_conversations_by_newest ON retold_conversations (user_id, newest);
