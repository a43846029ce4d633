-- What a person's phone is told. `about` is the approval or the turn, of which there is one
-- for each person and service; of a message of its own, its own id.
CREATE TABLE notifications (
    id INTEGER PRIMARY KEY,
    user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    conversation_id INTEGER NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    service TEXT NOT NULL,
    cause TEXT NOT NULL,
    about INTEGER NOT NULL,
    -- Of a message; of the others it is read where it stands.
    content TEXT,
    attempts INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    next_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    -- When it was sent or given up; absent while it waits.
    finished_at INTEGER
);
CREATE UNIQUE INDEX notifications_by_cause ON notifications (about, user_id, service);
CREATE INDEX notifications_by_user ON notifications (user_id, finished_at);
CREATE INDEX notifications_by_conversation ON notifications (conversation_id);
CREATE INDEX notifications_due ON notifications (next_at) WHERE finished_at IS NULL;
