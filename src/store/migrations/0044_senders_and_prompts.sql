-- The linked sender who spoke last in a conversation that its owner has through one. What comes
-- through it ends with that link. Of Telegram it begins the name.
ALTER TABLE conversations ADD COLUMN sender TEXT;
UPDATE conversations SET sender = substr(external_name, 1, instr(external_name || '.', '.') - 1)
    WHERE sender_account = 'telegram';

-- Whether a model wrote the prompt: no person has written an address that is in it.
ALTER TABLE schedules ADD COLUMN is_composed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE turns ADD COLUMN is_composed INTEGER NOT NULL DEFAULT 0;
