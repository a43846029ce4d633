//! Whether a server is running here and answers.

use super::diagnosis::{Diagnosis, Installation};
use crate::cli::health;
use crate::cli::running_server::RunningServer;

/// Asks the server that runs on the data directory.
pub fn check(installation: &Installation<'_>) -> Vec<Diagnosis> {
    let Some(server) = RunningServer::find(installation.directory) else {
        let text = format!(
            "no server is running on {}",
            installation.directory.path().display()
        );
        return vec![
            Diagnosis::warning(text).advise(format!("hearth serve{}", installation.option)),
        ];
    };
    let Some(url) = server.url() else {
        let text = format!("the server (process {}) is not listening", server.process());
        return vec![Diagnosis::problem(text).advise(format!(
            "see the end of {}",
            installation.directory.log().display()
        ))];
    };
    vec![match health::ask(&url, &server.trust()) {
        Ok(_) => {
            let text = format!("the server (process {}) answers at {url}", server.process());
            Diagnosis::ok(text)
        }
        Err(said) => Diagnosis::problem(format!("the server is not healthy: {said}")).advise(
            format!("see the end of {}", installation.directory.log().display()),
        ),
    }]
}
