-- Whether it was uploaded with a token that is narrowed to what is the household's. Until a
-- message carries it, such a token sees no other.
ALTER TABLE attachments ADD COLUMN household_only INTEGER NOT NULL DEFAULT 0;
