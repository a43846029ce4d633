//! The server as a value: started from a data directory, stopped on demand.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// What the command line decides about a server.
pub struct Options {
    pub data_dir: PathBuf,
    pub bind: Option<IpAddr>,
    pub port: Option<u16>,
}

/// A running server.
pub struct Server {}

/// Why a server cannot start.
#[derive(Debug)]
pub struct StartError {}

impl fmt::Display for StartError {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        todo!()
    }
}

impl Server {
    /// Starts it.
    pub fn start(options: Options) -> Result<Server, StartError> {
        let _ = options;
        todo!()
    }

    /// Where it listens.
    pub fn addrs(&self) -> &[SocketAddr] {
        todo!()
    }

    /// Drains and stops, within 10 seconds.
    pub fn stop(&self) {
        todo!()
    }

    /// Stops at once.
    pub fn stop_now(&self) {
        todo!()
    }

    /// Rereads the configuration file; returns the fields that changed.
    pub fn reload(&self) -> Result<Vec<String>, String> {
        todo!()
    }
}
