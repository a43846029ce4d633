//! `--attach`: files for the first message, put in parts before the conversation begins.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::access::ServerAccess;
use super::connection::ChatConnection;
use crate::cli::context::CliError;
use protocol::attachment::{MOST_ATTACHMENTS, PART_BYTES, encode};

/// Time limit of one part, also through a slow relay.
const PART: Duration = Duration::from_secs(120);

/// Signs in, puts the files and returns their ids.
pub fn put(
    paths: &[&str],
    access: &ServerAccess,
    connection: &mut ChatConnection,
) -> Result<Vec<String>, CliError> {
    if paths.len() > MOST_ATTACHMENTS {
        return Err(CliError::failed(format!(
            "a message may have at most {MOST_ATTACHMENTS} files, not {}",
            paths.len()
        )));
    }
    if paths.is_empty() {
        return Ok(Vec::new());
    }
    connection
        .ask(&access.credential.message(), Instant::now() + PART)
        .map_err(|error| CliError::failed(access.refusal(&error)))?;
    paths.iter().map(|path| put_one(path, connection)).collect()
}

/// The names of these files, as words of a message.
pub fn names(paths: &[&str]) -> String {
    let name = |path: &&str| {
        let name = Path::new(path).file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    };
    let names: Vec<String> = paths.iter().map(name).collect();
    names.join(", ")
}

fn put_one(path: &str, connection: &mut ChatConnection) -> Result<String, CliError> {
    let failed = |error: &dyn std::fmt::Display| CliError::failed(format!("{path}: {error}"));
    let mut file = File::open(path).map_err(|error| failed(&error))?;
    let metadata = file.metadata().map_err(|error| failed(&error))?;
    if !metadata.is_file() {
        return Err(failed(&"it is not a file"));
    }
    let name = Path::new(path).file_name().unwrap_or_default();
    let bytes = metadata.len();
    let mut ask = |request: Value| {
        connection
            .ask(&request, Instant::now() + PART)
            .map_err(|error| failed(&error))
    };
    let begun = ask(json!({
        "type": "put_attachment", "name": name.to_string_lossy(), "bytes": bytes,
    }))?;
    let id = begun["attachment_id"].as_str().unwrap_or_default();
    let mut offset = 0;
    while offset < bytes {
        let mut part = Vec::with_capacity(PART_BYTES);
        let read = file.by_ref().take(PART_BYTES as u64).read_to_end(&mut part);
        read.map_err(|error| failed(&error))?;
        if part.is_empty() {
            return Err(failed(&"it became shorter while it was read"));
        }
        ask(json!({
            "type": "put_attachment_part", "attachment_id": id, "offset": offset,
            "data": encode(&part),
        }))?;
        offset += part.len() as u64;
    }
    Ok(id.to_owned())
}
