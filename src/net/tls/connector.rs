//! The TLS part of outgoing HTTP: a connector for ureq that trusts what a
//! [`Trust`] says. ureq's own can trust the public authorities or others, but
//! not both.

use std::fmt;
use std::io::{self, Read, Write};

use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use ureq::Error;
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, Either, LazyBuffers, NextTimeout, Transport,
    TransportAdapter,
};

use super::reason::in_words;
use super::trust::Trust;

/// Puts TLS on connections for https.
#[derive(Debug)]
pub struct Secure(pub Trust);

impl<In: Transport> Connector<In> for Secure {
    type Out = Either<In, SecureTransport>;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        chained: Option<In>,
    ) -> Result<Option<Self::Out>, Error> {
        let Some(transport) = chained else {
            return Ok(None);
        };
        if !details.needs_tls() || transport.is_tls() {
            return Ok(Some(Either::A(transport)));
        }
        let untrusted =
            |error: String| Error::Io(io::Error::new(io::ErrorKind::InvalidData, error));
        let config = self
            .0
            .client_config()
            .map_err(|error| untrusted(error.to_string()))?;
        let host = details.uri.host().unwrap_or_default();
        let host = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(host);
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| untrusted(format!("{host:?} is no name that a certificate can have")))?;
        let connection = ClientConnection::new(config, name);
        let mut connection = connection.map_err(|error| untrusted(error.to_string()))?;
        let clock = details.current_time.clone();
        let mut socket = TransportAdapter::new(transport.boxed(), clock);
        socket.set_timeout(details.timeout);
        while connection.is_handshaking() {
            connection.complete_io(&mut socket).map_err(in_words)?;
        }
        let buffers = LazyBuffers::new(
            details.config.input_buffer_size(),
            details.config.output_buffer_size(),
        );
        let stream = StreamOwned::new(connection, socket);
        Ok(Some(Either::B(SecureTransport { buffers, stream })))
    }
}

/// A connection with TLS.
pub struct SecureTransport {
    buffers: LazyBuffers,
    stream: StreamOwned<ClientConnection, TransportAdapter>,
}

impl Transport for SecureTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        self.stream.sock.set_timeout(timeout);
        let output = &self.buffers.output()[..amount];
        self.stream.write_all(output)?;
        Ok(())
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        self.stream.sock.set_timeout(timeout);
        let input = self.buffers.input_append_buf();
        let count = self.stream.read(input)?;
        self.buffers.input_appended(count);
        Ok(count > 0)
    }

    fn is_open(&mut self) -> bool {
        self.stream.sock.get_mut().is_open()
    }

    fn is_tls(&self) -> bool {
        true
    }
}

impl fmt::Debug for SecureTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecureTransport").finish_non_exhaustive()
    }
}
