//! The way in: accepts connections within limits, tells WebSocket, JSON lines
//! and HTTP apart by their first bytes, and frames each strictly.

pub mod exchange;
