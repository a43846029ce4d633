-- After which text from outside a question came, one source on a line, and whether an answer
-- can cover later calls.
ALTER TABLE approvals ADD COLUMN outside_sources TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN may_last INTEGER NOT NULL DEFAULT 1;
UPDATE approvals SET may_last = NOT is_outside;
