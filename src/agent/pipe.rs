//! Pipes to the programs that tools and MCP servers are, read without waiting.

use std::io::{self, ErrorKind, Read};

/// Reads what the pipe has, once, and closes it at its end.
pub(super) fn drain(pipe: &mut Option<impl Read>, buffer: &mut [u8], mut take: impl FnMut(&[u8])) {
    if let Some(reader) = pipe {
        match reader.read(buffer) {
            Ok(length) if length > 0 => take(&buffer[..length]),
            Err(error) if is_transient(&error) => {}
            Ok(_) | Err(_) => *pipe = None,
        }
    }
}

/// Whether the pipe is only empty or full for now.
pub(super) fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
