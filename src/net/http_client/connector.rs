//! Makes the connections of all agents, with one trust and a read limit that can
//! change between two reads of one answer.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ureq::Error;
use ureq::unversioned::transport::time::Duration as Limit;
use ureq::unversioned::transport::{
    Buffers, ConnectProxyConnector, ConnectionDetails, Connector, NextTimeout, TcpConnector,
    Transport,
};

use crate::tls::Trust;
use crate::tls::connector::Secure;

/// How long one read of a connection may wait, beside the deadline of the
/// request. ureq fixes its own limit when a request begins, but a model may think
/// for minutes before its first byte and must not pause as long after it.
#[derive(Debug, Default)]
pub struct ReadLimit {
    /// Milliseconds; 0 is no limit.
    limit: AtomicU64,
}

impl ReadLimit {
    /// Sets or lifts the limit.
    pub fn set(&self, limit: Option<Duration>) {
        let millis = limit.map_or(0, |limit| {
            u64::try_from(limit.as_millis()).unwrap_or(0).max(1)
        });
        self.limit.store(millis, Ordering::Relaxed);
    }

    /// The current limit; none is zero.
    pub fn limit(&self) -> Duration {
        Duration::from_millis(self.limit.load(Ordering::Relaxed))
    }
}

/// What ureq makes connections with: through a proxy if the agent has one, else
/// directly, then TLS for https.
pub fn connect_by(trust: Trust, read_limit: Arc<ReadLimit>) -> impl Connector {
    ().chain(ConnectProxyConnector::default())
        .chain(TcpConnector::default())
        .chain(Secure(trust))
        .chain(ReadLimiter(read_limit))
}

#[derive(Debug)]
struct ReadLimiter(Arc<ReadLimit>);

impl<In: Transport> Connector<In> for ReadLimiter {
    type Out = LimitedTransport<In>;

    fn connect(
        &self,
        _: &ConnectionDetails<'_>,
        chained: Option<In>,
    ) -> Result<Option<Self::Out>, Error> {
        Ok(chained.map(|transport| LimitedTransport {
            transport,
            read_limit: Arc::clone(&self.0),
        }))
    }
}

struct LimitedTransport<In> {
    transport: In,
    read_limit: Arc<ReadLimit>,
}

impl<In: Transport> Transport for LimitedTransport<In> {
    fn buffers(&mut self) -> &mut dyn Buffers {
        self.transport.buffers()
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        self.transport.transmit_output(amount, timeout)
    }

    fn await_input(&mut self, mut timeout: NextTimeout) -> Result<bool, Error> {
        let limit = self.read_limit.limit();
        if !limit.is_zero() {
            timeout.per_read = Some(Limit::Exact(limit));
        }
        self.transport.await_input(timeout)
    }

    fn is_open(&mut self) -> bool {
        self.transport.is_open()
    }

    fn is_tls(&self) -> bool {
        self.transport.is_tls()
    }
}

impl<In: Transport> fmt::Debug for LimitedTransport<In> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.transport, f)
    }
}
