-- The message that a reply answers, where it is not the one before the reply: others
-- came while its turn waited.
ALTER TABLE messages ADD COLUMN in_reply_to INTEGER;
