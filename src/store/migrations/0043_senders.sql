-- Whose a sender of a webhook account or of Telegram is. No configuration names one.
CREATE TABLE senders (
    account TEXT NOT NULL,
    -- As the account names it.
    sender TEXT NOT NULL,
    user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (account, sender)
) WITHOUT ROWID;
CREATE INDEX senders_by_user ON senders (user_id);

-- Codes by which a person links a sender, once.
CREATE TABLE link_codes (
    -- SHA-256 of the code: the code itself is never stored.
    fingerprint BLOB PRIMARY KEY,
    user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    account TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    -- A new code replaces the one before.
    UNIQUE (user_id, account)
) WITHOUT ROWID;

-- Chats of Telegram that were told, once, that they are strangers.
CREATE TABLE refused_chats (chat TEXT PRIMARY KEY) WITHOUT ROWID;

-- The account through whose linked sender its owner began it, and calls it by `external_name`.
-- It is the owner's and not the account's, so that `account` is absent.
ALTER TABLE conversations ADD COLUMN sender_account TEXT;
CREATE UNIQUE INDEX conversations_by_sender
    ON conversations (owner_id, sender_account, external_name)
    WHERE sender_account IS NOT NULL;

-- What people are called; the name they sign in with when absent.
ALTER TABLE users ADD COLUMN display_name TEXT;
