-- Results of tools that are longer than what a model is shown at a time.
CREATE TABLE kept_results (
    id INTEGER PRIMARY KEY,
    conversation_id INTEGER NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    content TEXT NOT NULL,
    -- Whether anybody outside the household may have written it.
    is_outside INTEGER NOT NULL,
    created_at INTEGER NOT NULL
);
CREATE INDEX kept_results_by_conversation ON kept_results (conversation_id);
