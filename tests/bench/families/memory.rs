//! What stays of a busy hour in memory.

use std::time::Duration;

use serde_json::json;

use crate::home::Home;
use crate::model::{Model, Pace};
use crate::table::{Figure, Table};
use support::crowd::Crowd;

const CROWD: Crowd = Crowd {
    clients: 500,
    messages: 6,
    sign_ins: 8,
};
const LATER: Duration = Duration::from_secs(60);

pub fn measure(table: &mut Table) {
    let model = Model::start(Pace::AtOnce);
    let home = Home::with_model(model.address(), json!({}));
    let server = home.start();
    CROWD.come(server.address, &home.token, "Hello there.", || ());
    std::thread::sleep(LATER);
    let how = format!(
        "1 run: {} clients, {} turns, {} sign-ins",
        CROWD.clients,
        CROWD.clients * CROWD.messages,
        CROWD.sign_ins
    );
    if let Some(kib) = server.private_kib() {
        let name = "private memory a minute after a crowd";
        let figure = Figure::new(name, kib / 1024.0, "MiB").at_most(10.0);
        table.add(figure.how(how.clone()));
    }
    let name = "resident memory a minute after a crowd";
    table.add(
        Figure::new(name, server.resident_kib() / 1024.0, "MiB")
            .rival("5")
            .at_most(10.0)
            .how(how),
    );
}
