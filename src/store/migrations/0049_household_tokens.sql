-- Whether a token asked that sees and makes only what is the household's.
ALTER TABLE turns ADD COLUMN household_only INTEGER NOT NULL DEFAULT 0;
