//! Commands as a client sends them (contract section 4.1, protocol section 2).
//!
//! Each command is declared once, below: its name on the wire, the least role that may send it,
//! and its fields with the function that reads each. The parser, the names in error messages, the
//! roles and [`DECLARATIONS`] follow from that. Fields are checked for type and size here; whether
//! what they name exists is for the service to find out.

#[macro_use]
mod declare;
mod request;
#[cfg(test)]
mod tests;
mod values;

use std::time::Duration;

use serde_json::{Map, Value};

use crate::attachment::data as attachment_data;
use crate::event::EventSet;
use crate::fields::Fields;
use crate::push::Subscription;
use crate::record;
use crate::schema::{self, Schema, object};
use base::clock::Timestamp;
use base::error::Result;
use base::ids::{
    ApprovalId, AttachmentId, CalendarId, ConversationId, DeliveryId, MemoryId, MessageId,
    ScheduleId, TokenId, TurnId,
};
use base::people::{Audience, UserRole};
use base::reply::Surface;
use base::secret::Secret;
use values::{
    any, attachments, audience, bytes, events, expiry, false_by_default, id, idempotency_key,
    limit, message, offset, optional_array, optional_audience, optional_id, optional_secret,
    optional_short_text, optional_text, optional_time, part, part_length, refresh_minutes,
    search_order, secret, sequence_number, short_text, snooze_minutes, surface, texts,
    true_by_default,
};

pub use declare::{CommandSchema, Declaration, Scope};
pub use request::Request;
use request::unknown;
pub use values::{
    CHAT_MESSAGE_BYTES, ConversationCursor, Credential, LIST_DEFAULT, LIST_LIMIT, Remember,
    SearchOrder, check_idempotency_key, check_message,
};

commands! {
    /// Signs the connection in. It must come first.
    "auth" Viewer Any Auth(Credential) -> Authenticated,

    /// Sends the assistant a message. The response follows when its turn ends.
    "chat" User Person Chat(Chat {
        /// 1 byte to 256 KiB of text, not only white space.
        message: String = message,
        /// The conversation to continue; a new one when absent.
        conversation_id: Option<ConversationId> = optional_id,
        /// Whether this connection wants the turn's events.
        stream: bool = false_by_default,
        /// A repeat within 24 hours joins or returns the first turn.
        idempotency_key: Option<String> = idempotency_key,
        /// The ids of up to 16 files that were put and that no message has yet.
        attachments: Vec<AttachmentId> = attachments,
        /// Who sees a new conversation; as `privacy.conversations` says when absent.
        audience: Option<Audience> = optional_audience,
        /// Where its replies are read: `page` (Markdown), `terminal`, `voice` or `plain`.
        surface: Option<Surface> = surface,
        /// A message in the conversation that this one is written in place of; both stay.
        replaces: Option<MessageId> = optional_id,
        /// The model to ask for this reply, if not the one of the conversation.
        model: Option<String> = optional_short_text::<200>,
    }) -> Reply,

    /// Returns the settings, without secrets.
    "get_config" Viewer Any GetConfig(GetConfig {
        /// Only this one, such as `limits.turn_seconds`; then the response has `path` and
        /// `value`.
        path: Option<String> = Fields::optional_string,
    }) -> Settings,

    /// Changes settings: all of them or, if one is refused, none.
    "update_config" Admin Any UpdateConfig(UpdateConfig {
        /// Field names and their new values.
        config: Map<String, Value> = Fields::object,
        /// Only ask the model's provider whether it would answer with them; nothing is changed.
        test: bool = false_by_default,
    }) -> {
        /// Names of the changed fields, in the order given.
        #[serde(skip_serializing_if = "Option::is_none")]
        updated_fields: Vec<String>,
        /// Of a test: whether the provider would answer.
        #[serde(skip_serializing_if = "Option::is_none")]
        is_usable: bool,
        /// Of a test: the same, for a person.
        #[serde(skip_serializing_if = "Option::is_none")]
        message: String,
        /// Of a test: the provider's models, as far as it lists them.
        #[serde(skip_serializing_if = "Option::is_none")]
        models: Vec<String>,
        /// Of a test: the usual address of the provider; null if it has none.
        #[serde(skip_serializing_if = "Option::is_none")]
        usual_url: Option<String>,
    },

    /// Looks for model servers: for Ollama, llama.cpp and LM Studio on this machine, or for any
    /// at the addresses that are given.
    "find_models" Admin Any FindModels(FindModels {
        /// Up to 8, such as `nas.lan` or `192.168.1.20:11434`; this machine when absent.
        addresses: Vec<String> = texts,
    }) -> {
        /// Those that answered within two seconds.
        servers: Vec<record::ModelServer>,
    },

    /// Sets one value of the configuration file, or restores its default.
    "set_config" Owner Any SetConfig(SetConfig {
        /// Such as `limits.turn_seconds` or `channels.lan.port`.
        path: String = Fields::string,
        /// Null or nothing for the default.
        value: Value = any,
    }) -> ConfigChange,

    /// Replaces the configuration file.
    "replace_config" Owner Any ReplaceConfig(ReplaceConfig {
        /// The new text.
        text: String = Fields::string,
        /// The text that it replaces: if somebody else has changed that, it stays.
        was: String = Fields::string,
    }) -> ConfigChange,

    /// Checks the configuration file as it is.
    "check_config" Owner Any CheckConfig -> {
        /// What is wrong with it, each with its line.
        problems: Vec<String>,
        /// What its owner may not intend.
        warnings: Vec<String>,
    },

    /// Lists every setting with its documentation.
    "list_settings" Viewer Any ListSettings -> {
        /// In the order of the documentation.
        settings: Vec<record::Setting>,
    },

    /// Lists the conversations that the caller may see, newest activity first.
    "list_conversations" Viewer Any ListConversations(ListConversations {
        /// Rows of this page: 1 to [`LIST_LIMIT`].
        limit: usize = limit,
        /// The `next_cursor` of the previous page; absent for the first.
        cursor: Option<ConversationCursor> = optional_id,
        /// With those that the caller has archived.
        archived: bool = false_by_default,
        /// Only this one, archived or not; then nothing else counts.
        conversation_id: Option<ConversationId> = optional_id,
    }) -> {
        /// The page.
        conversations: Vec<record::Conversation>,
        /// Where the next page begins; null on the last.
        next_cursor: Option<MessageId>,
    },

    /// Returns the latest messages of a conversation, oldest first.
    "get_messages" Viewer Any GetMessages(GetMessages {
        /// A conversation that exists.
        conversation_id: ConversationId = id,
        /// Rows of this page: 1 to [`LIST_LIMIT`].
        limit: usize = limit,
        /// Only messages older than this one, to page back.
        before: Option<MessageId> = optional_id,
        /// The page that has this one in its middle, instead.
        around: Option<MessageId> = optional_id,
        /// Those that are not shown, instead: other versions, and what followed them.
        hidden: bool = false_by_default,
    }) -> {
        /// Oldest first.
        messages: Vec<record::Message>,
        /// Whether there are older ones.
        has_more: bool,
        /// The same, of a page `around` a message.
        #[serde(skip_serializing_if = "Option::is_none")]
        has_more_before: bool,
        /// Whether there are newer ones, of such a page.
        #[serde(skip_serializing_if = "Option::is_none")]
        has_more_after: bool,
    },

    /// Lists the tools, with their source and permission.
    "list_tools" Viewer Any ListTools -> {
        /// Also those that are denied at present.
        tools: Vec<record::Tool>,
    },

    /// Revokes the token that the connection is signed in with, and closes the connection.
    "sign_out" Viewer Any SignOut -> {
        /// True.
        revoked: bool,
    },

    /// Checks that the server answers.
    "ping" Viewer Any Ping -> {
        /// The server's time.
        time: Timestamp,
    },

    /// Asks for events; replaces an earlier subscription.
    "subscribe" Viewer Any Subscribe(Subscribe {
        /// The names of the events; every event when absent.
        events: EventSet = events,
        /// Replays kept events after this `seq`; none when absent.
        since: Option<u64> = sequence_number,
    }) -> {
        /// The events that will be sent.
        events: Vec<String>,
        /// The number of the newest event.
        seq: u64,
        /// Whether events after `since` are no longer kept.
        events_lost: bool,
    },

    /// Returns a turn's state, and its reply once there is one.
    "get_turn" Viewer Any GetTurn(GetTurn {
        /// As the response to `chat` or an event names it.
        turn_id: TurnId = id,
    }) -> Turn,

    /// Stops a turn that runs or waits: one of the caller's, or as an admin one that they see.
    "cancel" User Any Cancel(Cancel {
        /// One that has ended stays as it ended.
        turn_id: TurnId = id,
    }) -> {
        /// The turn.
        turn_id: TurnId,
        /// `cancelling`, or the state in which it has ended.
        state: String,
    },

    /// Gives a conversation another title.
    "rename_conversation" User Any RenameConversation(RenameConversation {
        /// A conversation that exists.
        conversation_id: ConversationId = id,
        /// The new title: 1 to 200 characters.
        title: String = short_text::<200>,
    }) -> {
        /// The conversation.
        conversation_id: ConversationId,
        /// Its title.
        title: String,
    },

    /// Changes how the caller keeps a conversation, or for all how it is answered.
    "update_conversation" User Any UpdateConversation(UpdateConversation {
        /// A conversation that exists.
        conversation_id: ConversationId = id,
        /// Whether the caller keeps it at the top.
        pinned: Option<bool> = Fields::optional_bool,
        /// Whether the caller's list leaves it out.
        archived: Option<bool> = Fields::optional_bool,
        /// The model to ask in it; empty for the one of the settings.
        model: Option<String> = optional_text::<200>,
        /// Its instructions for the assistant: at most 4,000 characters; empty for none.
        instructions: Option<String> = optional_text::<4_000>,
    }) -> Conversation,

    /// Notes that the caller has seen all messages of a conversation.
    "mark_read" Viewer Person MarkRead(MarkRead {
        /// A conversation that exists.
        conversation_id: ConversationId = id,
    }) -> {
        /// The conversation.
        conversation_id: ConversationId,
    },

    /// Shows a version of a message, and what followed it, instead of the one that is shown.
    "select_version" User Any SelectVersion(SelectVersion {
        /// One of the `versions` of a message.
        message_id: MessageId = id,
    }) -> {
        /// The version that is shown.
        message_id: MessageId,
        /// Its conversation.
        conversation_id: ConversationId,
    },

    /// Deletes a message and its reply; one with several versions with all that follows it.
    "delete_message" User Any DeleteMessage(DeleteMessage {
        /// A message that exists.
        message_id: MessageId = id,
    }) -> {
        /// The message.
        message_id: MessageId,
        /// Its conversation.
        conversation_id: ConversationId,
    },

    /// Deletes a conversation and all that belongs to it, for good.
    "delete_conversation" User Any DeleteConversation(DeleteConversation {
        /// A conversation that exists.
        conversation_id: ConversationId = id,
    }) -> {
        /// The conversation.
        conversation_id: ConversationId,
    },

    /// Changes who sees a conversation. Its owner may do so.
    "share_conversation" User Any ShareConversation(ShareConversation {
        /// A conversation that exists.
        conversation_id: ConversationId = id,
        /// `private`, `household`, or a list of names.
        audience: Audience = audience,
    }) -> {
        /// The conversation.
        conversation_id: ConversationId,
        /// Whose it is.
        owner: Option<String>,
        /// Who sees it.
        audience: Audience,
    },

    /// Finds what was said in the conversations that the caller may see.
    "search_messages" User Any SearchMessages(SearchMessages {
        /// Words, or a question in plain words: 1 to 1,000 characters.
        query: String = short_text::<1_000>,
        /// Most hits: 1 to [`LIST_LIMIT`].
        limit: usize = limit,
        /// `relevance` (the default): with any of the words, the best first; or `newest`.
        order: SearchOrder = search_order,
    }) -> {
        /// In that order. Titles are among them unless the newest were asked for.
        messages: Vec<record::SearchHit>,
        /// True while older messages are not found yet: after an upgrade their index is made.
        indexing: bool,
    },

    /// Announces a file, which then comes in parts. One without bytes is complete at once.
    "put_attachment" User Person PutAttachment(PutAttachment {
        /// What to call it.
        name: String = Fields::string,
        /// What it is, as a hint: the content decides.
        media_type: Option<String> = Fields::optional_string,
        /// Its size.
        bytes: u64 = bytes,
    }) -> {
        /// Names it in `put_attachment_part` and `chat`.
        attachment_id: AttachmentId,
    },

    /// Sends a part of an announced file. A part that came before is not stored again.
    "put_attachment_part" User Person PutAttachmentPart(PutAttachmentPart {
        /// As the response to `put_attachment` names it.
        attachment_id: AttachmentId = id,
        /// Where the part begins: not after what has arrived.
        offset: u64 = offset,
        /// Up to 256 KiB in base64; none asks how much has arrived.
        data: Vec<u8> = part,
    }) -> {
        /// The file.
        attachment_id: AttachmentId,
        /// Its size.
        bytes: u64,
        /// How much has arrived.
        received: u64,
        /// Whether that is all.
        complete: bool,
        /// Once it is complete: its name.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: String,
        /// Once it is complete: its media type, by its content.
        #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
        media_type: String,
    },

    /// Returns a part of a file.
    "get_attachment" Viewer Any GetAttachment(GetAttachment {
        /// As a message names it.
        attachment_id: AttachmentId = id,
        /// Where the part begins; 0 when absent.
        offset: u64 = offset,
        /// Most bytes of the part: 256 KiB, also when absent.
        length: usize = part_length,
    }) -> {
        /// The file.
        #[serde(flatten)]
        attachment: record::Attachment,
        /// Where the part begins.
        offset: u64,
        /// The part in base64.
        data: String,
    },

    /// Returns the text of a PDF, as the assistant reads it.
    "read_attachment" Viewer Any ReadAttachment(ReadAttachment {
        /// As a message names it.
        attachment_id: AttachmentId = id,
    }) -> {
        /// The text, up to 256 KiB of it.
        text: String,
        /// Whether there is more.
        is_cut: bool,
    },

    /// Returns a part of an export, as GET /export writes it: what is the caller's, or one
    /// conversation.
    "export" Viewer Any Export(Export {
        /// 0 begins; then one more each time, until `done`.
        part: u64 = offset,
        /// Only this conversation.
        conversation_id: Option<ConversationId> = optional_id,
        /// Also what others share with the caller.
        shared: bool = false_by_default,
        /// Everything; for the owner of the machine.
        all: bool = false_by_default,
        /// `jsonl`, also when absent, or `markdown`.
        format: Option<String> = Fields::optional_string,
    }) -> {
        /// That of the request.
        part: u64,
        /// The next of the file; nothing at its end.
        text: String,
        /// Whether this was the end.
        done: bool,
        /// Conversations that were written until now.
        conversations: u64,
        /// Their messages.
        messages: u64,
    },

    /// Lists the tool calls that wait for a decision.
    "list_approvals" User Any ListApprovals -> {
        /// The oldest first.
        approvals: Vec<record::Approval>,
    },

    /// Lets a tool call run.
    "approve" User Any Approve(Approve {
        /// An approval that is still undecided.
        approval_id: ApprovalId = id,
        /// Whether the same tool asks again.
        remember: Remember = Remember::read,
    }) -> Approval,

    /// Refuses a tool call. The model learns of it, and the turn continues.
    "deny" User Any Deny(Deny {
        /// An approval that is still undecided.
        approval_id: ApprovalId = id,
    }) -> Approval,

    /// Lists what the assistant was asked to remember, as far as the caller may see it.
    "list_memories" User Any ListMemories(ListMemories {
        /// Only the caller's own.
        own: bool = false_by_default,
        /// Only those that some of these words match, the best match first.
        query: Option<String> = optional_short_text::<1_000>,
        /// Most matches of `query`: 1 to [`LIST_LIMIT`].
        limit: usize = limit,
    }) -> {
        /// The newest first, or the best match.
        memories: Vec<record::Memory>,
    },

    /// Has the assistant remember a fact.
    "add_memory" User AllTools AddMemory(AddMemory {
        /// One fact: 1 to 4,000 characters. The same one is kept once.
        content: String = short_text::<4_000>,
        /// Who sees it: `private` (when absent), `household`, or a list of names.
        audience: Option<Audience> = optional_audience,
    }) -> Memory,

    /// Changes a memory, which has another id then. What is absent stays.
    "update_memory" User AllTools UpdateMemory(UpdateMemory {
        /// As `list_memories` names it.
        memory_id: MemoryId = id,
        /// Another text.
        content: Option<String> = optional_short_text::<4_000>,
        /// Who sees it: for whoever's it is to say. Who does not any more has not been told of it.
        audience: Option<Audience> = optional_audience,
    }) -> Memory,

    /// Makes the assistant forget one thing.
    "delete_memory" User AllTools DeleteMemory(DeleteMemory {
        /// As `list_memories` names it.
        memory_id: MemoryId = id,
    }) -> {
        /// The memory.
        memory_id: MemoryId,
    },

    /// Lists the lists of the household, oldest first.
    "list_lists" User Any ListLists -> {
        /// The oldest first.
        lists: Vec<record::ListSummary>,
    },

    /// Returns a list with all that is on it.
    "get_list" User Any GetList(GetList {
        /// Its name, in any case.
        list: String = Fields::string,
    }) -> List,

    /// Changes a list: all of what is asked for or, if one part is refused, nothing. Returns it.
    "update_list" User AllTools UpdateList(UpdateList {
        /// Its name, in any case. A list that does not exist is made by what is added.
        list: String = Fields::string,
        /// Texts of new items. One that is there already is unchecked.
        add: Vec<String> = texts,
        /// Items that are done, each by its `item_id` or its text.
        check: Vec<String> = texts,
        /// Items that are not done after all.
        uncheck: Vec<String> = texts,
        /// Items to delete.
        remove: Vec<String> = texts,
    }) -> List,

    /// Deletes a list with all that is on it.
    "delete_list" User AllTools DeleteList(DeleteList {
        /// Its name, in any case.
        list: String = Fields::string,
    }) -> {
        /// Its name.
        list: String,
    },

    /// Sets a reminder or a routine.
    "create_schedule" User AllTools CreateSchedule(CreateSchedule {
        /// A reminder: this text is sent as it is, without asking a model; either this or `prompt`.
        say: Option<String> = Fields::optional_string,
        /// A routine: what the assistant is asked then. If it answers `[nothing to tell]`, or
        /// nothing, nobody is notified and nothing is added to the conversation.
        prompt: Option<String> = Fields::optional_string,
        /// A time as people say it (`tomorrow at 6pm`, `every other Friday`), as a date, or
        /// `+20m`; one of this, `cron` and `on`.
        at: Option<String> = Fields::optional_string,
        /// Repeatedly: five fields of cron, or words.
        cron: Option<String> = Fields::optional_string,
        /// On a change: `list NAME` when that list is changed, `webhook ACCOUNT` when that
        /// account gets a message; not by what routines do. Or `event MINUTES` before each event
        /// of a calendar, whose name may follow. At most 30 times an hour.
        on: Option<String> = Fields::optional_string,
        /// Everybody who is reminded, if not only the caller. Each finishes and puts off their
        /// own.
        people: Vec<String> = texts,
        /// Calls of tools that only read, each `{"tool": NAME, "arguments": {...}}`: they run
        /// first, and without a change of what they bring no model is asked.
        only_if_changed: Option<Value> = optional_array,
        /// Where it runs; a conversation of its own when absent.
        conversation_id: Option<ConversationId> = optional_id,
        /// A webhook account that also gets the replies.
        webhook: Option<String> = Fields::optional_string,
    }) -> Schedule,

    /// Finishes a reminder that was told: one that comes once is gone.
    "finish_reminder" Viewer AllTools FinishReminder(FinishReminder {
        /// As `list_schedules` and the event `reminder.told` name it.
        schedule_id: ScheduleId = id,
    }) -> {
        /// The schedule.
        schedule_id: ScheduleId,
    },

    /// Finishes a reminder that was told, and has it told again after a while.
    "snooze_reminder" User AllTools SnoozeReminder(SnoozeReminder {
        /// As `list_schedules` and the event `reminder.told` name it.
        schedule_id: ScheduleId = id,
        /// How long that is, in minutes; 1 to 10,080.
        minutes: u64 = snooze_minutes,
    }) -> Schedule,

    /// The latest runs of a schedule, the newest first: what each cost, and what became of it.
    "list_schedule_runs" Viewer Any ListScheduleRuns(ListScheduleRuns {
        /// As `list_schedules` names it.
        schedule_id: ScheduleId = id,
    }) -> {
        /// At most 50.
        runs: Vec<record::ScheduleRun>,
    },

    /// When the phones and browsers of the caller are quiet.
    "get_quiet_hours" Viewer Account GetQuietHours -> {
        /// Two times of day, such as `22:00-07:00`, of the caller or else of the configuration.
        quiet_hours: Option<String>,
    },

    /// Sets when the phones and browsers of the caller are to be quiet.
    "set_quiet_hours" Viewer Account SetQuietHours(SetQuietHours {
        /// Two times of day, such as `22:00-07:00`; null for what the configuration says.
        quiet_hours: Option<String> = Fields::optional_string,
    }) -> {
        /// What holds now.
        quiet_hours: Option<String>,
    },

    /// Chooses the language of what is written to the caller: of the page, and of questions,
    /// notifications and reminders.
    "set_language" Viewer Account SetLanguage(SetLanguage {
        /// `en`, `de`, `fr`, `es`, `it` or `nl`; null for that of the browser.
        language: Option<String> = Fields::optional_string,
    }) -> {
        /// What is chosen now.
        language: Option<String>,
    },

    /// Lists what is scheduled, as far as the caller may see it, the next first.
    "list_schedules" Viewer Any ListSchedules -> {
        /// The next first.
        schedules: Vec<record::Schedule>,
    },

    /// Deletes a schedule.
    "delete_schedule" Viewer AllTools DeleteSchedule(DeleteSchedule {
        /// As `list_schedules` names it.
        schedule_id: ScheduleId = id,
    }) -> {
        /// The schedule.
        schedule_id: ScheduleId,
    },

    /// Pauses a schedule, or resumes it.
    "pause_schedule" User AllTools PauseSchedule(PauseSchedule {
        /// As `list_schedules` names it.
        schedule_id: ScheduleId = id,
        /// False to resume it.
        paused: bool = true_by_default,
    }) -> Schedule,

    /// Lists the calendars that the caller may see.
    "list_calendars" Viewer Calendars ListCalendars -> {
        /// By owner and name.
        calendars: Vec<record::Calendar>,
    },

    /// Adds a calendar that is kept elsewhere, by CalDAV or as an .ics file. It is read at once,
    /// and `calendar.updated` tells what came of it.
    "add_calendar" User AllTools AddCalendar(AddCalendar {
        /// What to call it: 1 to 100 characters, unique among those of its owner. Of several
        /// calendars of an account, the one of this name is meant.
        name: String = Fields::string,
        /// Its address, or that of its server. One in the home network is added by admins alone.
        url: String = Fields::string,
        /// The user name at its server.
        username: Option<String> = Fields::optional_string,
        /// The password there.
        password: Option<Secret> = optional_secret,
        /// Who sees it: `private` (when absent), `household`, or a list of names.
        audience: Option<Audience> = optional_audience,
        /// Whether nothing in it is changed from here.
        read_only: bool = false_by_default,
        /// How often it is read: 5 to 1,440; 15 when absent, and 60 without a user name.
        refresh_minutes: Option<u32> = refresh_minutes,
        /// Whose it is; the caller when absent. Only the owner of the machine names somebody.
        owner: Option<String> = Fields::optional_string,
    }) -> Calendar,

    /// Changes a calendar, and reads it at once. What is absent stays.
    "update_calendar" User AllTools UpdateCalendar(UpdateCalendar {
        /// As `list_calendars` names it.
        calendar_id: CalendarId = id,
        /// Another name.
        name: Option<String> = Fields::optional_string,
        /// Another address.
        url: Option<String> = Fields::optional_string,
        /// Another user name.
        username: Option<String> = Fields::optional_string,
        /// Another password.
        password: Option<Secret> = optional_secret,
        /// Who sees it.
        audience: Option<Audience> = optional_audience,
        /// Whether nothing in it is changed from here.
        read_only: Option<bool> = Fields::optional_bool,
        /// How often it is read: 5 to 1,440.
        refresh_minutes: Option<u32> = refresh_minutes,
    }) -> Calendar,

    /// Removes a calendar here. Where it is kept it stays.
    "remove_calendar" User AllTools RemoveCalendar(RemoveCalendar {
        /// As `list_calendars` names it.
        calendar_id: CalendarId = id,
    }) -> {
        /// The calendar.
        calendar_id: CalendarId,
        /// Its name.
        name: String,
    },

    /// Lists the events of the calendars that the caller may see.
    "list_events" Viewer Calendars ListEvents(ListEvents {
        /// Those that are not over then; now when absent.
        from: Option<Timestamp> = optional_time,
        /// Those that begin before; 14 days after `from` when absent.
        until: Option<Timestamp> = optional_time,
    }) -> {
        /// In the order of their beginnings.
        events: Vec<record::CalendarEvent>,
    },

    /// Returns what the day brings: events, reminders, open lists, questions and unread replies.
    "today" Viewer Calendars Today(GetToday {
        /// The person it is for; the caller when absent. Only the owner of the machine names somebody.
        user: Option<String> = Fields::optional_string,
    }) -> Today,

    /// Lists the tools of the catalogue that can be added.
    "list_available_tools" Admin Any ListAvailableTools -> {
        /// By name.
        tools: Vec<record::CatalogueEntry>,
    },

    /// Adds a tool of the catalogue to the configuration.
    "add_tool" Admin Any AddTool(AddTool {
        /// As `list_available_tools` has it.
        name: String = Fields::string,
        /// The name under which it is added; the catalogue's when absent.
        alias: Option<String> = Fields::optional_string,
        /// Answers to its questions, by their names.
        answers: Map<String, Value> = Fields::object,
        /// Only try it; nothing is changed.
        test: bool = false_by_default,
    }) -> {
        /// The name under which it was added.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: String,
        /// What was allowed or denied.
        #[serde(skip_serializing_if = "Option::is_none")]
        tool_permissions: Map<String, Value>,
        /// Whether MCP servers are among it, whose tools are not known yet.
        #[serde(skip_serializing_if = "Option::is_none")]
        has_servers: bool,
        /// The MCP server among it that is not trusted.
        #[serde(skip_serializing_if = "Option::is_none")]
        outside: Option<String>,
        /// The webhook accounts that may use it.
        #[serde(skip_serializing_if = "Option::is_none")]
        accounts: Vec<String>,
        /// Of a test: whether it works.
        #[serde(skip_serializing_if = "Option::is_none")]
        works: bool,
        /// Of a test: the same, for a person.
        #[serde(skip_serializing_if = "Option::is_none")]
        message: String,
        /// What an answer may mean; the first is taken.
        #[serde(skip_serializing_if = "Option::is_none")]
        choices: Vec<record::Choice>,
    },

    /// Removes tools or an MCP server from the configuration.
    "remove_tool" Admin Any RemoveTool(RemoveTool {
        /// Of a tool or a server, or under which they were added.
        name: String = Fields::string,
    }) -> {
        /// The tools that are gone.
        tools: Vec<String>,
        /// The MCP servers that are gone.
        servers: Vec<String>,
        /// The people and webhook accounts that had rights of their own to them.
        holders: Vec<String>,
    },

    /// Lists the tools and MCP servers of the configuration, beside the built-in tools.
    "list_own_tools" Admin Any ListOwnTools -> {
        /// In the order of the file.
        tools: Vec<record::OwnTool>,
    },

    /// Lists the webhook accounts.
    "list_webhook_accounts" Admin Any ListWebhookAccounts -> {
        /// In the order of the file.
        accounts: Vec<record::WebhookAccount>,
    },

    /// Adds a webhook account to the configuration. What widens the account's rights (`tools`,
    /// `tool_permissions`, `trusted`) is for the owner of the machine.
    "add_webhook_account" Admin Any AddWebhookAccount(AddWebhookAccount {
        /// 1 to 64 characters.
        name: String = Fields::string,
        /// Its settings, as in the file.
        account: Map<String, Value> = Fields::object,
    }) -> ConfigChange,

    /// Removes a webhook account from the configuration. Its undelivered callbacks are dropped.
    "remove_webhook_account" Admin Any RemoveWebhookAccount(RemoveWebhookAccount {
        /// As `list_webhook_accounts` has it.
        name: String = Fields::string,
    }) -> {
        /// What came of it.
        #[serde(flatten)]
        change: record::ConfigChange,
        /// How many callbacks are dropped.
        undelivered: u64,
    },

    /// Returns what a test of a webhook account posts, and where; or sends it.
    "test_webhook_account" Admin Any TestWebhookAccount(TestWebhookAccount {
        /// As `list_webhook_accounts` has it.
        name: String = Fields::string,
        /// The message to send.
        message: Option<String> = Fields::optional_string,
        /// Whether the account gets it now. Its reply goes out as any other.
        send: bool = false_by_default,
    }) -> WebhookTest,

    /// Draws an address as a QR code, for another device.
    "draw_address" Viewer Any DrawAddress(DrawAddress {
        /// Of the page.
        url: String = Fields::string,
    }) -> {
        /// Its rows.
        qr: Vec<String>,
    },

    /// Lists the skills that are installed for the household.
    "list_skills" User Any ListSkills -> {
        /// By name.
        skills: Vec<record::Skill>,
        /// What is wrong with those that cannot be used; none for others than admins.
        problems: Vec<String>,
    },

    /// Installs the skill in a folder of this machine, or replaces the one of the same name.
    "add_skill" Owner Any AddSkill(AddSkill {
        /// The folder's whole path. It is copied.
        directory: String = Fields::string,
    }) -> {
        /// Its name.
        name: String,
        /// When it is used, in its own words.
        description: String,
        /// Whether it replaced one of the same name.
        was_there: bool,
    },

    /// Removes a skill.
    "remove_skill" Admin Any RemoveSkill(RemoveSkill {
        /// As `list_skills` has it.
        name: String = Fields::string,
    }) -> {
        /// Its name.
        name: String,
    },

    /// Lists webhook callbacks and their attempts.
    "list_deliveries" Admin Any ListDeliveries(ListDeliveries {
        /// `pending`, `held`, `delivered` or `dead`; all when absent.
        state: Option<String> = Fields::optional_string,
        /// Rows: 1 to [`LIST_LIMIT`].
        limit: usize = limit,
    }) -> {
        /// The newest first.
        deliveries: Vec<record::Delivery>,
    },

    /// Sends a callback again that was given up.
    "retry_delivery" Admin Any RetryDelivery(RetryDelivery {
        /// As `list_deliveries` names it.
        delivery_id: DeliveryId = id,
    }) -> Delivery,

    /// Returns what is said in a recording, where `voice.transcription` is set.
    "transcribe" User Any Transcribe(Transcribe {
        /// The recording: at most 512 KiB in base64.
        audio: Vec<u8> = attachment_data,
        /// What it is, such as `audio/webm`.
        media_type: String = Fields::string,
    }) -> {
        /// What was said.
        text: String,
    },

    /// Returns a text as speech, where `voice.speech` is set.
    "speak" User Any Speak(Speak {
        /// At most 2,000 bytes.
        text: String = Fields::string,
    }) -> {
        /// The speech in base64.
        audio: String,
        /// What it is, such as `audio/mpeg`.
        media_type: String,
    },

    /// Names a browser that is to be told what waits for the caller, through its push service, until
    /// the session ends.
    "push_subscribe" User Account PushSubscribe(PushSubscribe {
        /// As the browser has it: `endpoint`, and `keys` with `p256dh` and `auth`.
        subscription: Subscription = Subscription::read,
    }) -> {
        /// True.
        subscribed: bool,
    },

    /// Tells a browser of the caller nothing any more.
    "push_unsubscribe" User Account PushUnsubscribe(PushUnsubscribe {
        /// The browser's `endpoint`.
        endpoint: Secret = secret,
    }) -> {
        /// Whether the browser was known.
        unsubscribed: bool,
    },

    /// Returns version, uptime, and counts of what is under way.
    "server_info" Viewer Any ServerInfo -> ServerInfo,

    /// Returns the tokens that the models used, the newest day or month first, in UTC.
    "get_usage" Admin Any GetUsage(GetUsage {
        /// `day`, `month` (when absent), or `purpose`: by month, person and purpose.
        by: Option<String> = Fields::optional_string,
        /// Most rows: 1 to [`LIST_LIMIT`].
        limit: usize = limit,
    }) -> Usage,

    /// Sends a notification to a person's phone at once, also in quiet hours.
    "test_notification" Admin Any TestNotification(TestNotification {
        /// As `list_users` has it; with `notifications` in the settings.
        name: String = Fields::string,
    }) -> {
        /// One for each service.
        results: Vec<record::NotificationResult>,
    },

    /// Lists the newest warnings and errors of the log, at most 100.
    "list_errors" Admin Any ListErrors -> {
        /// The oldest first, as the log has them.
        errors: Vec<String>,
    },

    /// Lists the nightly backups.
    "list_backups" Admin Any ListBackups -> {
        /// The newest first.
        backups: Vec<record::NightlyBackup>,
        /// Where they are on the machine.
        directory: String,
        /// Whether one is made now.
        is_running: bool,
        /// Why the last could not be made, if so.
        problem: Option<String>,
    },

    /// Makes the backup of the night now; one that is there is replaced. `list_backups` tells how
    /// far it is.
    "start_backup" Admin Any StartBackup -> {
        /// True.
        started: bool,
    },

    /// Returns a part of the newest nightly backup that is encrypted, to the key that was set on
    /// the machine. Others are not for taking away.
    "download_backup" Admin Any DownloadBackup(DownloadBackup {
        /// The name of it in `list_backups`.
        name: String = Fields::string,
        /// 0 begins; then one more each time, until `done`.
        part: u64 = offset,
    }) -> {
        /// That of the request.
        part: u64,
        /// The next of the file in base64.
        data: String,
        /// Whether that was the last.
        done: bool,
        /// Bytes of the whole file.
        bytes: u64,
    },

    /// Returns a part of a copy of the whole database, as it was at the first part: a file that
    /// any SQLite program opens.
    "back_up" Owner Any BackUp(BackUp {
        /// 0 begins; then one more each time, until `done`. Within five minutes.
        part: u64 = offset,
    }) -> {
        /// That of the request.
        part: u64,
        /// The next of the file in base64; nothing at its end.
        data: String,
        /// Whether this was the end.
        done: bool,
        /// The size of the whole file.
        bytes: u64,
    },

    /// Lists everybody who may sign in.
    "list_users" Admin Any ListUsers -> {
        /// By name.
        users: Vec<record::Person>,
    },

    /// Adds a person.
    "add_user" Admin Any AddUser(AddUser {
        /// 1 to 64 letters and digits of one script; `-`, `_` and `.` may follow the first.
        name: String = Fields::string,
        /// `viewer`, `user` (when absent) or `admin`.
        role: Option<String> = Fields::optional_string,
        /// What people call them, in any script: 1 to 64 characters; the name when absent.
        display_name: Option<String> = Fields::optional_string,
        /// 8 characters to 1,024 bytes; absent for a program.
        password: Option<Secret> = optional_secret,
        /// Whether the person is a child: `people.NAME` is then written to the configuration.
        child: bool = false_by_default,
        /// Whether it is a program, which signs in with tokens alone: an admin makes them.
        program: bool = false_by_default,
    }) -> Person,

    /// Adds a person without a password, and makes a link that sets one: it works once, and
    /// for a day.
    "invite_user" Admin Any InviteUser(InviteUser {
        /// 1 to 64 letters and digits of one script; `-`, `_` and `.` may follow the first.
        name: String = Fields::string,
        /// `viewer`, `user` (when absent) or `admin`.
        role: Option<String> = Fields::optional_string,
        /// Whether the person is a child: `people.NAME` is then written to the configuration.
        child: bool = false_by_default,
        /// What people call them, in any script: 1 to 64 characters; the name when absent.
        display_name: Option<String> = Fields::optional_string,
        /// The address of the page to which the link leads.
        url: String = Fields::string,
    }) -> Invitation,

    /// Makes a link that sets a new password of a person: it works once, and for a day.
    "reset_password" Admin Any ResetPassword(ResetPassword {
        /// As `list_users` has it.
        name: String = Fields::string,
        /// The address of the page to which the link leads.
        url: String = Fields::string,
    }) -> Invitation,

    /// Lists the links that still work.
    "list_invitations" Admin Any ListInvitations -> {
        /// The links that work.
        invitations: Vec<record::Invitation>,
    },

    /// Makes a link useless. Whoever was invited by it and has no password yet is removed.
    "revoke_invitation" Admin Any RevokeInvitation(RevokeInvitation {
        /// Whose link, as `list_invitations` has it.
        name: String = Fields::string,
    }) -> {
        /// Whose link it was.
        name: String,
        /// Whether the person was invited by it, and is removed.
        is_removed: bool,
    },

    /// Sets somebody's password and ends their sessions.
    "set_password" Admin Any SetPassword(SetPassword {
        /// As `list_users` has it.
        name: String = Fields::string,
        /// 8 characters to 1,024 bytes.
        password: Secret = secret,
    }) -> Person,

    /// Changes what a person may do and ends their sessions. Tokens with a higher role are
    /// lowered to it.
    "set_role" Admin Any SetRole(SetRole {
        /// As `list_users` has it; not the last admin.
        name: String = Fields::string,
        /// `viewer`, `user` or `admin`.
        role: String = Fields::string,
    }) -> Person,

    /// Changes what limits a person: members of `people.NAME` in the configuration.
    "set_limits" Admin Any SetLimits(SetLimits {
        /// As `list_users` has it.
        name: String = Fields::string,
        /// Such as `monthly_tokens` and `instructions`, with their new values; null removes one.
        limits: Map<String, Value> = Fields::object,
    }) -> Person,

    /// Counts what goes with a person who is removed, and what stays without an owner.
    "get_belongings" Admin Any GetBelongings(GetBelongings {
        /// As `list_users` has it.
        name: String = Fields::string,
    }) -> Belongings,

    /// Begins a session of a person on the machine itself, for an hour.
    "create_session" Owner Any CreateSession(CreateSession {
        /// As `list_users` has it; the first admin when absent.
        user: Option<String> = Fields::optional_string,
    }) -> {
        /// Whose session it is.
        user: String,
        /// Its token.
        token: String,
        /// For how many seconds it is valid.
        expires_in: u64,
    },

    /// Removes a person with all that is theirs alone. What they share stays, without an owner.
    "remove_user" Admin Any RemoveUser(RemoveUser {
        /// As `list_users` has it; not the last admin.
        name: String = Fields::string,
        /// Who gets all that is theirs instead, but for tokens, calendars and unsent files, which end in
        /// any case. Only the owner of the machine hands over.
        hand_over_to: Option<String> = Fields::optional_string,
    }) -> Removal,

    /// Lists the API tokens.
    "list_tokens" Admin Any ListTokens(ListTokens {
        /// Whether sessions are listed, too.
        sessions: bool = false_by_default,
    }) -> {
        /// The newest first.
        tokens: Vec<record::Token>,
    },

    /// Creates an API token, which is shown once: for the caller, or for a program. Only the
    /// owner of the machine creates one for somebody else, who gets a notification.
    "create_token" Admin Any CreateToken(CreateToken {
        /// What it is for: 1 to 64 characters.
        name: String = Fields::string,
        /// At most its owner's own, which is also the default.
        role: Option<String> = Fields::optional_string,
        /// Its owner; the caller when absent.
        user: Option<String> = Fields::optional_string,
        /// How long it is valid; until it is revoked when absent.
        expires_in: Option<Duration> = expiry,
        /// The only tools of its turns; all when absent.
        tools: Option<Vec<String>> = Fields::optional_strings,
        /// `household`: it sees and makes only what is the household's.
        only: Option<String> = Fields::optional_string,
        /// The people beside its owner in whose name it may ask; none when absent. Only the owner
        /// of the machine names somebody.
        speaks_for: Option<Vec<String>> = Fields::optional_strings,
    }) -> Token,

    /// Revokes a token or session and closes its connections.
    "revoke_token" Admin Any RevokeToken(RevokeToken {
        /// As `list_tokens` has it.
        token_id: TokenId = id,
    }) -> {
        /// The token.
        token_id: TokenId,
    },

    /// Sets the caller's own password and ends their other sessions.
    "change_password" Viewer Account ChangePassword(ChangePassword {
        /// The present one.
        old_password: Secret = secret,
        /// 8 characters to 1,024 bytes.
        new_password: Secret = secret,
    }) -> {
        /// The caller.
        name: String,
    },

    /// Removes the caller with everything that belongs to them, shared or not.
    "delete_account" Viewer Account DeleteAccount(DeleteAccount {
        /// The caller's, once more.
        password: Secret = secret,
    }) -> {
        /// Who is gone.
        name: String,
    },

    /// Lists the caller's own sessions and tokens, and those of others that speak for the caller.
    "list_own_tokens" Viewer Account ListOwnTokens -> {
        /// The newest first.
        tokens: Vec<record::Token>,
    },

    /// Revokes a token or session of the caller and closes its connections. One of somebody else
    /// that speaks for the caller ceases to.
    "revoke_own_token" Viewer Account RevokeOwnToken(RevokeOwnToken {
        /// As `list_own_tokens` has it.
        token_id: TokenId = id,
    }) -> {
        /// The token.
        token_id: TokenId,
    },

    /// Lists the people the caller may know about, and what they are called: a guest knows
    /// those who see the same conversations.
    "list_people" Viewer Any ListPeople -> {
        /// By name, without programs.
        people: Vec<record::Called>,
    },

    /// Sets what people call the caller, or as an admin somebody else. The name to sign in with
    /// stays.
    "set_display_name" Viewer Any SetDisplayName(SetDisplayName {
        /// In any script: 1 to 64 characters; empty for the name to sign in with.
        display_name: String = Fields::string,
        /// Whose, for an admin; the caller's own when absent.
        name: Option<String> = Fields::optional_string,
    }) -> Person,

    /// Returns a code by which the caller links a sender of an account: who sends `/link CODE`
    /// from there within 10 minutes is the caller from then on.
    "link_sender" User Account LinkSender(LinkSender {
        /// A webhook account that has a secret and whose conversations the caller sees, or
        /// `telegram`.
        account: String = Fields::string,
    }) -> {
        /// The account.
        account: String,
        /// Works once. A new one replaces it.
        code: String,
        /// Until when it works.
        expires_at: Timestamp,
    },

    /// Lists linked senders: the caller's own, or those of everybody.
    "list_senders" Viewer Account ListSenders(ListSenders {
        /// Those of everybody, for an admin.
        all: bool = false_by_default,
    }) -> {
        /// By account.
        senders: Vec<record::Sender>,
    },

    /// Ends the link of a sender: the caller's own, or as an admin anybody's. From then on it is
    /// a stranger.
    "unlink_sender" Viewer Account UnlinkSender(UnlinkSender {
        /// As `list_senders` has it.
        account: String = Fields::string,
        /// As `list_senders` has it.
        sender: String = Fields::string,
    }) -> {
        /// The account.
        account: String,
        /// The sender.
        sender: String,
    },

    /// Ends all sessions of the caller, this one included, and closes their connections.
    "sign_out_everywhere" Viewer Account SignOutEverywhere(SignOutEverywhere {
        /// Whether the caller's API tokens are revoked, too.
        tokens: bool = false_by_default,
    }) -> {
        /// How many sessions and tokens were revoked.
        revoked: u64,
    },
}
