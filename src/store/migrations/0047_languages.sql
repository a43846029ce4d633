-- The language that a person has chosen, and the one of the browser in which they signed in last.
ALTER TABLE users ADD COLUMN language TEXT;
ALTER TABLE users ADD COLUMN last_language TEXT;
