//! The records of the household, in the one form that they have over WebSocket, HTTP,
//! `--json` and in exports.
//!
//! A record carries its id under the name that other records and commands use for it.
//! Where it was called `id` before, it is that, too.

use std::collections::BTreeMap;

use serde_json::{Map, Number, Value};

use crate::schema::records;
use base::clock::Timestamp;
use base::error::Code;
use base::ids::{
    ApprovalId, AttachmentId, CalendarId, ConversationId, DeliveryId, EventId, ItemId, MemoryId,
    MessageId, ScheduleId, TokenId, TurnId,
};
use base::people::Audience;
use base::reply::FinishReason;

/// Settings by their names.
pub type Settings = Map<String, Value>;

records! {
    /// Who has signed in, and to what.
    pub struct Authenticated {
        /// True.
        pub authenticated: bool,
        /// The name.
        pub user: String,
        /// What people call them: the name, unless they have a display name.
        pub display_name: String,
        /// `viewer`, `user` or `admin`.
        pub role: &'static str,
        /// The language that they have chosen; absent where it is that of the browser.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub language: Option<String>,
        /// An admin to ask for what the role does not allow; absent for admins.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub admin: Option<String>,
        /// For how many seconds the token is valid; null if it does not expire.
        pub expires_in: Option<u64>,
        /// The server.
        pub server: Server,
        /// What a client must keep to.
        pub limits: ConnectionLimits,
        /// Created for a name and password; absent where a token was given.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub token: Option<String>,
    }

    /// What the server is.
    pub struct Server {
        /// `hearth`.
        pub name: &'static str,
        /// Its version.
        pub version: &'static str,
        /// The version of the protocol.
        pub protocol: u32,
    }

    /// What a client of a connection must keep to.
    pub struct ConnectionLimits {
        /// Longest message.
        pub max_message_bytes: usize,
        /// Most requests without a response.
        pub max_in_flight: usize,
        /// How often the server sends a ping.
        pub ping_seconds: u64,
    }

    /// The response to a message.
    pub struct Reply {
        /// `cancelled` when somebody stopped the turn, else absent.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub state: Option<&'static str>,
        /// The reply's text; of a cancelled turn, what was said so far.
        pub response: String,
        /// Where it was stored.
        pub conversation_id: ConversationId,
        /// The reply, for `get_messages`; a turn that was cancelled before its first word
        /// has none.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub message_id: Option<MessageId>,
        /// The message that it answers, if others came while it waited.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub in_reply_to: Option<MessageId>,
        /// Why it is not whole.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub finish_reason: Option<FinishReason>,
        /// The turn that it ended.
        pub turn_id: TurnId,
    }

    /// A conversation.
    pub struct Conversation {
        /// The same as `conversation_id`.
        pub id: ConversationId,
        /// Its id.
        pub conversation_id: ConversationId,
        /// The first line of its first message, until somebody renames it.
        pub title: String,
        /// When its first message was stored.
        pub created_at: Timestamp,
        /// When its newest message was stored.
        pub updated_at: Timestamp,
        /// Messages of both roles.
        pub message_count: u64,
        /// Where it came from: `websocket`, `lines`, `webhook:ACCOUNT`, ...
        pub channel: String,
        /// Whose it is: a name, or null for nobody's.
        pub owner: Option<String>,
        /// Who sees it: `private`, `household`, or a list of names.
        pub audience: Audience,
        /// True if the caller keeps it at the top, else absent.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        pub pinned: bool,
        /// True if the caller's list leaves it out, else absent.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        pub archived: bool,
        /// True if there is something in it that the caller has not seen, else absent.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        pub unread: bool,
        /// The model that is asked in it, if one was chosen.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub model: Option<String>,
        /// Its instructions for the assistant, if any.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub instructions: Option<String>,
    }

    /// A message of a conversation (contract section 2).
    pub struct Message {
        /// The same as `message_id`.
        pub id: MessageId,
        /// What `before` of `get_messages` takes.
        pub message_id: MessageId,
        /// `user` or `assistant`.
        pub role: &'static str,
        /// The whole text.
        pub content: String,
        /// When it was stored: ISO 8601, UTC.
        pub timestamp: Timestamp,
        /// The turn that it began or ended.
        pub turn_id: Option<TurnId>,
        /// Who said it, where known: the signed-in user, or the webhook's `user_id`.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub speaker: Option<String>,
        /// The message that it answers, if that is not the one before it: others came
        /// while its turn waited.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub in_reply_to: Option<MessageId>,
        /// All its versions, oldest first, this one among them; absent unless it was
        /// rewritten.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub versions: Vec<MessageId>,
        /// Why it is not whole, as in `chat.done`; absent for one that is.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub finish_reason: Option<FinishReason>,
        /// The files that it carries; absent where there is none.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub attachments: Vec<Attachment>,
    }

    /// A file of a message.
    pub struct Attachment {
        /// Names it in `get_attachment` and below /attachments/.
        pub attachment_id: AttachmentId,
        /// What its sender called it.
        pub name: String,
        /// Its media type, by its content.
        #[serde(rename = "type")]
        pub media_type: String,
        /// Its size.
        pub bytes: u64,
    }

    /// A message that a search found, or the title of a conversation.
    pub struct SearchHit {
        /// The message itself; absent for a title.
        #[serde(flatten, skip_serializing_if = "Option::is_none")]
        pub message: Option<Message>,
        /// Where it was said.
        pub conversation_id: ConversationId,
        /// What that is called.
        pub title: String,
        /// The text around what was searched for, on one line and without Markdown.
        pub excerpt: String,
        /// The same, for clients that know it by this name.
        pub snippet: String,
        /// How well it fits beside the other hits; 0 if the newest were asked for.
        pub score: Number,
        /// The ids of the passage: the message and those before and after it that no better
        /// hit shows, oldest first.
        pub passage: Vec<MessageId>,
    }

    /// A turn: a message, and the work that produces its reply.
    pub struct Turn {
        /// Its id.
        pub turn_id: TurnId,
        /// Its conversation.
        pub conversation_id: ConversationId,
        /// `queued`, `running`, `waiting_approval`, `done`, `failed` or `cancelled`.
        pub state: &'static str,
        /// Where its message came from.
        pub channel: String,
        /// When its message was stored.
        pub created_at: Timestamp,
        /// The model that answered, once one has.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub model: Option<String>,
        /// What it used, once a model has answered.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub tokens: Option<Tokens>,
        /// The reply, once there is one.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub message_id: Option<MessageId>,
        /// The reply's text; of a cancelled turn, what was said so far.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub response: Option<String>,
        /// The message that the reply answers, if that is not the one before it.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub in_reply_to: Option<MessageId>,
        /// While it runs, and somebody reads along: the reply so far.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub text: Option<String>,
        /// The `seq` of the last event in `text`.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub seq: Option<u64>,
        /// Why the reply is not whole.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub finish_reason: Option<FinishReason>,
        /// Why it failed, as in an error's envelope.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub code: Option<Code>,
        /// The same, for a person.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub error: Option<String>,
        /// The same, in every language.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub key: Option<String>,
    }

    /// Tokens that models used.
    pub struct Tokens {
        /// What was sent to them.
        pub input: u64,
        /// What they wrote.
        pub output: u64,
        /// As much of `input` as they had kept.
        pub cached: u64,
    }

    /// A tool call that waits for a decision.
    pub struct Approval {
        /// What `approve` and `deny` take.
        pub approval_id: ApprovalId,
        /// The turn that waits for it.
        pub turn_id: TurnId,
        /// Its conversation.
        pub conversation_id: ConversationId,
        /// The tool's name, as `list_tools` has it.
        pub tool: String,
        /// What it would be run with: an object, or its text where it is not JSON.
        pub arguments: Value,
        /// What is asked, in words for a person.
        pub reason: String,
        /// What stands around it, in words for a person.
        #[serde(flatten)]
        pub words: ApprovalWords,
        /// The person or the webhook account that asked, where known.
        pub requested_by: Option<String>,
        /// Where the message came from.
        pub channel: String,
        /// Who is covered by an answer for the conversation, or for always.
        pub covers: Option<String>,
        /// Whether text from outside was read in the conversation.
        pub outside: bool,
        /// When it was asked.
        pub created_at: Timestamp,
        /// When it is refused unless somebody has decided.
        pub expires_at: Timestamp,
        /// `approved`, `approved_conversation`, `approved_always`, `denied` or `expired`; null
        /// until then.
        pub decision: Option<&'static str>,
        /// Who decided: a user's name, or `timeout`.
        pub by: Option<String>,
        /// Whether the caller may answer, in lists.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub may_answer: Option<bool>,
    }

    /// What people read of a tool call that waits, beside the question itself.
    pub struct ApprovalWords {
        /// What the tool is called.
        pub label: String,
        /// Who asks, and through what.
        pub origin: String,
        /// After which text from outside it comes, if there is any.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub after: Option<String>,
        /// What the question does not say of the arguments.
        pub details: Vec<Detail>,
        /// The answers that there are, and what each means.
        pub answers: Vec<Answer>,
    }

    /// An argument of a tool call, or a part of one.
    pub struct Detail {
        /// What it is called.
        pub label: String,
        /// What it is, on as many lines as it has.
        pub text: String,
    }

    /// A possible answer to an approval.
    pub struct Answer {
        /// `once`, `conversation` or `always`, for `approve`; or `deny`.
        pub answer: &'static str,
        /// What it is called.
        pub label: String,
        /// What it means.
        pub sentence: String,
    }

    /// Something that the assistant was asked to remember.
    pub struct Memory {
        /// The same as `memory_id`.
        pub id: MemoryId,
        /// What `delete_memory` takes.
        pub memory_id: MemoryId,
        /// What it remembers.
        pub content: String,
        /// Who said it, and through what.
        pub speaker: Option<String>,
        /// When it was first remembered.
        pub created_at: Timestamp,
        /// Whose it is: a name, or null for nobody's.
        pub owner: Option<String>,
        /// Who sees it: `private`, `household`, or a list of names.
        pub audience: Audience,
        /// Where it was said.
        pub source: MemorySource,
        /// Other words by which it is found, if there are any.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub search_words: Vec<String>,
    }

    /// Where a memory came from.
    pub struct MemorySource {
        /// The channel; null for one that is older than this field.
        pub channel: Option<String>,
        /// The webhook account.
        pub account: Option<String>,
    }

    /// A list of the household, without what is on it.
    pub struct ListSummary {
        /// Its name.
        pub list: String,
        /// How much is on it.
        pub items: u64,
        /// How much of that is not done.
        pub unchecked: u64,
    }

    /// A list of the household.
    pub struct List {
        /// Its name.
        pub list: String,
        /// What is on it.
        pub items: Vec<ListItem>,
    }

    /// What is on a list.
    pub struct ListItem {
        /// What `check`, `uncheck` and `remove` of `update_list` take.
        pub item_id: ItemId,
        /// What it says.
        pub text: String,
        /// Whether it is done.
        pub checked: bool,
    }

    /// A prompt that runs at a set time.
    pub struct Schedule {
        /// What `delete_schedule` and `pause_schedule` take.
        pub schedule_id: ScheduleId,
        /// What a routine asks the assistant; null for a reminder.
        pub prompt: Option<String>,
        /// What a reminder tells; null for a routine.
        pub say: Option<String>,
        /// Who made it.
        pub owner: Option<String>,
        /// Where it runs; null for a conversation of its own.
        pub conversation_id: Option<ConversationId>,
        /// A webhook account that also gets the replies.
        pub webhook: Option<String>,
        /// When it runs, if it does so repeatedly: five fields of cron, and a sixth such as
        /// `2026-11-27/2w` for every other week from that day on.
        pub cron: Option<String>,
        /// What it waits for in place of a time: `list NAME`, `webhook ACCOUNT`, or `event MINUTES`
        /// and, for one calendar alone, its name.
        pub on: Option<String>,
        /// When it runs, in words for a person: `every weekday at 7:30`.
        pub when: String,
        /// The calls whose results must have changed.
        pub only_if_changed: Vec<WatchedCall>,
        /// When it runs next; null while it waits for a change, or for its person to finish what
        /// was told.
        pub next_at: Option<Timestamp>,
        /// The same on the household's clocks, for people: `Thursday, 26 November, 18:00`.
        pub next: Option<String>,
        /// When it ran last.
        pub last_at: Option<Timestamp>,
        /// What became of that run; null for the first, and for runs of older versions.
        pub last_run: Option<ScheduleRun>,
        /// Since when a reminder was told and not finished.
        pub told_at: Option<Timestamp>,
        /// Whether it is paused.
        pub paused: bool,
        /// Whether its maker asks to remind its owner. Resuming it allows them that from then on.
        pub asks: bool,
        /// When it was made.
        pub created_at: Timestamp,
    }

    /// A calendar that is kept elsewhere.
    pub struct Calendar {
        /// What `update_calendar` and `remove_calendar` take.
        pub calendar_id: CalendarId,
        /// Its name.
        pub name: String,
        /// Where it is; for others than its owner without what may be secret.
        pub url: String,
        /// With which its server is asked.
        pub username: Option<String>,
        /// Whether there is a password.
        pub password_set: bool,
        /// Whose it is.
        pub owner: String,
        /// Who sees it: `private`, `household`, or a list of names.
        pub audience: Audience,
        /// Whether nothing in it is changed from here.
        pub read_only: bool,
        /// Whether events can be added to it.
        pub writable: bool,
        /// How often it is read.
        pub refresh_minutes: u32,
        /// `waiting` until it was read for the first time, `ok`, or `failing`.
        pub state: &'static str,
        /// What is wrong with it, or was left out.
        pub problem: Option<String>,
        /// When it was last read.
        pub read_at: Option<Timestamp>,
        /// How many times of its events are known.
        pub events: u64,
    }

    /// One time of an event of a calendar.
    pub struct CalendarEvent {
        /// It stays the same when the calendar is read again.
        pub event_id: EventId,
        /// The calendar that has it.
        pub calendar_id: CalendarId,
        /// The calendar's name.
        pub calendar: String,
        /// Whose calendar it is.
        pub owner: String,
        /// What it is called.
        pub title: String,
        /// Where it is.
        pub location: String,
        /// The beginning of what is written about it.
        pub description: String,
        /// When it begins.
        pub starts_at: Timestamp,
        /// When it ends.
        pub ends_at: Timestamp,
        /// Of one that takes whole days the first, such as `2026-11-27`, else null.
        pub first_day: Option<String>,
        /// And the last.
        pub last_day: Option<String>,
        /// The same on the household's clocks, for people: `Fri 2026-11-27 18:00-19:30`.
        pub when: String,
        /// Whether it comes again.
        pub recurring: bool,
        /// Who invites, if somebody else than the calendar's owner does.
        pub organizer: Option<String>,
        /// Whether anybody may have written it.
        pub outside: bool,
    }

    /// What a day brings.
    pub struct Today {
        /// On the household's clocks, such as `2026-11-27`.
        pub date: String,
        /// The events that are under way or still to come.
        pub events: Vec<CalendarEvent>,
        /// The schedules that are still to run, and reminders that were told and are not done.
        pub schedules: Vec<Schedule>,
        /// The lists that have open items.
        pub lists: Vec<ListSummary>,
        /// The tool calls that wait for a decision.
        pub approvals: Vec<Approval>,
        /// The conversations with something that the person has not seen.
        pub unread: Vec<Conversation>,
        /// What the person has begun more than one conversation with: at most three.
        pub suggestions: Vec<String>,
    }

    /// A model server that answered a search.
    pub struct ModelServer {
        /// What the setting `provider` calls it.
        pub provider: &'static str,
        /// What people call it.
        pub title: &'static str,
        /// What `base_url` would be.
        pub base_url: String,
        /// Whether that is the provider's usual address.
        pub is_usual: bool,
        /// Its models.
        pub models: Vec<String>,
    }

    /// A call that a routine makes before a model is asked.
    pub struct WatchedCall {
        /// The tool.
        pub tool: String,
        /// Its arguments.
        pub arguments: Map<String, Value>,
    }

    /// A run of a schedule.
    pub struct ScheduleRun {
        /// When it began.
        pub at: Timestamp,
        /// `running`, `told`, `replied`, `silent` (the assistant had nothing to tell),
        /// `unchanged` (no model was asked), `failed` or `cancelled`.
        pub outcome: &'static str,
        /// Tokens of its requests.
        pub input_tokens: u64,
        /// Tokens of its replies.
        pub output_tokens: u64,
    }

    /// A callback of a webhook account, with its attempts.
    pub struct Delivery {
        /// The same as `delivery_id`.
        pub id: DeliveryId,
        /// What `retry_delivery` takes, and the header `webhook-id`.
        pub delivery_id: DeliveryId,
        /// The webhook account.
        pub account: String,
        /// The turn whose end it tells.
        pub turn_id: TurnId,
        /// Its conversation.
        pub conversation_id: ConversationId,
        /// `pending`, `held`, `delivered` or `dead`.
        pub state: &'static str,
        /// Attempts made so far.
        pub attempts: u32,
        /// When the turn ended.
        pub created_at: Timestamp,
        /// When it is tried next, if it is pending.
        pub next_at: Timestamp,
        /// Why the last attempt failed.
        pub last_error: Option<String>,
    }

    /// Somebody who may sign in.
    pub struct Person {
        /// The name to sign in with.
        pub name: String,
        /// What people call them: the name, unless they have a display name.
        pub display_name: String,
        /// `viewer`, `user` or `admin`.
        pub role: &'static str,
        /// When they were added.
        pub created_at: Timestamp,
        /// Whether they were invited and have no password yet.
        pub is_invited: bool,
        /// Whether it is a program, which has tokens and no password.
        pub is_program: bool,
        /// What `people.NAME` of the configuration says, if anything.
        pub limits: Option<Value>,
        /// The role until now, in the response to `set_role` alone.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub was: Option<&'static str>,
    }

    /// What somebody is called.
    pub struct Called {
        /// The name, as other records have it.
        pub name: String,
        /// What people call them.
        pub display_name: String,
        /// `viewer`, `user` or `admin`.
        pub role: &'static str,
    }

    /// A sender of a webhook account or of Telegram that is linked to a person.
    pub struct Sender {
        /// The webhook account, or `telegram`.
        pub account: String,
        /// As the account names it in `user_id`; with Telegram, its number for the chat.
        pub sender: String,
        /// Whose it is: the name to sign in with.
        pub person: String,
        /// Since when.
        pub created_at: Timestamp,
    }

    /// What belongs to a person: what is private goes with them, and what is shared stays
    /// without an owner.
    pub struct Belongings {
        /// The person.
        pub name: String,
        /// Conversations that only they see.
        pub private_conversations: u64,
        /// Conversations that others see, too.
        pub shared_conversations: u64,
        /// Memories that only they see.
        pub private_memories: u64,
        /// Memories that others see, too.
        pub shared_memories: u64,
        /// Files in their private conversations, and those that no message carries yet.
        pub files: u64,
        /// Their schedules.
        pub schedules: u64,
        /// Their API tokens.
        pub tokens: u64,
        /// Their calendars, which go with them.
        pub calendars: u64,
    }

    /// A person who is removed, and what belonged to them.
    pub struct Removal {
        /// Who is gone.
        pub name: String,
        /// Who got what was theirs.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub handed_over_to: Option<String>,
        /// What was theirs until then.
        pub had: Belongings,
    }

    /// An invitation or a link that sets a new password.
    pub struct Invitation {
        /// Whose it is.
        pub name: String,
        /// What people call them.
        pub display_name: String,
        /// `viewer`, `user` or `admin`.
        pub role: &'static str,
        /// Whether it sets a new password of somebody who has one.
        pub is_reset: bool,
        /// Who made it.
        pub created_by: String,
        /// When it was made.
        pub created_at: Timestamp,
        /// When it stops working.
        pub expires_at: Timestamp,
        /// The link itself, in the response that makes it alone.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub link: Option<String>,
        /// The same as rows of a QR code.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub qr: Option<Vec<String>>,
    }

    /// A session or API token.
    pub struct Token {
        /// The same as `token_id`.
        pub id: TokenId,
        /// What `revoke_token` takes.
        pub token_id: TokenId,
        /// What it is for; `session` for a session.
        pub name: String,
        /// Its owner.
        pub user: String,
        /// `viewer`, `user` or `admin`.
        pub role: &'static str,
        /// When it was made.
        pub created_at: Timestamp,
        /// When it stops being valid; null if it does not.
        pub expires_at: Option<Timestamp>,
        /// The only tools of its turns; null for all.
        pub tools: Option<Vec<String>>,
        /// `household` where it sees and makes only what is the household's.
        pub only: Option<&'static str>,
        /// The people beside its owner in whose name it may ask; null where there are none.
        pub speaks_for: Option<Vec<String>>,
        /// Whether Open WebUI has used it since the server started and named nobody: whoever asks
        /// there counts as its owner here.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        pub names_nobody: bool,
        /// Whether the caller signed in with it, in the caller's own list.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub is_current: Option<bool>,
        /// The token itself, in the response that makes it alone.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub token: Option<String>,
        /// Tools of it that are not known, in the same response.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub warnings: Vec<String>,
    }

    /// A webhook account of the configuration, as `get_config` shows it too.
    pub struct WebhookAccount {
        /// Its name.
        pub name: String,
        /// Where it posts to.
        pub incoming_path: String,
        /// The host that gets its replies, without what may be secret in the address.
        pub outgoing_url: String,
        /// How messages may be sent: `json`, `form`, `text`, `get`.
        pub accept: Vec<String>,
        /// Whether it has a secret.
        pub secret_set: bool,
        /// Whether its previous secret still works.
        pub secret_previous_set: bool,
        /// The model that answers it, if not the one of the settings.
        pub model: Option<String>,
        /// Its own `permission_mode`.
        pub permission_mode: Option<Value>,
        /// The only tools of its turns; null for all.
        pub tools: Option<Vec<String>>,
        /// Its own rights of tools.
        pub tool_permissions: Value,
        /// Who sees its conversations.
        pub audience: Audience,
        /// Whether what it sends counts as the household's own words.
        pub trusted: bool,
        /// Whether its bodies are mapped.
        pub mapped: bool,
        /// Which bodies it takes, by the values of their members.
        pub when: Value,
        /// How long its turns may take; null for as long as others.
        pub timeout_seconds: Option<u64>,
        /// Attempts at a callback before it is given up.
        pub max_attempts: u32,
        /// Whether it is served.
        pub enabled: bool,
    }

    /// What an MCP server says of a tool. It widens nothing that the tool may do.
    pub struct Annotations {
        /// Its title.
        pub title: Option<String>,
        /// Whether it changes nothing.
        pub read_only: Option<bool>,
        /// Whether it may destroy something.
        pub destructive: Option<bool>,
    }

    /// A tool that the caller's turns may have.
    pub struct Tool {
        /// Its name.
        pub name: String,
        /// What people call it.
        pub label: String,
        /// What it does, for people.
        pub about: String,
        /// What it does, for a model.
        pub description: String,
        /// The types of its parameters, by their names.
        pub parameters: Map<String, Value>,
        /// `builtin`, `custom` or `mcp:NAME`.
        pub source: String,
        /// `ask`, `allow` or `deny`.
        pub permission: &'static str,
        /// What its MCP server says of it.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub annotations: Option<Annotations>,
        /// What it does to things, for people, and whether that server or the configuration
        /// says so.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub effect: Option<String>,
        /// Whether it is shown to a model only once that has found it with `find_tools`: all
        /// tools take too much of its window.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        pub is_left_out: bool,
    }

    /// A tool of the catalogue, which can be added.
    pub struct CatalogueEntry {
        /// What `add_tool` takes.
        pub name: String,
        /// What it is, in a sentence.
        pub about: String,
        /// What is to be done before it is added, if anything.
        pub steps: Option<String>,
        /// What is asked.
        pub fields: Vec<CatalogueField>,
    }

    /// What came of a change of the configuration file, which is saved.
    pub struct ConfigChange {
        /// An API key that was removed because it belongs to another address.
        pub removed_key: Option<String>,
        /// What its owner may not intend, as far as the change brought it about.
        pub warnings: Vec<String>,
        /// What is wrong with the file still; until it is mended, no change applies.
        pub problems: Vec<String>,
        /// Whether the change applies from the next start only.
        pub needs_restart: bool,
    }

    /// A setting.
    pub struct Setting {
        /// Its path; `NAME` and the text in brackets stand for any.
        pub key: String,
        /// What its value must be.
        pub expects: String,
        /// The default as JSON or in words.
        pub default: String,
        /// What it does.
        pub documentation: String,
        /// Whether `update_config` may change it.
        pub writable: bool,
    }

    /// A tool of the household's own, or an MCP server.
    pub struct OwnTool {
        /// Its name.
        pub name: String,
        /// `program`, `request`, `MCP server` or `MCP server, disabled`.
        pub kind: &'static str,
        /// `ask`, `allow` or `deny`; of an MCP server also for how many tools it is another.
        pub right: String,
    }

    /// What a test of a webhook account posts, and where.
    pub struct WebhookTest {
        /// Its path.
        pub incoming_path: String,
        /// The place of its address among those on which the server listens: the tcp
        /// channels' in the order of the file, then the webhook channels' own.
        pub listener: u64,
        /// The port of that address in the configuration; null where there is none.
        pub port: Option<u64>,
        /// Whether it is served.
        pub enabled: bool,
        /// How the body may be sent: `json`, `form`, `text`, `get`.
        pub accept: Value,
        /// Its secret, for the owner of the machine.
        pub secret: Option<String>,
        /// The body, as its `map` and `when` take it.
        pub body: Value,
        /// Whether its bodies are mapped.
        pub mapped: bool,
        /// Who gets its replies.
        pub outgoing_url: String,
        /// For how many seconds they may take.
        pub callback_seconds: u64,
        /// The turn of a test that was sent.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub turn_id: Option<TurnId>,
    }

    /// Something that a tool of the catalogue must be told.
    pub struct CatalogueField {
        /// Names it in the `answers` of `add_tool`.
        pub name: String,
        /// The question.
        pub question: String,
        /// What holds without an answer.
        pub default: Option<String>,
        /// Whether the answer is a secret.
        pub is_secret: bool,
        /// Whether it may be left out.
        pub is_optional: bool,
    }

    /// What an answer to a question of the catalogue may mean.
    pub struct Choice {
        /// For a person.
        pub label: String,
        /// The answers that stand for it.
        pub answers: Map<String, Value>,
    }

    /// A skill that is installed.
    pub struct Skill {
        /// Its name.
        pub name: String,
        /// When it is used, in its own words.
        pub description: String,
        /// Its size, with its files.
        pub bytes: u64,
        /// Its files by their path, without `SKILL.md`.
        pub files: Vec<String>,
    }

    /// The state of the server.
    pub struct ServerInfo {
        /// `hearth`.
        pub name: &'static str,
        /// Its version.
        pub version: &'static str,
        /// How long it has run.
        pub uptime_seconds: u64,
        /// This machine's name at relays, once it has a key.
        pub machine_id: Option<String>,
        /// The links to relays.
        pub relays: Vec<RelayLink>,
        /// Open connections; for others than admins, their own.
        pub connections: u64,
        /// Conversations; for others than admins, those that they see.
        pub conversations: u64,
        /// The size of the database; null for others than admins.
        pub database_bytes: Option<u64>,
        /// The size of all attachments; null for others than admins.
        pub attachment_bytes: Option<u64>,
        /// The nightly backups.
        pub backup: BackupStatus,
        /// Turns by their state.
        pub turns: BTreeMap<String, u64>,
        /// Deliveries by their state.
        pub deliveries: BTreeMap<String, u64>,
        /// The MCP servers.
        pub mcp_servers: Vec<McpServer>,
        /// What a browser needs to be told of news: base64url.
        pub push_key: Option<String>,
        /// The SHA-256 of the household's authority (`hearth tls household`); null without one.
        pub authority: Option<String>,
        /// What was used in all.
        pub tokens: Tokens,
        /// What may be used each month.
        pub budget: Budget,
        /// The models that may answer, when there are several.
        pub models: Vec<ModelStatus>,
    }

    /// The state of a link to a relay.
    pub struct RelayLink {
        /// The channel's name.
        pub name: String,
        /// The relay's address, without what may be secret in it.
        pub url: String,
        /// What it does now.
        pub state: &'static str,
        /// Clients that are connected through it.
        pub clients: u64,
        /// Why it ended or could not be opened the last time.
        pub last_error: Option<String>,
        /// When it is opened again.
        pub next_try: Option<Timestamp>,
    }

    /// The state of an MCP server.
    pub struct McpServer {
        /// Its name in the configuration.
        pub name: String,
        /// What it does now.
        pub state: &'static str,
        /// How many tools it has.
        pub tools: u64,
        /// Those that its `read_only` declares to change nothing, by their names there; absent
        /// where there is none.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub readers: Vec<String>,
        /// Those of `readers` that open any address, as the server says or an argument shows;
        /// absent where there is none.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub open_readers: Vec<String>,
        /// Those that have changed since it was set up; absent where there is none.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub changed: Vec<String>,
        /// Why it is down, when it is.
        pub problem: Option<String>,
    }

    /// The state of a model, when there are several.
    pub struct ModelStatus {
        /// As the configuration names its provider.
        pub provider: String,
        /// Its name there.
        pub model: String,
        /// `ready`, or `resting` after it did not answer.
        pub state: &'static str,
        /// When a resting one is asked again.
        pub retry_in_seconds: Option<u64>,
    }

    /// The tokens of a month.
    pub struct Budget {
        /// How many may be used; null for as many as there are.
        pub monthly_tokens: Option<u64>,
        /// How many were.
        pub used_this_month: u64,
    }

    /// The state of the nightly backups.
    pub struct BackupStatus {
        /// How many are kept; 0 for none.
        pub keep: u64,
        /// The night of the newest one.
        pub newest: Option<String>,
        /// Why the last one failed.
        pub problem: Option<String>,
    }

    /// A backup that was made at night.
    pub struct NightlyBackup {
        /// The file's name.
        pub name: String,
        /// The night, such as `2026-11-21`.
        pub night: String,
        /// Its size.
        pub bytes: u64,
    }

    /// What came of a notification that was sent to see whether it arrives.
    pub struct NotificationResult {
        /// `ntfy` or `gotify`.
        pub service: &'static str,
        /// Whether the service took it.
        pub is_sent: bool,
        /// What it answered, for a person.
        pub message: String,
    }

    /// What a model was asked for in a day or a month.
    pub struct UsageRow {
        /// The day, where days were asked for.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub day: Option<String>,
        /// The month, where months were asked for.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub month: Option<String>,
        /// Who asked, where that was asked for; absent where nobody of the household did.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub person: Option<String>,
        /// What for, where that was asked for: `reply`, `routine`, `title`, `summary`, `program`
        /// or `embedding`.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub purpose: Option<String>,
        /// What it cost, such as `0.0125`, where the setting `prices` names the model.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub cost: Option<String>,
        /// Its name; empty where no model answered.
        pub model: String,
        /// Turns that ended with it.
        pub turns: u64,
        /// The tokens.
        #[serde(flatten)]
        pub tokens: Tokens,
    }

    /// What models were asked for.
    pub struct Usage {
        /// By day or month, and by model.
        pub usage: Vec<UsageRow>,
        /// What was used, and may be.
        #[serde(flatten)]
        pub budget: Budget,
    }
    /// What is posted to a webhook account without a `map`. The server reads it.
    pub struct WebhookMessage {
        /// 1 byte to 256 KiB of text, not only white space.
        pub message: String,
        /// Who says it: 1 to 128 printable characters.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub user_id: Option<String>,
        /// The caller's own name for the conversation: 1 to 128 printable characters.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub conversation_id: Option<String>,
        /// At most 16 files.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub attachments: Vec<IncludedFile>,
    }

    /// A file in a webhook's body.
    pub struct IncludedFile {
        /// What to call it.
        pub name: String,
        /// What it is, as a hint: the content decides.
        #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
        pub media_type: Option<String>,
        /// The file in base64.
        pub data: String,
    }

    /// What is posted to a webhook account's `outgoing_url`.
    pub struct Callback {
        /// `cancelled` when somebody stopped the turn, else absent.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub status: Option<&'static str>,
        /// The reply's text; of a cancelled turn, what was said so far.
        pub message: String,
        /// The caller's own name for the conversation, or its id.
        pub conversation_id: String,
        /// Why the reply is not whole; absent for one that is.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub finish_reason: Option<FinishReason>,
        /// The message that it answers, if others came while its turn waited.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub in_reply_to: Option<MessageId>,
        /// The turn of that message.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub turn_id: Option<TurnId>,
    }

    /// The same for a turn that failed.
    pub struct FailedCallback {
        /// `error`.
        pub status: &'static str,
        /// For a person.
        pub error: String,
        /// As in an error's envelope.
        pub code: Code,
        /// Seconds after which it may work.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub retry_after: Option<u32>,
        /// The caller's own name for the conversation, or its id.
        pub conversation_id: String,
        /// The message that failed, if others came while its turn waited.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub in_reply_to: Option<MessageId>,
        /// The turn of that message.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub turn_id: Option<TurnId>,
    }
}
