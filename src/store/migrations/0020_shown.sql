-- What a model was shown with a turn stays with it: the beginning of its next request is then the
-- same, and cached. A memory that is forgotten goes from there, too.
CREATE TABLE shown_memories (
    turn_id INTEGER NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    memory_id INTEGER NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    PRIMARY KEY (turn_id, position)
) WITHOUT ROWID;
CREATE INDEX shown_memories_by_memory ON shown_memories (memory_id);

-- The last message of the newest turn that the model is no longer shown, and of the newest one
-- whose tool results it is shown in short.
ALTER TABLE conversations ADD COLUMN hidden_until INTEGER NOT NULL DEFAULT 0;
ALTER TABLE conversations ADD COLUMN shortened_until INTEGER NOT NULL DEFAULT 0;

-- Why a reply is not whole.
ALTER TABLE messages ADD COLUMN finish_reason TEXT;
