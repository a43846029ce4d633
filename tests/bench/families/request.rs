//! How much a model has to read before a person's first word.

use support::prompt_size::hello;

use crate::table::{Figure, Table};

pub fn measure(table: &mut Table) {
    let largest = hello().into_iter().max_by_key(|sent| sent.bytes).unwrap();
    let tools = largest.body["tools"].as_array().map_or(0, Vec::len);
    let descriptions = largest.body["tools"].to_string().len();
    table.add(
        Figure::new("request for \"hello\"", largest.bytes as f64 / 1000.0, "KB")
            .rival("31 to 65")
            .at_most(4.5)
            .how(format!(
                "with the {tools} default tools; the largest: {}",
                largest.how
            )),
    );
    table.add(
        Figure::new("the tools in it", descriptions as f64 / 1024.0, "KiB")
            .at_most(4.0)
            .how("names, descriptions and parameters"),
    );
}
