-- Of a file that a tool brought, the turn. Its reply carries it, once there is one.
ALTER TABLE attachments ADD COLUMN turn_id INTEGER REFERENCES turns (id) ON DELETE CASCADE;
CREATE INDEX attachments_by_turn ON attachments (turn_id) WHERE turn_id IS NOT NULL;
