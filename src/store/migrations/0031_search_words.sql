-- Other words by which a memory is found, a line each; none if whoever stored it gave none.
ALTER TABLE memories ADD COLUMN search_words TEXT;
