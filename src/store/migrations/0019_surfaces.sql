-- Where the replies are read, as the first message said: the model is told of it in every turn
-- alike.
ALTER TABLE conversations ADD COLUMN surface TEXT;
