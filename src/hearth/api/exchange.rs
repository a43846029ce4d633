//! A program's request, once it is let in.

use std::sync::Arc;

use crate::service::Service;
use crate::service::program_turns::Asker;
use config::Config;
use net::http::Request;

/// A request and what it is answered with.
pub struct Exchange<'a> {
    pub service: &'a Arc<Service>,
    pub config: &'a Config,
    pub asker: Asker,
    pub request: &'a Request,
}
