-- The terms of titles, as message_terms has those of messages.
CREATE VIRTUAL TABLE title_terms USING fts5 (
    terms,
    content = '',
    contentless_delete = 1,
    detail = none,
    tokenize = 'ascii'
);
CREATE TRIGGER title_terms_delete AFTER DELETE ON conversations BEGIN
    DELETE FROM title_terms WHERE rowid = old.id;
END;
-- Conversations before this one get theirs in the background.
INSERT INTO meta (key, value)
    SELECT 'untitled_before', max(id) + 1 FROM conversations HAVING max(id) IS NOT NULL;
