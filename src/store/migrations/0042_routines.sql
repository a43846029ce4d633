-- A reminder is told as it is, a routine is a prompt. What waits for something else than a time,
-- and a reminder that was told and waits for its person, has no next time.
CREATE TABLE rebuilt_schedules (
    id INTEGER PRIMARY KEY,
    -- What the model is asked, or what is told if `is_said`.
    prompt TEXT NOT NULL,
    is_said INTEGER NOT NULL DEFAULT 0,
    owner TEXT,
    owner_id INTEGER REFERENCES users (id) ON DELETE CASCADE,
    audience_id INTEGER NOT NULL DEFAULT 1,
    -- Absent until the first run of one that has a conversation of its own.
    conversation_id INTEGER REFERENCES conversations (id) ON DELETE SET NULL,
    -- That of its turns: `schedule`, or `webhook:ACCOUNT` for what came from there.
    channel TEXT NOT NULL,
    -- The webhook account that gets the replies, too.
    account TEXT,
    -- Five fields; absent for one that runs once.
    cron TEXT,
    next_at INTEGER,
    -- 1 where `next_at` was given as a wait (`+20m`): it moves with the clock.
    is_wait INTEGER NOT NULL DEFAULT 0,
    -- The only time as it was given on the household's clocks: it moves with the time zone.
    local_at TEXT,
    -- What it waits for beside a time: `list NAME` or `webhook ACCOUNT`.
    trigger TEXT,
    -- What has happened since the last run, for the model; from outside if the second is 1.
    trigger_text TEXT,
    is_trigger_outside INTEGER NOT NULL DEFAULT 0,
    -- The calls whose results must differ from those of the run before, as JSON, and their digest.
    only_if_changed TEXT,
    digest TEXT,
    -- When `next_at` was found: where that lies ahead, the clock was wrong.
    planned_at INTEGER NOT NULL,
    last_at INTEGER,
    -- Since when a reminder was told and not finished; the turn that told it, and whether its
    -- person was there then, or came later.
    told_at INTEGER,
    told_by INTEGER,
    is_seen INTEGER NOT NULL DEFAULT 0,
    is_paused INTEGER NOT NULL DEFAULT 0,
    -- Whether text from outside was at hand when it was created.
    is_outside INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL
);
INSERT INTO rebuilt_schedules (id, prompt, owner, owner_id, audience_id, conversation_id, channel,
        account, cron, next_at, is_wait, planned_at, last_at, is_paused, is_outside, created_at)
    SELECT id, prompt, owner, owner_id, audience_id, conversation_id, channel,
        account, cron, next_at, is_wait, planned_at, last_at, is_paused, is_outside, created_at
    FROM schedules;
DROP TABLE schedules;
ALTER TABLE rebuilt_schedules RENAME TO schedules;
CREATE INDEX schedules_due ON schedules (next_at) WHERE is_paused = 0;
CREATE INDEX schedules_by_conversation ON schedules (conversation_id);
CREATE INDEX schedules_by_owner ON schedules (owner_id);
CREATE INDEX schedules_by_trigger ON schedules (trigger) WHERE trigger IS NOT NULL;
-- What became of each run of a schedule.
CREATE TABLE schedule_runs (
    id INTEGER PRIMARY KEY,
    schedule_id INTEGER NOT NULL REFERENCES schedules (id) ON DELETE CASCADE,
    -- Of which a silent one leaves nothing else.
    turn_id INTEGER NOT NULL,
    at INTEGER NOT NULL,
    -- `running`, `told`, `replied`, `silent`, `unchanged`, `failed` or `cancelled`.
    outcome TEXT NOT NULL,
    input_tokens INTEGER NOT NULL DEFAULT 0,
    output_tokens INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX schedule_runs_by_schedule ON schedule_runs (schedule_id, id);
CREATE INDEX schedule_runs_by_turn ON schedule_runs (turn_id);
-- The schedule that began the turn, which may be gone.
ALTER TABLE turns ADD COLUMN schedule_id INTEGER;
-- When phones of this person are to be quiet, such as 22:00-07:00: their own choice.
ALTER TABLE users ADD COLUMN quiet_hours TEXT;
