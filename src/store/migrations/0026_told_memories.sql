-- In which turns the model stored a memory, or a tool told it to the model. One that is forgotten
-- is removed from the steps of these turns.
CREATE TABLE told_memories (
    memory_id INTEGER NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    turn_id INTEGER NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
    PRIMARY KEY (memory_id, turn_id)
) WITHOUT ROWID;
CREATE INDEX told_memories_by_turn ON told_memories (turn_id);
