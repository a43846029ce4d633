-- Who may see a thing: a set of people. Row 1 is the household: everybody who has the
-- role user or admin at that moment.
CREATE TABLE audiences (
    id INTEGER PRIMARY KEY,
    -- `household`, or the ids of its people in rising order, with commas between them.
    members TEXT NOT NULL UNIQUE
);
INSERT INTO audiences (id, members) VALUES (1, 'household');

CREATE TABLE audience_members (
    user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    audience_id INTEGER NOT NULL REFERENCES audiences (id) ON DELETE CASCADE,
    PRIMARY KEY (user_id, audience_id)
) WITHOUT ROWID;
CREATE INDEX audience_members_by_audience ON audience_members (audience_id);

-- What is there already is the household's. A webhook's caller names its speakers
-- freely, so that theirs have no owner.
ALTER TABLE conversations ADD COLUMN owner_id INTEGER REFERENCES users (id) ON DELETE SET NULL;
ALTER TABLE conversations ADD COLUMN audience_id INTEGER NOT NULL DEFAULT 1;
UPDATE conversations SET owner_id = (
    SELECT id FROM users WHERE name = (
        SELECT speaker FROM messages WHERE conversation_id = conversations.id ORDER BY id LIMIT 1))
WHERE channel NOT LIKE 'webhook:%';
-- A list is merged from those of the audiences that its reader belongs to.
DROP INDEX conversations_by_latest;
CREATE INDEX conversations_by_audience ON conversations (audience_id, latest);
CREATE INDEX conversations_by_owner ON conversations (owner_id);

-- Who asked; absent for a webhook account. Kept when that person is removed.
ALTER TABLE turns ADD COLUMN user_id INTEGER;

ALTER TABLE schedules ADD COLUMN owner_id INTEGER REFERENCES users (id) ON DELETE CASCADE;
-- That of its conversation, also before the first run creates one.
ALTER TABLE schedules ADD COLUMN audience_id INTEGER NOT NULL DEFAULT 1;
UPDATE schedules SET owner_id = (SELECT id FROM users WHERE name = owner)
WHERE channel NOT LIKE 'webhook:%';

-- The same words may be remembered once for each audience.
CREATE TABLE new_memories (
    id INTEGER PRIMARY KEY,
    content TEXT NOT NULL,
    speaker TEXT,
    created_at INTEGER NOT NULL,
    owner_id INTEGER REFERENCES users (id) ON DELETE SET NULL,
    audience_id INTEGER NOT NULL,
    -- Where it was said; absent for one from before these columns.
    channel TEXT,
    account TEXT,
    UNIQUE (audience_id, content)
);
INSERT INTO new_memories (id, content, speaker, created_at, owner_id, audience_id)
SELECT id, content, speaker, created_at, (SELECT id FROM users WHERE name = speaker), 1
FROM memories;
DROP TABLE memories;
ALTER TABLE new_memories RENAME TO memories;
CREATE TRIGGER memories_fts_insert AFTER INSERT ON memories BEGIN
    INSERT INTO memories_fts (rowid, content) VALUES (new.id, new.content);
END;
CREATE TRIGGER memories_fts_delete AFTER DELETE ON memories BEGIN
    INSERT INTO memories_fts (memories_fts, rowid, content) VALUES ('delete', old.id, old.content);
END;

-- What each person's turns used; `usage` sums the same by day and model.
CREATE TABLE usage_by_person (
    user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    -- UTC, as 2026-11-21.
    day TEXT NOT NULL,
    tokens INTEGER NOT NULL,
    PRIMARY KEY (user_id, day)
) WITHOUT ROWID;
