-- What each purpose used, by person (0: nobody of the household) and model; `usage` sums the
-- same by day and model.
CREATE TABLE usage_by_purpose (
    -- UTC, as 2026-11-21.
    day TEXT NOT NULL,
    user_id INTEGER NOT NULL,
    purpose TEXT NOT NULL,
    model TEXT NOT NULL,
    turns INTEGER NOT NULL,
    input INTEGER NOT NULL,
    output INTEGER NOT NULL,
    cached INTEGER NOT NULL,
    PRIMARY KEY (day, user_id, purpose, model)
) WITHOUT ROWID;
