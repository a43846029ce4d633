-- The token with which a program began a conversation that it retells (null: without one), and
-- who saw the conversation then. That token alone continues it, while the same people see it.
ALTER TABLE retold_conversations ADD COLUMN token_id INTEGER
    REFERENCES tokens (id) ON DELETE CASCADE;
ALTER TABLE retold_conversations ADD COLUMN audience_id INTEGER NOT NULL DEFAULT 0;
-- Nobody knows the token of an earlier one, unless it can only have been the person's one. The
-- others are continued by none.
UPDATE retold_conversations SET
    token_id = (SELECT min(id) FROM tokens
        WHERE user_id = retold_conversations.user_id AND name <> 'session'),
    audience_id = (SELECT audience_id FROM conversations WHERE id = conversation_id)
WHERE 1 = (SELECT count(*) FROM tokens
        WHERE user_id = retold_conversations.user_id AND name <> 'session')
    AND user_id NOT IN (SELECT user_id FROM token_speaks_for)
    AND conversation_id NOT IN (SELECT id FROM conversations WHERE channel = 'ollama_api');
DROP INDEX retold_conversations_by_newest;
CREATE INDEX retold_conversations_by_newest ON retold_conversations (user_id, newest, token_id);
CREATE INDEX retold_conversations_by_token ON retold_conversations (token_id)
    WHERE token_id IS NOT NULL;
