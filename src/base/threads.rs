//! Starting threads.

use std::io;
use std::thread::{Builder, JoinHandle};

/// Starts the thread that `builder` describes. Boxed,
/// because each type of body would add about 2 KB of code.
///
/// # Errors
/// The system has no threads left.
pub fn spawn(builder: Builder, body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    let body: Box<dyn FnOnce() + Send> = Box::new(body);
    builder.spawn(body)
}
