-- Prompts that run at a time of their own.
CREATE TABLE schedules (
    id INTEGER PRIMARY KEY,
    prompt TEXT NOT NULL,
    owner TEXT,
    -- Absent until the first run of one that has a conversation of its own.
    conversation_id INTEGER REFERENCES conversations (id) ON DELETE SET NULL,
    -- That of its turns: `schedule`, or `webhook:ACCOUNT` for what came from there.
    channel TEXT NOT NULL,
    -- The webhook account that gets the replies, too.
    account TEXT,
    -- Five fields; absent for one that runs once.
    cron TEXT,
    next_at INTEGER NOT NULL,
    -- When `next_at` was found: where that lies ahead, the clock was wrong.
    planned_at INTEGER NOT NULL,
    last_at INTEGER,
    is_paused INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL
);
CREATE INDEX schedules_due ON schedules (next_at) WHERE is_paused = 0;
CREATE INDEX schedules_by_conversation ON schedules (conversation_id);
