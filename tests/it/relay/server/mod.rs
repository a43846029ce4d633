//! The relay, driven over real sockets by a small machine and plain clients.

mod admission;
mod fairness;
mod passing;
mod program;

use support::relay_peers::Arrival;

fn text(text: &str) -> Arrival {
    Arrival::Text(text.to_owned())
}
