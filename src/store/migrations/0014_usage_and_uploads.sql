-- What a person used is shown to them as the sum of all is to an admin. Of what was
-- counted before, only the sum of input and output is known.
ALTER TABLE usage_by_person RENAME COLUMN tokens TO input;
ALTER TABLE usage_by_person ADD COLUMN output INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_by_person ADD COLUMN cached INTEGER NOT NULL DEFAULT 0;

-- What has arrived takes space, not what was announced: announcing costs nothing, and
-- would leave no space for others.
DROP TRIGGER attachments_insert;
DROP TRIGGER attachments_resize;
DROP TRIGGER attachments_delete;
CREATE TRIGGER attachments_insert AFTER INSERT ON attachments BEGIN
    UPDATE meta SET value = value + new.received WHERE key = 'attachment_bytes';
END;
CREATE TRIGGER attachments_resize AFTER UPDATE OF received ON attachments BEGIN
    UPDATE meta SET value = value + new.received - old.received WHERE key = 'attachment_bytes';
END;
CREATE TRIGGER attachments_delete AFTER DELETE ON attachments BEGIN
    UPDATE meta SET value = value - old.received WHERE key = 'attachment_bytes';
    INSERT INTO deleted_attachments (id) VALUES (old.id);
END;
UPDATE meta SET value = (SELECT ifnull(sum(received), 0) FROM attachments)
WHERE key = 'attachment_bytes';
