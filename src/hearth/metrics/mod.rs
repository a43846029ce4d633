//! GET /metrics: all measurements in Prometheus's format. Off unless
//! `metrics.enabled`. With `metrics.token` requests must carry it; without one only
//! loopback may ask.

mod exposition;

use std::borrow::Cow;

use crate::http::extension::Context;
use crate::http::origin;
use crate::service::Service;
use base::error::{Error, Result};
use config::Metrics as Section;
use exposition::{Exposition, Kind};
use net::http::checks::{self, bearer};
use net::http::{Answer, Head, Response};
use net::listener::Admissions;
use store::{DeliveryState, TurnState};

/// The format's name (<https://prometheus.io/docs/instrumenting/exposition_formats/>).
const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Answers GET /metrics.
///
/// # Errors
/// The database cannot be read.
pub fn respond(context: &Context<'_>) -> Result<Answer> {
    let metrics = Metrics {
        service: context.service,
        admissions: context.extensions.admissions.as_deref(),
    };
    Ok(Answer::Now(Response {
        status: 200,
        headers: vec![("Content-Type", Cow::Borrowed(CONTENT_TYPE))],
        body: Cow::Owned(metrics.text()?.into_bytes()),
    }))
}

/// The measurements of a service and the connections to it.
struct Metrics<'a> {
    service: &'a Service,
    admissions: Option<&'a Admissions>,
}

impl Metrics<'_> {
    /// All measurements. Counters begin at zero when the server starts.
    ///
    /// # Errors
    /// The database cannot be read.
    fn text(&self) -> Result<String> {
        let mut text = Exposition::default();
        self.write_server(&mut text);
        self.write_turns(&mut text)?;
        self.write_models(&mut text);
        self.write_database(&mut text);
        Ok(text.finish())
    }

    fn write_server(&self, text: &mut Exposition) {
        text.family(
            "hearth_build_info",
            Kind::Gauge,
            "The running version; always 1.",
        );
        text.sample(&[("version", env!("CARGO_PKG_VERSION"))], 1);
        let uptime = self.service.uptime().as_secs();
        text.single(
            "hearth_uptime_seconds",
            Kind::Gauge,
            "Time since the server started.",
            uptime,
        );
        let open = self.admissions.map(Admissions::open).unwrap_or_default();
        text.family("hearth_connections", Kind::Gauge, "Open connections.");
        for (transport, count) in [
            ("http", open.http),
            ("websocket", open.websocket),
            ("lines", open.lines),
        ] {
            text.sample(&[("transport", transport)], count as u64);
        }
    }

    fn write_turns(&self, text: &mut Exposition) -> Result<()> {
        let counts = self.service.server_snapshot()?.counts()?;
        let load = self.service.load();
        let meter = &self.service.meter;
        let waiting_approval = counts
            .turns
            .iter()
            .find(|(state, _)| *state == TurnState::WaitingApproval)
            .map_or(0, |(_, count)| *count);
        text.family("hearth_turns", Kind::Gauge, "Turns that have not ended.");
        for (state, count) in [
            (TurnState::Queued, load.waiting as u64),
            (TurnState::Running, load.running as u64),
            (TurnState::WaitingApproval, waiting_approval),
        ] {
            text.sample(&[("state", state.as_str())], count);
        }
        text.family("hearth_turns_ended_total", Kind::Counter, "Ended turns.");
        for (state, counter) in [
            (TurnState::Done, &meter.done),
            (TurnState::Failed, &meter.failed),
            (TurnState::Cancelled, &meter.cancelled),
        ] {
            text.sample(&[("state", state.as_str())], counter.read());
        }
        text.times(
            "hearth_turn_duration_seconds",
            "From a message to the end of its turn, including all waits.",
            &meter.turns.read(),
        );
        text.family(
            "hearth_deliveries",
            Kind::Gauge,
            "Callbacks that have not been delivered.",
        );
        for state in [
            DeliveryState::Pending,
            DeliveryState::Held,
            DeliveryState::Dead,
        ] {
            let counted = counts.deliveries.iter().find(|(known, _)| *known == state);
            let count = counted.map_or(0, |(_, count)| *count);
            text.sample(&[("state", state.as_str())], count);
        }
        text.family(
            "hearth_deliveries_ended_total",
            Kind::Counter,
            "Callbacks that were delivered or given up.",
        );
        text.sample(&[("state", "delivered")], meter.delivered.read());
        text.sample(&[("state", "dead")], meter.dead.read());
        text.family(
            "hearth_queue_depth",
            Kind::Gauge,
            "Turns and deliveries that wait for a worker, and writes that wait for the database.",
        );
        for (queue, depth) in [
            ("turns", load.waiting),
            ("deliveries", load.due_deliveries),
            ("writes", self.service.store.waiting_writes()),
        ] {
            text.sample(&[("queue", queue)], depth as u64);
        }
        text.single(
            "hearth_database_bytes",
            Kind::Gauge,
            "Size of the database.",
            counts.database_bytes,
        );
        Ok(())
    }

    fn write_models(&self, text: &mut Exposition) {
        let meter = self.service.model_meter();
        text.times(
            "hearth_model_request_duration_seconds",
            "How long models took to answer.",
            &meter.answered.read(),
        );
        text.single(
            "hearth_model_requests_failed_total",
            Kind::Counter,
            "Requests that no model answered.",
            meter.failed.read(),
        );
        text.family(
            "hearth_model_tokens_total",
            Kind::Counter,
            "Tokens of requests (input, of which cached) and replies (output).",
        );
        for (kind, counter) in [
            ("input", &meter.input),
            ("cached", &meter.cached),
            ("output", &meter.output),
        ] {
            text.sample(&[("kind", kind)], counter.read());
        }
    }

    fn write_database(&self, text: &mut Exposition) {
        let store = &self.service.store;
        let meter = store.writer_meter();
        text.values(
            "hearth_writer_batch_jobs",
            "How many writes shared a commit.",
            &meter.batch.read(),
        );
        text.times(
            "hearth_writer_commit_duration_seconds",
            "How long commits took.",
            &meter.commit.read(),
        );
        text.single(
            "hearth_database_writable",
            Kind::Gauge,
            "Whether the last commit worked.",
            u64::from(store.is_writable()),
        );
    }
}

/// Whether this request may see the measurements.
///
/// # Errors
/// `invalid_token`, or `unauthorized` from elsewhere without a token.
pub fn permit(section: &Section, allowed_hosts: &[String], head: &Head) -> Result<()> {
    match &section.token {
        Some(token) if token.matches(bearer(head)?.expose()) => Ok(()),
        Some(_) => Err(Error::invalid_token("the token is not metrics.token")),
        None if head.peer.address.is_loopback() && !checks::is_forwarded(head) => {
            origin::check_host(head, allowed_hosts).map(drop)
        }
        None => Err(Error::unauthorized(
            "without metrics.token only this machine itself may read the metrics",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::secret::Secret;
    use net::testing::head;

    #[test]
    fn a_token_or_this_machine_opens_it() {
        let open = Section {
            enabled: true,
            token: None,
        };
        let locked = Section {
            enabled: true,
            token: Some(Secret::new("scrape-me-if-you-can")),
        };
        let good = ("authorization", "Bearer scrape-me-if-you-can");
        let wrong = ("authorization", "Bearer scrape-me");
        let host = ("host", "127.0.0.1:5000");
        let proxied = ("x-forwarded-for", "198.51.100.7");
        for (section, address, headers, status) in [
            (&open, "127.0.0.1", &[host][..], None),
            (&open, "::1", &[("host", "localhost:5000")], None),
            (&open, "::1", &[("host", "hearth.example")], None),
            // A page whose name was made to lead here.
            (&open, "127.0.0.1", &[("host", "evil.example")], Some(403)),
            (&open, "127.0.0.1", &[], Some(403)),
            (&open, "127.0.0.1", &[host, proxied], Some(403)),
            (&open, "192.168.1.7", &[], Some(403)),
            (&open, "192.168.1.7", &[good], Some(403)),
            (&locked, "192.168.1.7", &[good], None),
            (
                &locked,
                "192.168.1.7",
                &[good, ("host", "prometheus.example")],
                None,
            ),
            (&locked, "127.0.0.1", &[], Some(401)),
            (&locked, "127.0.0.1", &[wrong], Some(401)),
        ] {
            let mut head = head("GET", "/metrics", headers);
            head.peer.address = address.parse().unwrap();
            let hosts = ["hearth.example".to_owned()];
            let refused = permit(section, &hosts, &head)
                .err()
                .map(|error| error.status());
            assert_eq!(refused, status, "{address} {headers:?}");
        }
    }
}
