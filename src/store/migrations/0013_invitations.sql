-- Links by which a person chooses a password, once: who is invited and has none yet,
-- and who forgot theirs.
CREATE TABLE invitations (
    id INTEGER PRIMARY KEY,
    -- A new link of the same person replaces the one before.
    user_id INTEGER NOT NULL UNIQUE REFERENCES users (id) ON DELETE CASCADE,
    -- SHA-256 of the secret in the link: the secret itself is never stored.
    fingerprint BLOB NOT NULL UNIQUE,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
);

-- How a token is narrowed beyond its role.
-- The names of the only tools of its turns, with commas between them; absent for all.
ALTER TABLE tokens ADD COLUMN tools TEXT;
ALTER TABLE tokens ADD COLUMN household_only INTEGER NOT NULL DEFAULT 0;

-- The people beside its owner in whose name a token may ask.
CREATE TABLE token_speaks_for (
    token_id INTEGER NOT NULL REFERENCES tokens (id) ON DELETE CASCADE,
    user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    PRIMARY KEY (token_id, user_id)
) WITHOUT ROWID;

-- The only tools of a turn that was begun with such a token.
ALTER TABLE turns ADD COLUMN tools TEXT;
