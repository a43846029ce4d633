//! An event stream that lasts as long as there is progress.

use std::cell::Cell;
use std::time::Instant;

use crate::provider::event_stream::Source;
use net::http_client::{ClientError, ClientResponse};

/// The body of an answer, with a deadline that each report of progress extends.
/// Comments that keep the connection alive do not.
pub(super) struct ProgressSource<'a> {
    pub(super) answer: &'a mut ClientResponse,
    pub(super) until: &'a Cell<Instant>,
}

impl Source for ProgressSource<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, ClientError> {
        let left = self
            .until
            .get()
            .checked_duration_since(Instant::now())
            .filter(|left| !left.is_zero())
            .ok_or(ClientError::TimedOut)?;
        self.answer.limit_silence(left);
        self.answer.read(buffer)
    }
}
