-- Browsers that are told through a push service (RFC 8030). Each goes with the session or
-- token that named it.
CREATE TABLE push_subscriptions (
    id INTEGER PRIMARY KEY,
    user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    token_id INTEGER NOT NULL REFERENCES tokens (id) ON DELETE CASCADE,
    -- Whoever knows it reaches the browser.
    endpoint TEXT NOT NULL UNIQUE,
    -- What messages to it are encrypted with (RFC 8291), in base64url.
    public_key TEXT NOT NULL,
    secret TEXT NOT NULL,
    created_at INTEGER NOT NULL
);
CREATE INDEX push_subscriptions_by_user ON push_subscriptions (user_id);
CREATE INDEX push_subscriptions_by_token ON push_subscriptions (token_id);

-- The browser, of one that the service `push` tells.
ALTER TABLE notifications ADD COLUMN subscription_id INTEGER
    REFERENCES push_subscriptions (id) ON DELETE CASCADE;
CREATE INDEX notifications_by_subscription ON notifications (subscription_id);
DROP INDEX notifications_by_cause;
CREATE UNIQUE INDEX notifications_by_cause
    ON notifications (about, user_id, service, ifnull(subscription_id, 0));
