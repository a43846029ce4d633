//! Importing memories and schedules.

use rusqlite::params;

use crate::chat::export::{ExportedMemory, ExportedSchedule};
use crate::chat::import::{Ownership, free_id, name_of};
use crate::chat::search_words;
use crate::engine::database::Store;
use crate::engine::failure::Outcome;
use crate::engine::job::Write;
use crate::engine::query::Statements;
use crate::home::schedules;
use crate::people::users::is_guest;
use base::calendar::Timing;
use base::error::Result;
use base::ids::{ConversationId, MemoryId, ScheduleId};

impl Store {
    /// Imports memories, all or none: the same words once for each audience. Returns how many
    /// of them were not there yet.
    pub fn import_memories(&self, memories: Vec<(ExportedMemory, Ownership)>) -> Result<usize> {
        self.write(move |write| {
            let mut added = 0;
            for (memory, ownership) in &memories {
                added += usize::from(add_memory(write, memory, ownership)?);
            }
            Ok(added)
        })
    }

    /// Imports a schedule, which runs at these times: a prompt of the same person and time
    /// once. Returns whether it was not there yet.
    ///
    /// # Errors
    /// As of [`Store::add_schedule`].
    pub fn import_schedule(
        &self,
        new: ExportedSchedule,
        timing: Option<Timing>,
        ownership: Ownership,
        most: usize,
    ) -> Result<bool> {
        self.write(move |write| add_schedule(write, &new, timing.as_ref(), &ownership, most))
    }
}

/// Stores a memory unless it is there already.
fn add_memory(write: &Write<'_>, new: &ExportedMemory, ownership: &Ownership) -> Outcome<bool> {
    let audience = ownership.intern(write)?;
    let at = new.created_at.min(write.now);
    let search_words = search_words::clean(&new.search_words);
    let wanted = new.memory_id.map(MemoryId::as_i64);
    let id = free_id(write, "memories", wanted, at, 0)?;
    let added = write.execute(
        "INSERT OR IGNORE INTO memories (id, content, speaker, created_at, owner_id, audience_id,
             channel, account, is_outside, search_words)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        params![
            id,
            new.content.trim(),
            new.speaker,
            at,
            ownership.owner,
            audience,
            new.channel,
            new.account,
            new.outside,
            search_words::to_column(&search_words),
        ],
    )?;
    Ok(added > 0)
}

/// Stores a schedule unless it is there already.
fn add_schedule(
    write: &Write<'_>,
    new: &ExportedSchedule,
    timing: Option<&Timing>,
    ownership: &Ownership,
    most: usize,
) -> Outcome<bool> {
    let owner = ownership.owner;
    let known = write.exists(
        "SELECT 1 FROM schedules WHERE owner_id IS ?1 AND prompt = ?2 AND created_at = ?3",
        params![owner, new.prompt, new.created_at],
    )?;
    if known {
        return Ok(false);
    }
    schedules::check_new(write.connection, &new.prompt, owner, most)?;
    let conversation: Option<ConversationId> = match new.conversation_id {
        None => None,
        Some(id) => write.value(
            "SELECT id FROM conversations WHERE imported_from IN (?2, 'hearth:' || ?4)
                 AND owner_id IS ?3
             UNION ALL
             SELECT id FROM conversations WHERE id = ?1 AND (owner_id IS ?3 OR ?5)",
            params![
                id,
                name_of(&format!("hearth:{id}"), ownership.copy_for),
                owner,
                id.to_string(),
                ownership.copy_for.is_none(),
            ],
        )?,
    };
    let at = new.created_at.min(write.now);
    let wanted = new.schedule_id.map(ScheduleId::as_i64);
    let id = free_id(write, "schedules", wanted, at, 0)?;
    let is_paused = new.paused || is_guest(write.connection, owner)?;
    let only_if_changed = schedules::to_column(&new.only_if_changed);
    write.insert(
        "schedules",
        &[
            ("id", &id),
            ("prompt", &new.prompt),
            ("owner", &new.made_by.as_ref().or(new.owner.as_ref())),
            ("conversation_id", &conversation),
            ("channel", &new.channel),
            ("account", &new.webhook),
            ("cron", &timing.and_then(|timing| timing.cron.as_ref())),
            ("next_at", &timing.map(|timing| timing.next_at)),
            ("planned_at", &new.planned_at.min(write.now)),
            ("last_at", &new.last_at),
            ("is_paused", &is_paused),
            ("created_at", &new.created_at),
            ("is_wait", &timing.is_some_and(|timing| timing.is_wait)),
            ("owner_id", &owner),
            ("audience_id", &ownership.intern(write)?),
            ("is_outside", &new.outside),
            ("is_said", &new.is_said),
            ("local_at", &timing.and_then(|timing| timing.local.as_ref())),
            ("trigger", &new.on),
            ("only_if_changed", &only_if_changed),
            ("is_composed", &new.is_composed),
        ],
    )?;
    Ok(true)
}
