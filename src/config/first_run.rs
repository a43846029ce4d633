//! The file that the first `hearth serve` writes.

use std::fs;
use std::io;
use std::path::Path;

use super::channels::TcpChannel;
use super::config::Config;
use super::declaration::Declared;
use super::document::to_text;
use super::problems::Problems;
use super::providers::OFFLINE;
use super::tools::Permission;
use base::files::replace;
use serde_json::json;

/// The text of the file: an offline provider, harmless tools allowed, and one
/// `tcp` channel for the household. JSON has no comments, so it says where the
/// documentation is.
pub fn first_run() -> String {
    let tcp = TcpChannel::absent();
    to_text(&json!({
        "_help": "Every setting is explained by `hearth config keys`; `hearth config check` \
                  checks this file. Keys that begin with _ are comments.",
        "provider": OFFLINE,
        "permission_mode": Config::default().permission_mode,
        "tool_permissions": {
            "current_time": Permission::Allow,
            "recall": Permission::Allow,
            "search_conversations": Permission::Allow,
            "remember": Permission::Allow,
            "forget": Permission::Ask,
            "schedule": Permission::AllowOwn,
            "lists": Permission::Allow,
            "find_events": Permission::Allow,
            "edit_events": Permission::Ask,
            "web_fetch": Permission::Ask,
            "list_files": Permission::Allow,
            "read_file": Permission::Allow,
            "write_file": Permission::Ask,
        },
        "channels": [{"name": "lan", "type": "tcp", "port": tcp.port}],
    }))
}

/// Writes [`first_run`] to `path` if there is no file yet, readable by its owner
/// only. Returns whether it did.
///
/// # Errors
/// The file cannot be written, with the reason.
pub fn write_first_run(path: &Path) -> Result<bool, Problems> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::NotFound => replace(path, &first_run(), 0o600)
            .map(|()| true)
            .map_err(|error| {
                Problems::of_file(path, format!("the file cannot be written: {error}"))
            }),
        Err(error) => Err(Problems::of_file(
            path,
            format!("the file cannot be read: {error}"),
        )),
    }
}
