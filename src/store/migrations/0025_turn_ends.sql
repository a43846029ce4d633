-- Where a turn that ended without a reply stands among the messages of its conversation: what a
-- model is shown keeps the order in which turns ended.
ALTER TABLE turns ADD COLUMN ended INTEGER;
UPDATE turns SET ended = message_id WHERE reply_id IS NULL AND finished_at IS NOT NULL;
CREATE INDEX turns_without_reply ON turns (conversation_id, ended) WHERE ended IS NOT NULL;

-- The tokens of a request for which a conversation was folded: a larger model is shown it anew.
ALTER TABLE conversations ADD COLUMN folded_for INTEGER NOT NULL DEFAULT 0;
