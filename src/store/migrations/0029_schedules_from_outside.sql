-- Whether text from outside was at hand when it was created.
ALTER TABLE schedules ADD COLUMN is_outside INTEGER NOT NULL DEFAULT 0;
UPDATE schedules SET is_outside = 1
WHERE conversation_id IN (SELECT id FROM conversations WHERE has_outside_text = 1);
