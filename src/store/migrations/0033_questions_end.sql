-- A question of a running tool (0032) ended with the program that asked it. Nothing writes the
-- column any more.
UPDATE approvals SET verdict = 'expired', decided_by = 'timeout', decided_at = created_at
 WHERE verdict IS NULL AND question IS NOT NULL;
