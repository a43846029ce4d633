-- What a tool asks a person while it runs, as JSON: its words and the form. Absent where
-- permission is asked for. Answers are not stored.
ALTER TABLE approvals ADD COLUMN question TEXT;
