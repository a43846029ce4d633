-- What a message means, in numbers that a model has made of it and of those before and after it;
-- none before they are made.
CREATE TABLE message_vectors (
    message_id INTEGER PRIMARY KEY REFERENCES messages (id) ON DELETE CASCADE,
    conversation_id INTEGER NOT NULL,
    vector BLOB
);
CREATE INDEX message_vectors_to_make ON message_vectors (message_id) WHERE vector IS NULL;
-- Where vectors are made at all, the key names their model.
CREATE TRIGGER message_vectors_insert AFTER INSERT ON messages
WHEN EXISTS (SELECT 1 FROM meta WHERE key = 'message_vectors') BEGIN
    INSERT INTO message_vectors (message_id, conversation_id)
        VALUES (new.id, new.conversation_id);
    UPDATE message_vectors SET vector = NULL WHERE message_id =
        (SELECT max(id) FROM messages
         WHERE conversation_id = new.conversation_id AND id < new.id);
END;
-- A message that is deleted takes its own along, and is part of those beside it no longer.
CREATE TRIGGER message_vectors_delete AFTER DELETE ON messages
WHEN EXISTS (SELECT 1 FROM meta WHERE key = 'message_vectors') BEGIN
    UPDATE message_vectors SET vector = NULL WHERE message_id IN (
        (SELECT max(id) FROM messages
         WHERE conversation_id = old.conversation_id AND id < old.id),
        (SELECT min(id) FROM messages
         WHERE conversation_id = old.conversation_id AND id > old.id));
END;
