//! The webhook channel: incoming accounts, callbacks and their signatures.
