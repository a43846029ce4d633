//! The terminal.

mod approvals;
mod catalogue;
mod completions;
mod config;
mod doctor;
mod init;
mod memory;
mod program;
mod transcripts;
mod webhook;
