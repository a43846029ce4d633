//! How much a model has to read before a person's first word.

use serde_json::{Value, json};

use crate::home::Home;
use crate::model::{Model, Pace};
use crate::table::{Figure, Table};
use crate::websocket::WebSocket;

pub fn measure(table: &mut Table) {
    let model = Model::start(Pace::AtOnce);
    let home = Home::with_model(model.address(), json!({}));
    let server = home.start();
    WebSocket::signed_in(server.address, &home.token)
        .ask(r#"{"type":"chat","message":"hello","surface":"page"}"#);
    let body = &model.first_request().body;
    let request: Value = serde_json::from_slice(body).unwrap();
    let tools = request["tools"].as_array().map_or(0, Vec::len);
    let descriptions = request["tools"].to_string().len();
    table.add(
        Figure::new("request for \"hello\"", body.len() as f64 / 1000.0, "KB")
            .rival("31 to 65")
            .at_most(4.5)
            .how(format!("with the {tools} default tools")),
    );
    table.add(
        Figure::new("the tools in it", descriptions as f64 / 1024.0, "KiB")
            .at_most(4.0)
            .how("names, descriptions and parameters"),
    );
}
