//! Pipes to the programs that tools and MCP servers are, used without waiting
//! for any one of them.

use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// What [`sleep`] is to wait for: that this can be read, if it is there.
pub fn readable<Fd: AsFd>(fd: Option<&Fd>) -> Option<PollFd<'_>> {
    fd.map(|fd| PollFd::new(fd, PollFlags::IN))
}

/// What [`sleep`] is to wait for: that this can be written, if it is there.
pub fn writable<Fd: AsFd>(fd: Option<&Fd>) -> Option<PollFd<'_>> {
    fd.map(|fd| PollFd::new(fd, PollFlags::OUT))
}

/// Sleeps until one of these comes true, at most `limit`, or else as long as it
/// takes. It may return earlier.
pub fn sleep<const MOST: usize>(
    watched: [Option<PollFd<'_>>; MOST],
    limit: Option<Duration>,
) -> io::Result<()> {
    let mut watched: Vec<PollFd<'_>> = watched.into_iter().flatten().collect();
    let limit = limit
        .map(Timespec::try_from)
        .transpose()
        .map_err(|_| ErrorKind::InvalidInput)?;
    match poll(&mut watched, limit.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Reads what the pipe has, once, and closes it at its end.
pub fn drain(pipe: &mut Option<impl Read>, buffer: &mut [u8], mut take: impl FnMut(&[u8])) {
    if let Some(reader) = pipe {
        match reader.read(buffer) {
            Ok(length) if length > 0 => take(&buffer[..length]),
            Err(error) if is_transient(&error) => {}
            Ok(_) | Err(_) => *pipe = None,
        }
    }
}

/// Whether the pipe is only empty or full for now.
pub fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
