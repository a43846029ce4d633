//! Data that leaves and comes back: the one writer of exports and the one reader of imports,
//! for HTTP, the page and the command line.
//!
//! Hearth's own format is JSON Lines ([`line`]). Every row carries its owner, its audience and
//! its mark of text from outside, and files come in parts, so that neither side holds more than
//! a page of rows in memory. Who may export or import what is for the service to say
//! ([`Service::export`](crate::service::Service::export)).

mod foreign;
mod importer;
mod line;
mod reader;
mod writer;

pub use importer::{ImportReport, ImportRequest};
pub use reader::import;
pub use writer::{ExportCounts, ExportFormat, ExportRequest, ExportScope, Exporter};
