//! The store's records as clients see them.

use serde::Serialize;
use serde_json::{Number, Value, json};

use agent::mcp::ServerStatus;
use agent::model::ModelHealth;
use agent::model::fence::provenance;
use agent::skills::Skill;
use agent::tools::calendar::when;
use agent::tools::when_triggered;
use base::calendar::Zone;
use base::clock::Timestamp;
use base::error::{Code, Error};
use base::language::Words;
use base::url::host_only;
use config::Person;
use protocol::record;
use store::{
    Approval, Calendar, CalendarEvent, Conversation, Delivery, Found, Hit, Identity, Invitation,
    List, ListItem, ListSummary, Memory, Message, Role, Schedule, Token, Turn, Usage, User,
    UserRole, WatchedCall, excerpt,
};

/// The word for a token that sees only what is the household's.
pub const HOUSEHOLD: &str = "household";

/// Records as the data of a response: an array under this name.
pub fn records<T: Serialize>(name: &str, records: impl IntoIterator<Item = T>) -> Value {
    json!({ name: records.into_iter().collect::<Vec<T>>() })
}

/// A message, as in the contract, with extensions.
pub fn message(message: Message) -> record::Message {
    record::Message {
        id: message.id,
        message_id: message.id,
        role: match message.role {
            Role::User => "user",
            Role::Assistant => "assistant",
        },
        content: message.content,
        timestamp: message.created_at,
        turn_id: message.turn_id,
        speaker: message.speaker,
        in_reply_to: message.in_reply_to,
        versions: message.versions,
        finish_reason: message.finish_reason,
        attachments: message.attachments,
    }
}

/// The error of a turn that a person stopped, for clients and events that know no
/// other end without a reply.
pub fn cancelled() -> Error {
    Error::worded(Code::ServerError, "error.turn_cancelled", &[])
}

/// Tokens that were used.
pub fn tokens(usage: Usage) -> record::Tokens {
    record::Tokens {
        input: usage.input,
        output: usage.output,
        cached: usage.cached,
    }
}

/// The state of an MCP server.
pub fn mcp_server(server: ServerStatus, words: impl Into<Option<Words>>) -> record::McpServer {
    let words = words.into().unwrap_or(Words::ENGLISH);
    record::McpServer {
        name: server.name,
        state: server.state.as_str(),
        tools: server.tools as u64,
        readers: server.readers,
        open_readers: server.open_readers,
        changed: server.changed,
        problem: server.problem.map(|problem| problem.in_words(words)),
    }
}

/// The state of a model that may answer.
pub fn model_status(health: ModelHealth) -> record::ModelStatus {
    record::ModelStatus {
        provider: health.provider,
        model: health.model,
        state: match health.cooldown_left {
            Some(_) => "resting",
            None => "ready",
        },
        retry_in_seconds: health.cooldown_left.map(|left| left.as_secs() + 1),
    }
}

/// A conversation.
pub fn conversation(conversation: Conversation) -> record::Conversation {
    record::Conversation {
        id: conversation.id,
        conversation_id: conversation.id,
        title: conversation.title,
        created_at: conversation.created_at,
        updated_at: conversation.updated_at,
        message_count: conversation.message_count,
        channel: conversation.channel,
        owner: conversation.owner,
        audience: conversation.audience,
        pinned: conversation.marks.is_pinned,
        archived: conversation.marks.is_archived,
        unread: conversation.marks.is_unread,
        model: conversation.model,
        instructions: conversation.instructions,
    }
}

/// Characters shown around a word that was searched for.
const SNIPPET_CHARACTERS: usize = 160;

/// What a search found.
pub fn search_hits(found: Found) -> Value {
    let hit = |hit: Hit| {
        let text = hit
            .message
            .as_ref()
            .map_or(&hit.title, |message| &message.content);
        let excerpt = excerpt(text, &found.words, SNIPPET_CHARACTERS);
        let passage = [&hit.before, &hit.message, &hit.after];
        record::SearchHit {
            passage: passage
                .into_iter()
                .flatten()
                .map(|message| message.id)
                .collect(),
            message: hit.message.map(message),
            conversation_id: hit.conversation_id,
            title: hit.title,
            snippet: excerpt.clone(),
            excerpt,
            score: Number::from_f64(hit.score).unwrap_or_else(|| 0.into()),
        }
    };
    let messages: Vec<record::SearchHit> = found.hits.into_iter().map(hit).collect();
    json!({ "messages": messages, "indexing": found.is_indexing })
}

/// A turn, and its reply if it has one, for somebody with these words.
pub fn turn(turn: Turn, reply: Option<Message>, words: Option<Words>) -> record::Turn {
    let error = turn.error.map(|error| error.in_words(words));
    record::Turn {
        turn_id: turn.id,
        conversation_id: turn.conversation_id,
        state: turn.state.as_str(),
        channel: turn.channel,
        created_at: turn.created_at,
        tokens: turn.model.is_some().then(|| tokens(turn.usage)),
        model: turn.model,
        message_id: reply.as_ref().map(|reply| reply.id),
        in_reply_to: reply.as_ref().and_then(|reply| reply.in_reply_to),
        finish_reason: reply.as_ref().and_then(|reply| reply.finish_reason),
        response: turn.said.or(reply.map(|reply| reply.content)),
        text: None,
        seq: None,
        code: error.as_ref().map(Error::code),
        key: error.as_ref().and_then(Error::key).map(str::to_owned),
        error: error.map(|error| error.message().to_owned()),
    }
}

/// Whose calls an answer covers that holds for the conversation or for always: nobody's when it
/// is unknown who asked.
pub fn covers(approval: &Approval, words: Words) -> Option<String> {
    match (&approval.account, approval.user_id) {
        (Some(account), _) => Some(words.say("approval.webhook", &[("account", account)])),
        (None, Some(_)) => approval.called.clone(),
        (None, None) => None,
    }
}

/// An approval, with what people read of it.
pub fn approval(
    approval: &Approval,
    reason: String,
    covers: Option<String>,
    words: record::ApprovalWords,
) -> record::Approval {
    let decision = approval.decision.as_ref();
    record::Approval {
        approval_id: approval.id,
        turn_id: approval.turn_id,
        conversation_id: approval.conversation_id,
        tool: approval.tool.clone(),
        arguments: arguments(&approval.arguments),
        reason,
        words,
        requested_by: approval.requested_by.clone(),
        channel: approval.channel.clone(),
        covers,
        outside: approval.is_outside,
        created_at: approval.created_at,
        expires_at: approval.expires_at,
        decision: decision.map(|decision| decision.verdict.as_str()),
        by: decision.map(|decision| decision.by.clone()),
        may_answer: None,
    }
}

/// Arguments as JSON, or as the text that the model wrote when it is not JSON.
pub fn arguments(text: &str) -> Value {
    match text {
        "" => json!({}),
        text => serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
    }
}

/// A memory.
pub fn memory(memory: &Memory) -> record::Memory {
    record::Memory {
        id: memory.id,
        memory_id: memory.id,
        content: memory.content.clone(),
        speaker: provenance(memory),
        created_at: memory.created_at,
        owner: memory.owner.clone(),
        audience: memory.audience.clone(),
        source: record::MemorySource {
            channel: memory.channel.clone(),
            account: memory.account.clone(),
        },
        search_words: memory.search_words.clone(),
    }
}

/// A list, without what is on it.
pub fn list_summary(list: &ListSummary) -> record::ListSummary {
    record::ListSummary {
        list: list.name.clone(),
        items: list.items,
        unchecked: list.unchecked,
    }
}

/// A list with what is on it.
pub fn list(list: &List) -> record::List {
    record::List {
        list: list.name.clone(),
        items: list.items.iter().map(item).collect(),
    }
}

/// An item of a list.
pub fn item(item: &ListItem) -> record::ListItem {
    record::ListItem {
        item_id: item.id,
        text: item.text.clone(),
        checked: item.is_checked,
    }
}

/// A schedule.
pub fn schedule(
    schedule: &Schedule,
    zone: &Zone,
    now: Timestamp,
    words: Words,
) -> record::Schedule {
    let timing = schedule.timing.as_ref();
    record::Schedule {
        schedule_id: schedule.id,
        prompt: (!schedule.is_said).then(|| schedule.text.clone()),
        say: schedule.is_said.then(|| schedule.text.clone()),
        owner: schedule.owner.clone(),
        conversation_id: schedule.conversation_id,
        webhook: schedule.account.clone(),
        cron: timing.and_then(|timing| Some(timing.cron.as_ref()?.to_string())),
        on: schedule.trigger.as_ref().map(ToString::to_string),
        when: match (timing, &schedule.trigger) {
            (_, Some(trigger)) => when_triggered(words, trigger),
            (Some(timing), None) => match &timing.cron {
                Some(cron) => cron.say(words),
                None => zone.spoken_now(timing.next_at, now, words),
            },
            (None, None) if schedule.is_said => words.word("when.told"),
            (None, None) => words.word("when.over"),
        },
        only_if_changed: schedule.only_if_changed.iter().map(watched_call).collect(),
        next_at: timing.map(|timing| timing.next_at),
        next: timing.map(|timing| zone.spoken_now(timing.next_at, now, words)),
        last_at: schedule.last_at,
        last_run: schedule.last_run.clone(),
        told_at: schedule.told_at,
        paused: schedule.is_paused,
        asks: schedule.asked_by.is_some(),
        created_at: schedule.created_at,
    }
}

/// A calendar, for somebody. Whoever knows the address of one may be able to read all of it, so
/// that others than its owner get the host alone.
pub fn calendar(calendar: &Calendar, of: &Identity, words: Option<Words>) -> record::Calendar {
    let words = words.unwrap_or(Words::ENGLISH);
    let is_own = of.role == UserRole::Owner || of.user_id == calendar.owner_id;
    record::Calendar {
        calendar_id: calendar.id,
        name: calendar.name.clone(),
        url: match is_own {
            true => calendar.url.clone(),
            false => host_only(&calendar.url),
        },
        username: calendar.username.clone().filter(|_| is_own),
        password_set: calendar.has_password,
        owner: calendar.owner.clone(),
        audience: calendar.audience.clone(),
        read_only: calendar.is_read_only,
        writable: calendar.can_write && !calendar.is_read_only,
        refresh_minutes: calendar.refresh_minutes,
        state: match (calendar.is_failing, calendar.read_at) {
            (true, _) => "failing",
            (false, Some(_)) => "ok",
            (false, None) => "waiting",
        },
        problem: calendar
            .problem
            .as_ref()
            .map(|problem| problem.in_words(words)),
        read_at: calendar.read_at,
        events: calendar.events,
    }
}

/// A time of an event.
pub fn event(event: CalendarEvent, zone: &Zone) -> record::CalendarEvent {
    record::CalendarEvent {
        when: when(&event, zone),
        event_id: event.id,
        calendar_id: event.calendar_id,
        calendar: event.calendar,
        owner: event.owner,
        recurring: !event.time.occurrence.is_empty(),
        title: event.time.title,
        location: event.time.location,
        description: event.time.description,
        starts_at: event.time.starts_at,
        ends_at: event.time.ends_at,
        first_day: event.time.first_day,
        last_day: event.time.last_day,
        organizer: event.time.organizer,
        outside: event.time.is_outside,
    }
}

fn watched_call(call: &WatchedCall) -> record::WatchedCall {
    record::WatchedCall {
        tool: call.tool.clone(),
        arguments: call.arguments.clone(),
    }
}

/// A delivery.
pub fn delivery(delivery: &Delivery, words: impl Into<Option<Words>>) -> record::Delivery {
    let words = words.into().unwrap_or(Words::ENGLISH);
    let last_error = delivery.last_error.as_ref();
    record::Delivery {
        id: delivery.id,
        delivery_id: delivery.id,
        account: delivery.account.clone(),
        turn_id: delivery.turn_id,
        conversation_id: delivery.conversation_id,
        state: delivery.state.as_str(),
        attempts: delivery.attempts,
        created_at: delivery.created_at,
        next_at: delivery.next_at,
        last_error: last_error.map(|error| error.in_words(words)),
    }
}

/// An invitation as lists show it, without its link.
pub fn invitation(invitation: &Invitation) -> record::Invitation {
    record::Invitation {
        name: invitation.name.clone(),
        display_name: invitation.called.clone(),
        role: invitation.role.as_str(),
        is_reset: invitation.is_reset,
        created_by: invitation.created_by.clone(),
        created_at: invitation.created_at,
        expires_at: invitation.expires_at,
        link: None,
        qr: None,
    }
}

/// A person with their limits, without the password.
pub fn person(user: &User, limits: Option<&Person>) -> record::Person {
    record::Person {
        name: user.name.clone(),
        display_name: user.called().to_owned(),
        role: user.role.as_str(),
        created_at: user.created_at,
        is_invited: user.is_invited(),
        is_program: user.is_program(),
        limits: limits.map(|limits| json!(limits)),
        was: None,
    }
}

/// A skill.
pub fn skill(skill: &Skill) -> record::Skill {
    record::Skill {
        name: skill.name.clone(),
        description: skill.description.clone(),
        bytes: skill.bytes,
        files: skill.files.clone(),
    }
}

/// A token, without its secret.
pub fn token(token: &Token) -> record::Token {
    record::Token {
        id: token.id,
        token_id: token.id,
        name: token.name.clone(),
        user: token.user.clone(),
        role: token.role.as_str(),
        created_at: token.created_at,
        expires_at: token.expires_at,
        tools: token.scope.tools.as_deref().map(<[_]>::to_vec),
        only: token.scope.household_only.then_some(HOUSEHOLD),
        speaks_for: token.speaks_for.clone(),
        names_nobody: false,
        is_current: None,
        token: None,
        warnings: Vec::new(),
    }
}
