-- What is due is read for each account, so that one with much of it hides no other.
CREATE INDEX deliveries_due_of_account ON deliveries (account, next_at) WHERE state = 'pending';
