//! Whether a tool may run: one pure function.
