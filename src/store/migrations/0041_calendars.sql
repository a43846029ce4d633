-- Calendars that are kept elsewhere, read by CalDAV or as a file.
CREATE TABLE calendars (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    -- The name in lower case.
    folded TEXT NOT NULL,
    url TEXT NOT NULL,
    username TEXT,
    -- Encrypted: the key is in a file of its own.
    password BLOB,
    owner_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    audience_id INTEGER NOT NULL,
    -- None is a webhook account's.
    account TEXT,
    is_read_only INTEGER NOT NULL,
    -- Whether an admin has given the address: it may be in the home network.
    may_be_local INTEGER NOT NULL,
    refresh_minutes INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    -- Counts changes made here, which a reading that began before does not know.
    revision INTEGER NOT NULL DEFAULT 0,
    next_at INTEGER NOT NULL,
    -- When it was last read, and when the whole of it was.
    read_at INTEGER,
    whole_at INTEGER,
    -- What is wrong with it or was left out, and whether it could not be read at all.
    problem TEXT,
    is_failing INTEGER NOT NULL DEFAULT 0,
    -- What the server said: where it is, which version it has, whether it may be changed, and
    -- under which addresses its owner is invited.
    collection TEXT,
    version TEXT,
    can_write INTEGER NOT NULL DEFAULT 0,
    addresses TEXT NOT NULL DEFAULT '',
    -- The household's zone when it was read.
    zone TEXT,
    UNIQUE (owner_id, folded)
);
CREATE INDEX calendars_due ON calendars (next_at);

-- The times of their events, from a while ago until two years ahead.
CREATE TABLE calendar_events (
    id INTEGER PRIMARY KEY,
    calendar_id INTEGER NOT NULL REFERENCES calendars (id) ON DELETE CASCADE,
    uid TEXT NOT NULL,
    -- Which one of an event that comes again; empty for one that comes once.
    occurrence TEXT NOT NULL,
    -- Where the server has it.
    href TEXT,
    starts_at INTEGER NOT NULL,
    ends_at INTEGER NOT NULL,
    -- Of one that takes whole days, as 2026-11-27.
    first_day TEXT,
    last_day TEXT,
    title TEXT NOT NULL,
    location TEXT NOT NULL,
    description TEXT NOT NULL,
    -- Who invites, if somebody else does.
    organizer TEXT,
    -- Whether others are invited.
    has_guests INTEGER NOT NULL,
    -- Whether anybody may have written it.
    is_outside INTEGER NOT NULL,
    UNIQUE (calendar_id, uid, occurrence)
);
CREATE INDEX calendar_events_by_time ON calendar_events (starts_at);
