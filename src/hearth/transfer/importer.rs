//! Stores what the readers of the formats parse.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;
use serde_json::Value;

use super::line::{CalendarLine, ItemLine};
use agent::tools::calendar::checked_address;
use base::calendar::{Timing, Zone};
use base::clock::Timestamp;
use base::error::{Code, Error, Result};
use base::ids::{AttachmentId, ConversationId, UserId};
use base::measure::count;
use base::people::{Audience, by_webhook, folded};
use protocol::attachment::decode;
use store::{
    AttachmentImport, ExportedConversation, ExportedMarks, ExportedMemory, ExportedMessage,
    ExportedSchedule, Import, List, ListItem, NewCalendar, Ownership, Readers, Role,
    SCHEDULE_CHANNEL, Store, Trigger, UploadLimits, User, UserRole, Viewer,
};

/// Most messages or memories, and about most bytes, of one transaction.
const BATCH: usize = 200;
const BATCH_BYTES: usize = 1024 * 1024;
/// Most reasons, names and audiences that are kept apart.
const MOST_NOTED: usize = 20;
/// Follows the name of a speaker where only the file says who spoke.
const IMPORTED: &str = " by import";
/// Most names that are remembered.
const MOST_NAMES: usize = 10_000;
/// Longest title, name and memory, in characters.
const TITLE_CHARACTERS: usize = 200;
const NAME_CHARACTERS: usize = 208;
const MEMORY_CHARACTERS: usize = 4_000;

/// The person for whom something is imported, and their rights.
#[derive(Clone, Debug)]
pub struct ImportRequest {
    /// Whose it becomes, privately, unless it is given back to those who had it.
    pub importer: User,
    /// Whether things go to the people that the file names, as only the machine's owner may decide. What
    /// names nobody who is here becomes the importer's all the same.
    pub restores: bool,
    /// Whether the marks of outside text in the file count. Otherwise all of it is marked.
    pub is_trusted: bool,
    /// Who changes the household's lists.
    pub viewer: Viewer,
    /// What files may take.
    pub limits: UploadLimits,
    /// Most schedules of a person.
    pub most_schedules: usize,
    /// In which the next times of schedules are found.
    pub zone: Zone,
    /// The time.
    pub now: Timestamp,
}

/// The result of an import.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ImportReport {
    /// Conversations.
    pub imported: u64,
    /// Their messages.
    pub messages: u64,
    /// Conversations that were there already.
    #[serde(rename = "already_there")]
    pub known: u64,
    /// Memories.
    pub memories: u64,
    /// Schedules.
    pub schedules: u64,
    /// Calendars, which have no password yet.
    pub calendars: u64,
    /// Items of lists.
    pub items: u64,
    /// What was skipped.
    pub left_out: u64,
    /// Why it was skipped, and how often.
    pub reasons: BTreeMap<String, u64>,
    /// Names in the file that nobody has here.
    pub unknown_names: BTreeSet<String>,
    /// Whose it became that had no owner here.
    pub owner: String,
    /// For each audience of what was imported, its latest conversation.
    #[serde(skip)]
    pub seen_by: Vec<(Readers, ConversationId)>,
    /// The lists that were changed.
    #[serde(skip)]
    pub lists: Vec<String>,
}

impl ImportReport {
    /// Counts what is skipped.
    pub fn skip(&mut self, reason: &str) {
        self.left_out += 1;
        let is_new = !self.reasons.contains_key(reason);
        let is_full = self.reasons.len() >= MOST_NOTED;
        let reason = if is_new && is_full {
            "for other reasons"
        } else {
            reason
        };
        *self.reasons.entry(reason.to_owned()).or_insert(0) += 1;
    }
}

/// A conversation of another assistant.
pub struct ForeignConversation {
    /// Its name at the source, such as `chatgpt:1b2c`.
    pub source: String,
    pub conversation: ExportedConversation,
    pub messages: Vec<ExportedMessage>,
}

/// Stores what the readers of the formats parse.
pub struct Importer<'a> {
    store: &'a Store,
    request: ImportRequest,
    pub report: ImportReport,
    names: HashMap<String, Option<UserId>>,
    /// The conversation that is being imported; none while one is skipped.
    open: Option<OpenImport>,
    memories: Vec<(ExportedMemory, Ownership)>,
}

/// A conversation that is being imported, with the messages not stored yet.
struct OpenImport {
    import: Import,
    waiting: Vec<(ExportedMessage, Option<UserId>)>,
    bytes: usize,
    messages: u64,
    /// Whether the last message was taken: files that follow are its.
    has_message: bool,
    /// Whether the importer has read it.
    is_known: bool,
    /// The file that is being read, and how many bytes of it are missing.
    file: Option<(AttachmentImport, u64)>,
}

impl<'a> Importer<'a> {
    pub fn new(store: &'a Store, request: ImportRequest) -> Importer<'a> {
        let owner = request.importer.name.clone();
        Importer {
            store,
            request,
            report: ImportReport {
                owner,
                ..ImportReport::default()
            },
            names: HashMap::new(),
            open: None,
            memories: Vec::new(),
        }
    }

    /// The person of this name, if there is one here.
    fn person(&mut self, name: &str) -> Result<Option<UserId>> {
        let key = folded(name);
        if let Some(known) = self.names.get(&key) {
            return Ok(*known);
        }
        let found = self.store.user(name)?.map(|user| user.id);
        if found.is_none() && self.report.unknown_names.len() < MOST_NOTED {
            self.report.unknown_names.insert(shortened(name));
        }
        if self.names.len() < MOST_NAMES {
            self.names.insert(key, found);
        }
        Ok(found)
    }

    /// Whose a thing becomes that says this of itself.
    fn ownership(&mut self, owner: Option<&str>, audience: Option<Audience>) -> Result<Ownership> {
        let importer = self.request.importer.id;
        let theirs = Ownership {
            owner: Some(importer),
            audience: Audience::Private,
            copy_for: Some(importer),
        };
        if !self.request.restores {
            return Ok(theirs);
        }
        let had = match owner {
            Some(name) => match self.person(name)? {
                None => return Ok(theirs),
                known => known,
            },
            None => None,
        };
        let audience = match audience {
            Some(Audience::People(names)) => {
                let mut known = Vec::new();
                for name in names {
                    if self.person(&name)?.is_some() {
                        known.push(name);
                    }
                }
                if known.is_empty() {
                    Audience::Private
                } else {
                    Audience::People(known)
                }
            }
            audience => audience.unwrap_or(Audience::Private),
        };
        // What nobody owns and nobody would see.
        if had.is_none() && audience == Audience::Private {
            return Ok(theirs);
        }
        Ok(Ownership {
            owner: had,
            audience,
            copy_for: None,
        })
    }

    /// The speaker that a file names. Anybody may have written the file, so everybody but the
    /// importer is marked. Callers of webhooks already are.
    fn speaker(&self, name: &str) -> String {
        let importer = &self.request.importer.name;
        let is_marked = name.contains(" by webhook ") || name.ends_with(IMPORTED);
        match self.request.is_trusted || is_marked || folded(name) == folded(importer) {
            true => shortened(name),
            false => format!("{}{IMPORTED}", shortened(name)),
        }
    }

    /// Whether text from outside counts as being in something that says this of itself.
    fn is_outside(&self, says: Option<bool>) -> bool {
        says.filter(|_| self.request.is_trusted).unwrap_or(true)
    }

    /// Begins a conversation of Hearth's own export.
    pub fn conversation(&mut self, mut new: ExportedConversation) -> Result<()> {
        self.finish()?;
        new.id = new.conversation_id.or(new.id);
        let Some(id) = new.id else {
            self.report.skip("conversations without an id");
            return Ok(());
        };
        let restores = self.request.restores;
        let mut marks = Vec::new();
        for mut one in new.marks.drain(..).take(MOST_NAMES) {
            // Nobody sorts the conversations of others.
            let user = if restores {
                self.person(&one.user)?
            } else {
                one.read_until = None;
                let importer = &self.request.importer;
                let is_own = folded(&one.user) == folded(&importer.name);
                is_own.then_some(importer.id)
            };
            marks.extend(user.map(|user| (user, one)));
        }
        // The model must know which conversations came from a webhook.
        new.channel = new.channel.as_deref().map(shortened);
        if !restores {
            (new.account, new.external_name) = (None, None);
        }
        // The model obeys them: they come from people the owner of the machine trusts.
        if !self.request.is_trusted {
            (new.model, new.instructions) = (None, None);
        }
        new.outside = Some(self.is_outside(new.outside));
        self.begin(&format!("hearth:{id}"), new, marks)
    }

    /// Stores a whole conversation of another assistant, which may quote anybody.
    pub fn foreign(&mut self, found: ForeignConversation) -> Result<()> {
        if found.messages.is_empty() {
            self.report.skip("conversations without messages");
            return Ok(());
        }
        self.begin(&found.source, found.conversation, Vec::new())?;
        if let Some(open) = &mut self.open {
            open.is_known = true;
        }
        for mut message in found.messages {
            if message.role == Role::User {
                message.speaker = Some(self.request.importer.name.clone());
            }
            self.message(message)?;
        }
        self.finish()
    }

    fn begin(
        &mut self,
        source: &str,
        mut new: ExportedConversation,
        marks: Vec<(UserId, ExportedMarks)>,
    ) -> Result<()> {
        let ownership = self.ownership(new.owner.as_deref(), new.audience.take())?;
        new.title = new.title.trim().chars().take(TITLE_CHARACTERS).collect();
        let begun = self.store.begin_import(source, new, marks, ownership)?;
        self.report.known += u64::from(begun.is_none());
        self.open = begun.map(|import| OpenImport {
            import,
            waiting: Vec::new(),
            bytes: 0,
            messages: 0,
            has_message: false,
            is_known: !self.request.restores,
            file: None,
        });
        Ok(())
    }

    /// A message of the conversation that was begun last.
    pub fn message(&mut self, mut new: ExportedMessage) -> Result<()> {
        let asked_by = match &new.asked_by {
            Some(name) if self.request.restores && self.open.is_some() => self.person(name)?,
            _ => None,
        };
        new.id = new.message_id.or(new.id);
        self.finish_file()?;
        new.speaker = new.speaker.map(|name| self.speaker(&name));
        let Some(open) = &mut self.open else {
            return Ok(());
        };
        open.has_message = true;
        open.bytes += new.content.len();
        open.messages += u64::from(new.hidden_with.is_none());
        new.channel = new.channel.as_deref().map(shortened);
        open.waiting.push((new, asked_by));
        if open.waiting.len() >= BATCH || open.bytes >= BATCH_BYTES {
            open.store_waiting()?;
        }
        Ok(())
    }

    /// Leaves out a message, and the files that follow.
    pub fn skip_message(&mut self, reason: &str) -> Result<()> {
        self.finish_file()?;
        if let Some(open) = &mut self.open {
            open.has_message = false;
            self.report.skip(reason);
        }
        Ok(())
    }

    /// Begins a file of the last message.
    pub fn begin_file(
        &mut self,
        id: Option<AttachmentId>,
        name: &str,
        media_type: Option<String>,
        bytes: u64,
    ) -> Result<()> {
        self.finish_file()?;
        let Some(open) = &mut self.open else {
            return Ok(());
        };
        let limits = self.request.limits;
        let is_too_large = !self.request.restores && bytes > limits.bytes;
        if !open.has_message || is_too_large {
            self.report.skip(if is_too_large {
                "attachments over limits.attachment_bytes"
            } else {
                "attachments without a message"
            });
            return Ok(());
        }
        open.store_waiting()?;
        match (open.import).begin_attachment(id, name, media_type, bytes, limits) {
            Ok(file) => open.file = Some((file, bytes)),
            Err(error) if error.status() == 507 => {
                let reason = "attachments beyond limits.attachments_total_bytes";
                self.report.skip(reason);
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Adds a part, in base64, to the file.
    pub fn add_to_file(&mut self, data: &str) -> Result<()> {
        let Some((file, missing)) = self.open.as_mut().and_then(|open| open.file.as_mut()) else {
            return Ok(());
        };
        let part = decode(data).unwrap_or_default();
        match missing.checked_sub(part.len() as u64) {
            Some(rest) if !part.is_empty() => {
                *missing = rest;
                file.add(&part)?;
            }
            // The rest does not count either.
            _ => *missing = u64::MAX,
        }
        Ok(())
    }

    fn finish_file(&mut self) -> Result<()> {
        match self.open.as_mut().and_then(|open| open.file.take()) {
            Some((file, 0)) => file.finish()?,
            Some((file, _)) => {
                file.discard();
                self.report.skip("attachments that are not whole");
            }
            None => {}
        }
        Ok(())
    }

    /// A memory.
    pub fn memory(&mut self, mut new: ExportedMemory) -> Result<()> {
        let length = new.content.trim().chars().count();
        if !(1..=MEMORY_CHARACTERS).contains(&length) {
            self.report.skip("memories that are empty or too long");
            return Ok(());
        }
        let ownership = self.ownership(new.owner.as_deref(), new.audience.take())?;
        if let (Some(name), Some(account)) = (&new.speaker, &new.account) {
            new.speaker = Some(by_webhook(name, account));
        }
        new.speaker = new.speaker.map(|name| self.speaker(&name));
        new.channel = new.channel.as_deref().map(shortened);
        new.account = new.account.filter(|_| self.request.restores);
        new.outside = self.is_outside(Some(new.outside));
        self.memories.push((new, ownership));
        if self.memories.len() >= BATCH {
            self.store_memories()?;
        }
        Ok(())
    }

    fn store_memories(&mut self) -> Result<()> {
        if !self.memories.is_empty() {
            let memories = std::mem::take(&mut self.memories);
            self.report.memories += self.store.import_memories(memories)? as u64;
        }
        Ok(())
    }

    /// A schedule.
    pub fn schedule(&mut self, mut new: ExportedSchedule) -> Result<()> {
        self.finish()?;
        let (now, zone) = (self.request.now, &self.request.zone);
        let cron = new.cron.as_deref().map(str::parse).transpose();
        let on = new.on.as_deref().map(str::parse::<Trigger>).transpose();
        let (Ok(cron), Ok(on)) = (cron, on) else {
            self.report.skip("schedules whose times cannot be read");
            return Ok(());
        };
        let mut timing = new.next_at.map(|next_at| Timing {
            cron,
            is_wait: new.is_wait,
            local: new.local_at.clone(),
            ..Timing::once(next_at)
        });
        let has_passed = match &mut timing {
            None => on.is_none(),
            Some(timing) if timing.next_at > now || new.paused => false,
            Some(timing) => {
                timing.next_at = timing.after(now, zone);
                timing.cron.is_none()
            }
        };
        if has_passed {
            self.report.skip("reminders whose time has passed");
            return Ok(());
        }
        let ownership = self.ownership(new.owner.as_deref(), new.audience.take())?;
        if ownership.copy_for.is_some() {
            new.owner = Some(self.request.importer.name.clone());
        }
        new.prompt = new.prompt.trim().to_owned();
        if self.request.restores {
            new.channel = shortened(&new.channel);
        } else {
            new.channel = SCHEDULE_CHANNEL.to_owned();
            // Whoever wrote the file could name anybody.
            new.made_by = None;
            new.webhook = None;
        }
        new.outside = self.is_outside(Some(new.outside));
        let most = self.request.most_schedules;
        let stored = self.store.import_schedule(new, timing, ownership, most);
        let is_new = self.unless_refused(stored, "schedules over a limit")?;
        self.report.schedules += u64::from(is_new == Some(true));
        Ok(())
    }

    /// A calendar.
    pub fn calendar(&mut self, line: CalendarLine) -> Result<()> {
        self.finish()?;
        let may_be_local = self.request.restores || self.request.importer.role >= UserRole::Admin;
        let url = checked_address(&line.url).ok();
        let url = url.filter(|url| may_be_local || !url.authority.host.is_local());
        let Some(url) = url else {
            self.report
                .skip("calendars whose address an admin alone may give");
            return Ok(());
        };
        let ownership = self.ownership(line.owner.as_deref(), line.audience)?;
        let Some(owner_id) = ownership.owner else {
            return Ok(());
        };
        let added = self.store.add_calendar(NewCalendar {
            name: line.name,
            url: url.text(),
            username: line.username,
            password: None,
            owner_id,
            audience: ownership.audience,
            is_read_only: line.read_only,
            may_be_local,
            refresh_minutes: line.refresh_minutes.clamp(5, 24 * 60),
        });
        let reason = "calendars that are there already, or over a limit";
        let added = self.unless_refused(added, reason)?;
        self.report.calendars += u64::from(added.is_some());
        Ok(())
    }

    /// Adds to a list of the household what is not on it yet.
    pub fn list(&mut self, name: String, outside: bool, items: Vec<ItemLine>) -> Result<()> {
        self.finish()?;
        let items = items.into_iter().map(|item| ListItem {
            id: 0.into(),
            text: item.text,
            is_checked: item.checked,
            is_outside: self.is_outside(Some(item.outside)),
        });
        let list = List {
            items: items.collect(),
            is_outside: self.is_outside(Some(outside)),
            name: name.clone(),
        };
        let stored = match self.store.import_list(&self.request.viewer, list) {
            Err(error) if error.code() == Code::Unauthorized => {
                self.report.skip("lists, which are the household's");
                return Ok(());
            }
            stored => stored,
        };
        match self.unless_refused(stored, "lists over a limit")? {
            None | Some((0, false)) => {}
            Some((added, _)) => {
                self.report.items += added as u64;
                self.report.lists.push(name);
            }
        }
        Ok(())
    }

    /// What was stored; nothing when it breaks a rule of the store, for which it is skipped.
    fn unless_refused<T>(&mut self, stored: Result<T>, reason: &str) -> Result<Option<T>> {
        match stored {
            Err(error) if error.code() == Code::InvalidRequest => {
                self.report.skip(reason);
                Ok(None)
            }
            stored => stored.map(Some),
        }
    }

    /// Ends the conversation that is open, and stores what waits.
    pub fn finish(&mut self) -> Result<()> {
        self.store_memories()?;
        self.finish_file()?;
        let Some(mut open) = self.open.take() else {
            return Ok(());
        };
        open.store_waiting()?;
        let (id, messages) = (open.import.id(), open.messages);
        let readers = open.import.finish()?;
        if open.is_known {
            let importer = &self.request.importer;
            let viewer = Viewer::person(importer.id, importer.role);
            self.store.mark_read(&viewer, id)?;
        }
        self.report.imported += 1;
        self.report.messages += messages;
        let seen_by = &mut self.report.seen_by;
        seen_by.retain(|(known, _)| *known != readers);
        if seen_by.len() < MOST_NOTED {
            seen_by.push((readers, id));
        }
        Ok(())
    }

    /// Why the import ends here, and what has been imported until then.
    pub fn stopped(&self, place: &str, why: &Error) -> Error {
        let (imported, messages) = (self.report.imported, self.report.messages);
        let (imported, messages) = (count(imported, "conversation"), count(messages, "message"));
        why.clone().rephrased(|why| {
            format!(
                "{place}{why}; imported until there: {imported}, {messages}. What exists is \
                 skipped when you import it again"
            )
        })
    }
}

impl OpenImport {
    fn store_waiting(&mut self) -> Result<()> {
        self.bytes = 0;
        if !self.waiting.is_empty() {
            self.import.add(std::mem::take(&mut self.waiting))?;
        }
        Ok(())
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(NAME_CHARACTERS).collect()
}

/// A file that cannot be read.
pub fn unread(error: std::io::Error) -> Error {
    Error::invalid_request(format!("the file cannot be read: {error}"))
}

/// The line of a message that stands for a file.
pub fn attached(kind: &str, name: Option<&Value>) -> String {
    match name.and_then(Value::as_str) {
        Some(name) => format!("[{kind}: {name}]"),
        None => format!("[{kind}]"),
    }
}
