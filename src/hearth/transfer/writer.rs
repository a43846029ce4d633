//! Writes an export piece by piece.

use std::collections::BTreeMap;
use std::io::Write;

use super::line::{CalendarLine, ItemLine, Line, VERSION};
use base::error::{Code, Result};
use base::ids::{ConversationId, MemoryId, MessageId, UserId};
use base::measure::byte_count;
use base::url::host_only;
use protocol::attachment::encode;
use protocol::command::ConversationCursor;
use store::{
    Attachment, Calendar, Conversation, ExportedMemory, ExportedMessage, ExportedSchedule, List,
    Memory, PIECE_BYTES, Role, Schedule, Store, Viewer,
};

/// Rows per query.
const PAGE: usize = 200;
/// Bytes after which a piece is long enough.
const PIECE: usize = 256 * 1024;

/// The file formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// What [`import`](super::import) reads.
    JsonLines,
    /// For people to read.
    Markdown,
}

/// Which things are exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportScope {
    /// One conversation that the viewer sees.
    Conversation(ConversationId),
    /// What this person owns.
    Own(UserId),
    /// What this person owns, and the conversations that others share with them.
    Shared(UserId),
    /// Everything, with what only the server knows.
    All,
}

/// What to export.
#[derive(Clone, Debug)]
pub struct ExportRequest {
    /// The reader: what they do not see is not exported.
    pub viewer: Viewer,
    /// Which of what they see.
    pub scope: ExportScope,
    /// Whether memories and schedules are among it: a guest has none.
    pub has_memories: bool,
    /// Whether calendars are.
    pub has_calendars: bool,
    /// How it is written.
    pub format: ExportFormat,
}

/// What was exported.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExportCounts {
    /// Conversations.
    pub conversations: u64,
    /// Their messages that are shown.
    pub messages: u64,
}

/// Writes an export. It holds a page of rows and a part of a file at most.
pub struct Exporter {
    store: Store,
    request: ExportRequest,
    /// What is still to be written, the next last.
    left: Vec<Work>,
    piece: Vec<u8>,
    counts: ExportCounts,
    /// What people are called, where that is not their name: for people who read.
    names: BTreeMap<String, String>,
}

/// A step of an export, which may leave more to do.
enum Work {
    Head,
    Conversations(Option<ConversationCursor>),
    One(ConversationId),
    Conversation(Box<Conversation>),
    Messages(Pass, Option<MessageId>),
    Message(String, Box<ExportedMessage>, Vec<Attachment>),
    File(Attachment, u64),
    Memories(Option<MemoryId>),
    Schedules,
    Calendars,
    Lists,
    End,
}

/// Which messages of a conversation are written: people read those that are not shown
/// after the others.
#[derive(Clone)]
struct Pass {
    id: ConversationId,
    channel: String,
    hidden: Option<bool>,
    has_begun: bool,
}

impl Exporter {
    /// An export of what `store` holds.
    pub fn new(store: Store, request: ExportRequest) -> Exporter {
        let is_data = request.format == ExportFormat::JsonLines;
        let mut left = Vec::new();
        if is_data {
            left.extend([Work::End, Work::Head]);
        }
        match request.scope {
            ExportScope::Conversation(id) => left.insert(left.len().min(1), Work::One(id)),
            scope => {
                let mut all = vec![Work::Conversations(None)];
                if is_data && request.has_memories {
                    all.splice(0..0, [Work::Schedules, Work::Memories(None)]);
                }
                if is_data && request.has_calendars {
                    all.insert(0, Work::Calendars);
                }
                if scope == ExportScope::All {
                    all.insert(0, Work::Lists);
                }
                let place = left.len().min(1);
                left.splice(place..place, all);
            }
        }
        Exporter {
            store,
            request,
            left,
            piece: Vec::new(),
            counts: ExportCounts::default(),
            names: BTreeMap::new(),
        }
    }

    /// What was written so far.
    pub fn counts(&self) -> ExportCounts {
        self.counts
    }

    /// The next piece, of whole lines; none after the end.
    ///
    /// # Errors
    /// `not_found` for a conversation that is not seen; `server_error` when the database
    /// cannot be read.
    pub fn next_piece(&mut self) -> Result<Option<Vec<u8>>> {
        while self.piece.len() < PIECE {
            let Some(work) = self.left.pop() else { break };
            self.advance(work)?;
        }
        let piece = std::mem::take(&mut self.piece);
        Ok((!piece.is_empty()).then_some(piece))
    }

    fn is_data(&self) -> bool {
        self.request.format == ExportFormat::JsonLines
    }

    fn is_whole(&self) -> bool {
        self.request.scope == ExportScope::All
    }

    fn is_wanted(&self, owner: Option<UserId>) -> bool {
        match self.request.scope {
            ExportScope::Own(user) | ExportScope::Shared(user) => owner == Some(user),
            ExportScope::Conversation(_) | ExportScope::All => true,
        }
    }

    fn advance(&mut self, work: Work) -> Result<()> {
        let viewer = &self.request.viewer;
        match work {
            Work::Head => {
                let people = self.store.snapshot(viewer)?.display_names()?;
                self.line(&Line::Head {
                    version: VERSION,
                    has_end: true,
                    people,
                });
            }
            Work::One(id) => {
                let found = self.store.snapshot(viewer)?.conversation(id)?;
                self.left.push(Work::Conversation(Box::new(found)));
            }
            Work::Conversations(cursor) => {
                let page = self
                    .store
                    .snapshot(viewer)?
                    .conversations(PAGE, cursor, true)?;
                if page.next.is_some() {
                    self.left.push(Work::Conversations(page.next));
                }
                for one in page.conversations.into_iter().rev() {
                    let is_shared = matches!(self.request.scope, ExportScope::Shared(_));
                    if is_shared || self.is_wanted(one.owner_id) {
                        self.left.push(Work::Conversation(Box::new(one)));
                    }
                }
            }
            Work::Conversation(conversation) => {
                unless_gone(self.conversation(*conversation))?;
            }
            Work::Messages(pass, after) => unless_gone(self.messages(pass, after))?,
            Work::Message(channel, message, files) => self.message(&channel, *message, files),
            Work::File(file, start) => unless_gone(self.part(file, start))?,
            Work::Memories(after) => {
                let page = self.store.snapshot(viewer)?.memories_after(after, PAGE)?;
                if let Some(last) = page.last() {
                    self.left.push(Work::Memories(Some(last.id)));
                }
                for memory in page {
                    if self.is_wanted(memory.owner_id) {
                        self.line(&Line::Memory(Box::new(memory_line(memory))));
                    }
                }
            }
            Work::Schedules => {
                let seen = self.store.snapshot(viewer)?;
                let mut schedules = Vec::new();
                for schedule in seen.schedules()? {
                    let owner = match schedule.owner_id {
                        Some(id) => seen.user_by_id(id)?,
                        None => None,
                    };
                    schedules.push((owner.map(|owner| owner.name), schedule));
                }
                drop(seen);
                for (owner, schedule) in schedules {
                    if self.is_wanted(schedule.owner_id) {
                        self.line(&Line::Schedule(Box::new(schedule_line(schedule, owner))));
                    }
                }
            }
            Work::Calendars => {
                let calendars = self.store.snapshot(viewer)?.calendars()?;
                for mut calendar in calendars {
                    if self.is_wanted(Some(calendar.owner_id)) {
                        // Whoever knows the address of a file may read it, as with a password.
                        if self.is_whole() && calendar.username.is_none() {
                            calendar.url = host_only(&calendar.url);
                        }
                        self.line(&Line::Calendar(Box::new(calendar_line(calendar))));
                    }
                }
            }
            Work::Lists => {
                let summaries = self.store.snapshot(viewer)?.lists()?;
                for summary in summaries {
                    let seen = self.store.snapshot(&self.request.viewer)?;
                    let list = seen.list(&summary.name);
                    drop(seen);
                    unless_gone(list.map(|list| self.list(list)))?;
                }
            }
            Work::End => {
                let ExportCounts {
                    conversations,
                    messages,
                } = self.counts;
                self.line(&Line::End {
                    conversations,
                    messages,
                });
            }
        }
        Ok(())
    }

    fn line(&mut self, line: &Line) {
        // Neither a vector nor these types can fail.
        let _ = serde_json::to_writer(&mut self.piece, line);
        self.piece.push(b'\n');
    }

    fn text(&mut self, text: std::fmt::Arguments<'_>) {
        let _ = self.piece.write_fmt(text);
    }

    fn conversation(&mut self, one: Conversation) -> Result<()> {
        self.counts.conversations += 1;
        let pass = |hidden| Pass {
            id: one.id,
            channel: one.channel.clone(),
            hidden,
            has_begun: false,
        };
        if !self.is_data() {
            self.names = (self.store.snapshot(&self.request.viewer)?).display_names()?;
            self.left.push(Work::Messages(pass(Some(true)), None));
            self.left.push(Work::Messages(pass(Some(false)), None));
            let words: Vec<&str> = one.title.split_whitespace().collect();
            let (title, channel, began) = (words.join(" "), &one.channel, one.created_at);
            self.text(format_args!(
                "# {title}\n\n{}, {channel}, {began}\n\n",
                one.id
            ));
            return Ok(());
        }
        self.left.push(Work::Messages(pass(None), None));
        let viewer = &self.request.viewer;
        let mut exported = self.store.snapshot(viewer)?.exported_conversation(one)?;
        if !self.is_whole() {
            exported.account = None;
            exported.external_name = None;
        }
        self.line(&Line::Conversation(Box::new(exported)));
        Ok(())
    }

    fn messages(&mut self, mut pass: Pass, after: Option<MessageId>) -> Result<()> {
        let viewer = &self.request.viewer;
        let page = self
            .store
            .snapshot(viewer)?
            .messages_after(pass.id, PAGE, after)?;
        let Some(last) = page.last().and_then(|(last, _)| last.id) else {
            return Ok(());
        };
        let mut wanted = page;
        wanted.retain(|(one, _)| {
            let is_hidden = one.hidden_with.is_some();
            pass.hidden.is_none_or(|hidden| hidden == is_hidden)
        });
        if pass.hidden == Some(true) && !pass.has_begun && !wanted.is_empty() {
            pass.has_begun = true;
            self.text(format_args!("# Versions that are not shown\n\n"));
        }
        let channel = pass.channel.clone();
        self.left.push(Work::Messages(pass, Some(last)));
        for (message, files) in wanted.into_iter().rev() {
            let work = Work::Message(channel.clone(), Box::new(message), files);
            self.left.push(work);
        }
        Ok(())
    }

    fn message(&mut self, channel: &str, mut message: ExportedMessage, files: Vec<Attachment>) {
        let is_hidden = message.hidden_with.is_some();
        self.counts.messages += u64::from(!is_hidden);
        if !self.is_data() {
            let who = match (message.role, &message.speaker) {
                (Role::Assistant, _) => "Assistant",
                (Role::User, Some(speaker)) => self.names.get(speaker).unwrap_or(speaker),
                (Role::User, None) => "User",
            }
            .to_owned();
            let (at, content) = (message.timestamp, message.content.trim_end());
            self.text(format_args!("## {who}, {at}\n\n{content}\n\n"));
            for file in &files {
                let (name, kind, size) = (&file.name, &file.media_type, byte_count(file.bytes));
                self.text(format_args!("- Attached: {name} ({kind}, {size})\n\n"));
            }
            return;
        }
        if !self.is_whole() {
            message.asked_by = None;
        }
        message.channel.take_if(|own| own == channel);
        let line = Box::new(message);
        self.line(&if is_hidden {
            Line::HiddenMessage(line)
        } else {
            Line::Message(line)
        });
        self.left
            .extend(files.into_iter().rev().map(|file| Work::File(file, 0)));
    }

    fn part(&mut self, file: Attachment, start: u64) -> Result<()> {
        if start == 0 {
            self.line(&Line::Attachment {
                attachment_id: Some(file.attachment_id),
                name: file.name.clone(),
                media_type: Some(file.media_type.clone()),
                bytes: file.bytes,
            });
        }
        if start < file.bytes {
            let (viewer, id) = (&self.request.viewer, file.attachment_id);
            let (_, part) =
                (self.store)
                    .snapshot(viewer)?
                    .attachment_part(id, start, PIECE_BYTES)?;
            let data = encode(&part);
            self.line(&Line::AttachmentPart { data });
            self.left.push(Work::File(file, start + part.len() as u64));
        }
        Ok(())
    }

    fn list(&mut self, list: List) {
        if !self.is_data() {
            self.text(format_args!("# {}\n\n", list.name));
            for item in &list.items {
                let mark = if item.is_checked { 'x' } else { ' ' };
                self.text(format_args!("- [{mark}] {}\n", item.text));
            }
            return self.text(format_args!("\n"));
        }
        let items = list.items.into_iter().map(|item| ItemLine {
            text: item.text,
            checked: item.is_checked,
            outside: item.is_outside || list.is_outside,
        });
        self.line(&Line::List {
            items: items.collect(),
            list: list.name,
            outside: list.is_outside,
        });
    }
}

/// What was deleted while the export was written is not in it.
fn unless_gone(written: Result<()>) -> Result<()> {
    match written {
        Err(error) if error.code() == Code::NotFound => Ok(()),
        written => written,
    }
}

fn memory_line(memory: Memory) -> ExportedMemory {
    ExportedMemory {
        memory_id: Some(memory.id),
        content: memory.content,
        search_words: memory.search_words,
        speaker: memory.speaker,
        owner: memory.owner,
        audience: Some(memory.audience),
        channel: memory.channel,
        account: memory.account,
        outside: memory.is_outside,
        created_at: memory.created_at,
    }
}

fn calendar_line(calendar: Calendar) -> CalendarLine {
    CalendarLine {
        name: calendar.name,
        url: calendar.url,
        username: calendar.username,
        owner: Some(calendar.owner),
        audience: Some(calendar.audience),
        read_only: calendar.is_read_only,
        refresh_minutes: calendar.refresh_minutes,
    }
}

/// `owner` is the person a reminder is for, whoever made it.
fn schedule_line(schedule: Schedule, owner: Option<String>) -> ExportedSchedule {
    let timing = schedule.timing.as_ref();
    ExportedSchedule {
        schedule_id: Some(schedule.id),
        prompt: schedule.text,
        is_said: schedule.is_said,
        made_by: schedule.owner.filter(|maker| owner.as_ref() != Some(maker)),
        owner,
        audience: Some(schedule.audience),
        conversation_id: schedule.conversation_id,
        channel: schedule.channel,
        is_composed: schedule.is_composed,
        webhook: schedule.account,
        cron: timing.and_then(|timing| Some(timing.cron.as_ref()?.to_string())),
        next_at: timing.map(|timing| timing.next_at),
        is_wait: timing.is_some_and(|timing| timing.is_wait),
        local_at: timing.and_then(|timing| timing.local.clone()),
        on: schedule.trigger.map(|trigger| trigger.to_string()),
        only_if_changed: schedule.only_if_changed,
        planned_at: schedule.planned_at,
        last_at: schedule.last_at,
        paused: schedule.is_paused,
        outside: schedule.is_outside,
        created_at: schedule.created_at,
    }
}
