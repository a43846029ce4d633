-- Whoever speaks through a webhook account is called "NAME by webhook ACCOUNT": the name may be
-- that of somebody else.
UPDATE messages SET speaker = speaker || ' by webhook ' || (
    SELECT substr(channel, 9) FROM turns WHERE id = messages.turn_id)
 WHERE speaker IS NOT NULL AND turn_id IN (
    SELECT id FROM turns WHERE channel LIKE 'webhook:%');
UPDATE memories SET speaker = speaker || ' by webhook ' || account
 WHERE speaker IS NOT NULL AND account IS NOT NULL;
UPDATE schedules SET owner = owner || ' by webhook ' || substr(channel, 9)
 WHERE owner IS NOT NULL AND owner_id IS NULL AND channel LIKE 'webhook:%';
