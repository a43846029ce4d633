-- What the model is told in place of a conversation's oldest turns. The turns
-- themselves stay.
CREATE TABLE conversation_summaries (
    conversation_id INTEGER PRIMARY KEY REFERENCES conversations (id) ON DELETE CASCADE,
    -- The newest turn that it covers.
    turn_id INTEGER NOT NULL,
    content TEXT NOT NULL,
    created_at INTEGER NOT NULL
);
