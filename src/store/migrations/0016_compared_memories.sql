-- Memories are compared with a message one by one.
DROP TRIGGER memories_fts_insert;
DROP TRIGGER memories_fts_delete;
DROP TABLE memories_fts;
