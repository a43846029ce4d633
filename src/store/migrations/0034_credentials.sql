-- The token with which a program began a conversation that it retells (null: without one), and
-- who saw the conversation then. That token alone continues it, while the same people see it.
ALTER TABLE retold_conversations ADD COLUMN token_id INTEGER
    REFERENCES tokens (id) ON DELETE CASCADE;
ALTER TABLE retold_conversations ADD COLUMN audience_id INTEGER NOT NULL DEFAULT 0;
-- Of an earlier one nobody knows the token, unless it can only have been the person's one.
UPDATE retold_conversations SET
    token_id = (SELECT min(id) FROM tokens
        WHERE user_id = retold_conversations.user_id AND name <> 'session' HAVING count(*) = 1),
    audience_id = (SELECT audience_id FROM conversations WHERE id = conversation_id);
DELETE FROM retold_conversations WHERE token_id IS NULL
    OR user_id IN (SELECT user_id FROM token_speaks_for)
    OR conversation_id IN (SELECT id FROM conversations WHERE channel = 'ollama_api');
DROP INDEX retold_conversations_by_newest;
CREATE INDEX retold_conversations_by_newest ON retold_conversations (user_id, newest, token_id);
CREATE INDEX retold_conversations_by_token ON retold_conversations (token_id)
    WHERE token_id IS NOT NULL;
