//! `hearth relay`: a relay, and this machine's links to relays.

mod join;
mod leave;
mod place;
mod qr;
mod run;
mod status;

/// `hearth relay join URL`
pub use join::run as join;
/// `hearth relay leave NAME`
pub use leave::run as leave;
/// `hearth relay`
pub use run::run;
/// `hearth relay status`
pub use status::run as status;
