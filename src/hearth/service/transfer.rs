//! Who exports and imports what.

use std::io::Read;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use super::Service;
use super::attachments;
use super::caller::Caller;
use super::commands::may_see_calendars;
use super::hub::ConnectionId;
use crate::transfer::{
    self, ExportFormat, ExportRequest, ExportScope, Exporter, ImportReport, ImportRequest,
};
use base::error::{Error, Result};
use base::ids::UserId;
use base::language::Said;
use base::people::folded;
use base::sync::lock;
use protocol::command::Export;
use store::{Identity, User, UserRole, Viewer};

/// Most imports at a time. Each may hold a large conversation in memory.
const MOST_IMPORTS: usize = 2;
/// Most exports over connections at a time. Each holds a page of messages.
const MOST_EXPORTS: usize = 16;

/// Ends an import.
struct RunningImport<'a>(&'a Service, UserId);

impl Drop for RunningImport<'_> {
    fn drop(&mut self) {
        lock(&self.0.imports).retain(|running| *running != self.1);
    }
}

impl Service {
    /// An export of what is theirs, or of one conversation that they see, and for the
    /// machine's owner of everything.
    ///
    /// # Errors
    /// `unauthorized` for everything, for anybody else.
    pub fn export(&self, identity: &Identity, wanted: &Export) -> Result<Exporter> {
        if wanted.all && !is_owner(identity) {
            return Err(Error::unauthorized(
                "everything is exported for the owner of the machine alone, by `hearth export \
                 --all` there; what is yours comes without \"all\"",
            ));
        }
        let user = identity.user_id;
        let scope = match wanted.conversation_id {
            Some(id) => ExportScope::Conversation(id),
            None if wanted.all => ExportScope::All,
            None if is_owner(identity) => {
                return Err(Error::invalid_request(
                    "nothing belongs to the owner of the machine: export \"all\", or name a \
                     person as \"as_user\"",
                ));
            }
            None if wanted.shared => ExportScope::Shared(user),
            None => ExportScope::Own(user),
        };
        let request = ExportRequest {
            viewer: identity.viewer(),
            scope,
            has_memories: identity.role >= UserRole::User,
            has_calendars: identity.role >= UserRole::User && may_see_calendars(identity),
            format: format_of(wanted.format.as_deref())?,
        };
        Ok(Exporter::new(self.store.clone(), request))
    }

    /// `export`: the next part of an export, over a connection.
    pub(super) fn export_part(&self, caller: &Caller<'_>, wanted: &Export) -> Result<Value> {
        let begun = if wanted.part == 0 {
            Some((0, self.export(caller.identity, wanted)?))
        } else {
            lock(&self.exports).remove(&caller.connection)
        };
        let Some((_, mut exporter)) = begun.filter(|(next, _)| *next == wanted.part) else {
            return Err(Error::invalid_request(
                "\"part\" must be 0, and then one more than that of the last",
            ));
        };
        let piece = exporter.next_piece()?;
        let (is_end, counts) = (piece.is_none(), exporter.counts());
        if !is_end {
            let mut exports = lock(&self.exports);
            exports.remove(&caller.connection);
            if exports.len() >= MOST_EXPORTS {
                let busy = format!("{MOST_EXPORTS} exports are running at the moment");
                return Err(Error::overloaded(busy, 5));
            }
            exports.insert(caller.connection, (wanted.part + 1, exporter));
        }
        let text = String::from_utf8(piece.unwrap_or_default())
            .map_err(|error| Error::server("the export is not text", error))?;
        Ok(json!({
            "part": wanted.part,
            "text": text,
            "done": is_end,
            "conversations": counts.conversations,
            "messages": counts.messages,
        }))
    }

    /// Ends the export and the backup of a connection that is closed.
    pub(super) fn end_export(&self, connection: ConnectionId) {
        lock(&self.exports).remove(&connection);
        lock(&self.snapshots).remove(&connection);
    }

    /// Imports a file for whoever sends it: all of it becomes theirs, privately, and counts as
    /// text from outside, since anybody may have written it. The machine's owner gives things
    /// back to the people that the file names, or all of them to `owner`.
    ///
    /// # Errors
    /// `unauthorized` for guests, for narrowed tokens, and for another `owner`; `server_error`
    /// 503 while others import; those of [`transfer::import`].
    pub fn import(
        &self,
        identity: &Identity,
        owner: Option<&str>,
        file: impl Read,
    ) -> Result<ImportReport> {
        let is_owner = is_owner(identity);
        let importer = if is_owner {
            match owner {
                Some(name) => self.find_user(name)?,
                // Whoever has been an admin longest.
                None => {
                    let admins = self.store.users()?.into_iter();
                    let admins = admins.filter(|user| user.role == UserRole::Admin);
                    admins.min_by_key(|user| user.id).ok_or_else(|| {
                        Error::not_found(
                            "there is no admin to own what has no owner; name a user with --owner",
                        )
                    })?
                }
            }
        } else {
            if identity.role < UserRole::User || identity.is_narrowed {
                return Err(Error::unauthorized(
                    "importing requires the role \"user\" and a token that is not narrowed",
                ));
            }
            let user = self.store.user(&identity.user)?;
            let is_theirs =
                |user: &User| owner.is_none_or(|name| folded(name) == folded(&user.name));
            user.filter(is_theirs).ok_or_else(|| {
                Error::unauthorized(
                    "only the owner of the machine imports for others, by `hearth import \
                         --owner` there",
                )
            })?
        };
        let id = importer.id;
        {
            let mut imports = lock(&self.imports);
            if imports.contains(&id) || imports.len() >= MOST_IMPORTS {
                return Err(Error::overloaded(Said::of("error.import_running", &[]), 10));
            }
            imports.push(id);
        }
        let _running = RunningImport(self, id);
        // Later, it would replace who sees the conversations of accounts that are imported.
        self.apply_account_audiences();
        let config = self.settings.current();
        let request = ImportRequest {
            importer,
            restores: is_owner && owner.is_none(),
            is_trusted: is_owner,
            viewer: if is_owner {
                Viewer::server()
            } else {
                identity.viewer()
            },
            limits: attachments::limits(&config.limits),
            most_schedules: config.limits.schedules_per_person,
            zone: config.zone(),
            now: self.clock.now(),
        };
        let (report, ended) = transfer::import(&self.store, request, file);
        for (readers, conversation) in &report.seen_by {
            self.hub.publish_change(*conversation, readers.clone());
        }
        if report.calendars > 0 {
            self.has_calendars.store(true, Ordering::Relaxed);
            self.calendar_wakes.look();
        }
        for list in &report.lists {
            self.hub.publish_list(list);
        }
        let ImportReport {
            imported, messages, ..
        } = &report;
        let user = &identity.user;
        let what = format!("{messages} messages in {imported} conversations");
        match ended {
            Ok(()) => log::info!("{user} imported {what}"),
            Err(ref error) => log::warn!("the import of {user} ended after {what}: {error}"),
        }
        ended.map(|()| report)
    }
}

/// Whether the machine's owner asks, over its socket. No user, session or token is that.
fn is_owner(identity: &Identity) -> bool {
    identity.role == UserRole::Owner
}

/// The format of this name.
///
/// # Errors
/// `invalid_request`.
pub fn format_of(name: Option<&str>) -> Result<ExportFormat> {
    match name {
        None | Some("jsonl") => Ok(ExportFormat::JsonLines),
        Some("markdown") => Ok(ExportFormat::Markdown),
        Some(_) => Err(Error::invalid_request(
            "\"format\" must be jsonl or markdown",
        )),
    }
}
