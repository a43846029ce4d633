//! HTTP/1.1 as a server, read strictly (RFC 9110, RFC 9112). The way of a request:
//!
//! ```text
//! HttpConnection::serve -> head::parse -> forwarded::client -> Handler::admit
//!     -> RequestBody, whole or as it arrives -> the handler's answer
//!     -> Responder::write or deferred::send
//! ```

mod body;
pub mod checks;
pub(crate) mod connection;
mod deferred;
pub mod form;
mod forwarded;
pub(crate) mod handler;
pub(crate) mod head;
#[cfg(feature = "tls")]
pub(crate) mod https_redirect;
pub(crate) mod message;
pub(crate) mod response_writer;

pub use body::{BodyError, RequestBody};
pub use handler::{Admitted, Handler, Refusal};
pub use message::{Answer, DeferredResponse, Head, Request, Response, ResponsePart};
