-- Lists of the household: what to buy, what to do.
CREATE TABLE lists (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    -- The name in lower case.
    folded TEXT NOT NULL UNIQUE,
    -- Whether text from outside was in the conversation in which it was made.
    is_outside INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE list_items (
    id INTEGER PRIMARY KEY,
    list_id INTEGER NOT NULL REFERENCES lists (id) ON DELETE CASCADE,
    text TEXT NOT NULL,
    is_checked INTEGER NOT NULL DEFAULT 0,
    -- The same, of the one in which it was added.
    is_outside INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX list_items_by_list ON list_items (list_id, id);
