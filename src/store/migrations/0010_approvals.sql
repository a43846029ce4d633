-- A permission for the rest of a conversation covers the one who asked. Of the older
-- ones nobody can tell whom they covered.
DROP TABLE allowed_tools;
CREATE TABLE grants (
    conversation_id INTEGER NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    tool TEXT NOT NULL,
    -- One of both: the person, or the webhook account.
    user_id INTEGER REFERENCES users (id) ON DELETE CASCADE,
    account TEXT
);
CREATE UNIQUE INDEX grants_by_conversation
    ON grants (conversation_id, tool, ifnull(user_id, 0), ifnull(account, ''));
CREATE INDEX grants_by_user ON grants (user_id) WHERE user_id IS NOT NULL;

-- Whether it was asked because text from outside was in the conversation.
ALTER TABLE approvals ADD COLUMN is_outside INTEGER NOT NULL DEFAULT 0;

-- Whether text from outside was ever shown to the model in it.
ALTER TABLE conversations ADD COLUMN has_outside_text INTEGER NOT NULL DEFAULT 0;
UPDATE conversations SET has_outside_text = 1 WHERE id IN (
    SELECT conversation_id FROM turns WHERE channel LIKE 'webhook:%'
    UNION
    SELECT t.conversation_id FROM steps s CROSS JOIN turns t ON t.id = s.turn_id
    WHERE s.body LIKE '%"outside":true%');

-- Whether text from outside was in the conversation when it was remembered.
ALTER TABLE memories ADD COLUMN is_outside INTEGER NOT NULL DEFAULT 0;
