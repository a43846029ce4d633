//! `metrics`: measurements for Prometheus.

use super::declaration::{Rule, section};
use super::rules::{Flag, SecretText};
use base::secret::Secret;

section! {
    /// The section `metrics`.
    #[derive(Clone, Debug)]
    pub struct Metrics {
        /// Whether `GET /metrics` answers, in Prometheus's text format.
        pub enabled: bool = Flag.or(false);
        /// The token that a scraper must send as `Authorization: Bearer ...`, whatever its address.
        pub token: Option<Secret> = SecretText.optional("none: only loopback may ask");
    }
}
