-- Whom somebody lets remind them: each maker asks once.
CREATE TABLE reminders_allowed (
    person_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    maker_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    PRIMARY KEY (person_id, maker_id)
) WITHOUT ROWID;
CREATE INDEX reminders_allowed_by_maker ON reminders_allowed (maker_id);

-- Who asks the owner for that with this reminder, which is paused until they answer.
ALTER TABLE schedules ADD COLUMN asked_by INTEGER REFERENCES users (id) ON DELETE CASCADE;
CREATE INDEX schedules_by_asker ON schedules (asked_by) WHERE asked_by IS NOT NULL;
