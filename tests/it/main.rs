//! One integration binary: starts the server in process on port 0, or the real
//! binary, and drives it over real sockets.

mod architecture;
mod support;
mod transcripts;
