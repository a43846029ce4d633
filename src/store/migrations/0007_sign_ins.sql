-- Where people signed in from with their password, so that guesses from elsewhere
-- do not lock them out.
CREATE TABLE sign_ins (
    user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    place TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (user_id, place)
) WITHOUT ROWID;
