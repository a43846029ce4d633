-- The terms of messages, as chat/search/index.rs makes them: of word forms one, of scripts
-- without spaces runs of characters. Which messages have a term is all that is asked.
DROP TRIGGER messages_fts_insert;
DROP TRIGGER messages_fts_delete;
DROP TABLE messages_fts;
CREATE VIRTUAL TABLE message_terms USING fts5 (
    terms,
    content = '',
    contentless_delete = 1,
    detail = none,
    prefix = '2 3',
    tokenize = 'ascii'
);
CREATE TRIGGER message_terms_delete AFTER DELETE ON messages BEGIN
    DELETE FROM message_terms WHERE rowid = old.id;
END;
-- Messages before this one get theirs in the background.
INSERT INTO meta (key, value)
    SELECT 'unindexed_before', max(id) + 1 FROM messages HAVING max(id) IS NOT NULL;
