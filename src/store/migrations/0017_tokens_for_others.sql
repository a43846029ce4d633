-- Whether a token was made to speak for others, too: it stays narrowed when the last of them
-- is removed.
ALTER TABLE tokens ADD COLUMN speaks_for_others INTEGER NOT NULL DEFAULT 0;
UPDATE tokens SET speaks_for_others = 1
WHERE EXISTS (SELECT 1 FROM token_speaks_for WHERE token_id = tokens.id);
