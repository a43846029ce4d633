-- 1 where `next_at` was given as a wait (`+20m`): it moves with the clock.
ALTER TABLE schedules ADD COLUMN is_wait INTEGER NOT NULL DEFAULT 0;
-- What the model had written when the turn was cancelled.
ALTER TABLE turns ADD COLUMN said TEXT;
