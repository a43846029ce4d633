-- New messages and titles are indexed in batches: everything before is there already, or is
-- made from its other end.
INSERT INTO meta (key, value) SELECT 'indexed_to', ifnull(max(id), 0) FROM messages;
INSERT INTO meta (key, value) SELECT 'titled_to', ifnull(max(id), 0) FROM conversations;
