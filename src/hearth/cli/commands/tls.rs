//! `hearth tls` and its members.

use super::declaration::{flag, option};
use super::{Action, Command, DATA_DIR, JSON, Setting};
use crate::cli::tls;

/// `hearth tls`.
pub const TLS: Command = Command {
    name: "tls",
    summary: "Make and show the certificate with which the server speaks TLS",
    details: "",
    operands: &[],
    options: &[],
    action: Action::Group(&[
        Command {
            name: "self-signed",
            summary: "Make a certificate for this machine, signed with its own key",
            details: "\
Writes cert.pem and key.pem into the data directory, for this machine's names and addresses,
and sets `tls` in the configuration if it is not set. Browsers warn of such a certificate
until it is accepted: compare its fingerprint then.",
            operands: &[],
            options: &[
                Setting {
                    repeats: true,
                    ..option(
                        "name",
                        "NAME",
                        "Another name or address that the server has; may be\ngiven more than once",
                    )
                },
                option("days", "N", "Valid for so many days; 365 when absent"),
                flag("force", "Replace a certificate that is there"),
                DATA_DIR,
            ],
            action: Action::Run(tls::self_signed),
        },
        Command {
            name: "show",
            summary: "Show the certificate: its fingerprint, names and expiry",
            details: "",
            operands: &[],
            options: &[JSON, DATA_DIR],
            action: Action::Run(tls::show),
        },
    ]),
};
