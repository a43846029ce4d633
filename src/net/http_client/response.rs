//! The answer to a request, and reading its body.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ureq::BodyReader;
use ureq::http::HeaderMap;

use super::connector::ReadLimit;
use super::error::ClientError;
use crate::wait::time_left;

/// Most characters that are shown of how a body is compressed.
const CODING_CHARS: usize = 40;
/// How long [`ClientResponse::finish`] waits for the rest of a body.
const FINISH_LIMIT: Duration = Duration::from_millis(20);
/// Most bytes of that rest.
const FINISH_BYTES: usize = 2 * 1024;

/// An answer whose head has arrived. Redirects are answers like any other.
pub struct ClientResponse {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: BodyReader<'static>,
    pub(super) read_limit: Arc<ReadLimit>,
    /// Whether the body was read to its end.
    pub(super) ended: bool,
}

impl ClientResponse {
    /// The HTTP status.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// A header's value, when it is there and ASCII.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// How the body is compressed, if it is: no request asks for that.
    fn coding(&self) -> Option<String> {
        let coding = self.header("content-encoding")?.trim();
        let is_plain = coding.is_empty() || coding.eq_ignore_ascii_case("identity");
        (!is_plain).then(|| coding.chars().take(CODING_CHARS).collect())
    }

    /// Lets each of the following reads wait no longer than `limit`, beside the
    /// deadline. [`ClientError::Silent`] when one does.
    pub fn limit_silence(&self, limit: Duration) {
        self.read_limit.set(Some(limit));
    }

    /// Reads what has arrived of the body, at least one byte; 0 at its end.
    ///
    /// # Errors
    /// The connection broke, the deadline or the limit on silence has passed, or the body is
    /// compressed: [`ClientError::Encoded`].
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<usize, ClientError> {
        if let Some(coding) = self.coding() {
            return Err(ClientError::Encoded(coding));
        }
        let count = std::io::Read::read(&mut self.body, buffer)
            .map_err(|error| ClientError::from_ureq(error.into(), &self.read_limit))?;
        self.ended |= count == 0 && !buffer.is_empty();
        Ok(count)
    }

    /// Reads the whole body.
    ///
    /// # Errors
    /// [`ClientError::TooLarge`] beyond `limit` bytes; those of
    /// [`ClientResponse::read`].
    pub fn read_all(&mut self, limit: usize) -> Result<Vec<u8>, ClientError> {
        let announced = self
            .header("content-length")
            .and_then(|length| length.parse().ok())
            .unwrap_or(0usize);
        let mut body = Vec::with_capacity(announced.min(64 * 1024));
        let mut piece = [0; 8 * 1024];
        loop {
            let count = self.read(&mut piece)?;
            if count == 0 {
                return Ok(body);
            }
            if body.len() + count > limit {
                return Err(ClientError::TooLarge(limit));
            }
            body.extend_from_slice(&piece[..count]);
        }
    }

    /// Reads the little that may follow what the caller knows to be the end, so
    /// that the connection can be used again. Does not wait for a server that
    /// leaves the body open: then the connection is closed.
    pub fn finish(&mut self) {
        self.discard(FINISH_LIMIT, FINISH_BYTES);
    }

    /// Reads the rest of the body and drops it, so that the connection can be
    /// used again. A rest that takes longer than `within`, or has more than
    /// `most` bytes, costs the connection.
    pub fn discard(&mut self, within: Duration, most: usize) {
        let deadline = Instant::now() + within;
        let mut piece = [0; 4 * 1024];
        let mut discarded = 0;
        while !self.ended && discarded <= most {
            let left = time_left(deadline);
            if left.is_zero() {
                return;
            }
            self.read_limit.set(Some(left));
            match self.read(&mut piece) {
                Ok(count) => discarded += count,
                Err(_) => return,
            }
        }
    }
}
