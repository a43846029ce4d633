-- What a memory means, in numbers that a model has made of it. A memory that is forgotten takes
-- them along.
CREATE TABLE memory_vectors (
    memory_id INTEGER PRIMARY KEY REFERENCES memories (id) ON DELETE CASCADE,
    vector BLOB NOT NULL
);
