//! The database's records as clients see them.

use serde_json::Value;

use agent::message_text::provenance;
use agent::model::ModelHealth;
use agent::skills::Skill;
use base::error::{Code, Error};
use net::relay_links::LinkStatus;
use protocol::event;
use serde_json::json;
use store::{
    Approval, Conversation, ConversationPage, Delivery, List, ListItem, ListSummary, Memory,
    Message, MessagePage, Role, Schedule, Usage, excerpt,
};

/// A message, as in the contract, with extensions.
pub fn message(message: Message) -> event::Message {
    event::Message {
        id: message.id,
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
    Error::new(Code::ServerError, "the turn was cancelled")
}

/// Tokens that were used.
pub fn tokens(usage: Usage) -> Value {
    json!({ "input": usage.input, "output": usage.output, "cached": usage.cached })
}

/// The state of the links to relays.
pub fn relays(standings: Vec<LinkStatus>) -> Value {
    standings
        .into_iter()
        .map(|standing| {
            json!({
                "name": standing.name,
                "url": standing.url,
                "state": standing.state.as_str(),
                "clients": standing.clients,
                "last_error": standing.last_error,
                "next_try": standing.next_try,
            })
        })
        .collect()
}

/// The state of the models that may answer, when there are several.
pub fn standings(standings: Vec<ModelHealth>) -> Value {
    standings
        .into_iter()
        .map(|standing| {
            json!({
                "provider": standing.provider,
                "model": standing.model,
                "state": match standing.cooldown_left {
                    Some(_) => "resting",
                    None => "ready",
                },
                "retry_in_seconds": standing.cooldown_left.map(|left| left.as_secs() + 1),
            })
        })
        .collect()
}

/// The data of `list_conversations`.
pub fn conversations(page: ConversationPage) -> Value {
    let conversations: Vec<Value> = page.conversations.into_iter().map(conversation).collect();
    json!({
        "conversations": conversations,
        "next_cursor": page.next.map(|cursor| cursor.0),
    })
}

/// One conversation.
pub fn conversation(conversation: Conversation) -> Value {
    let marks = conversation.marks;
    let mut view = json!({
        "id": conversation.id,
        "title": conversation.title,
        "created_at": conversation.created_at,
        "updated_at": conversation.updated_at,
        "message_count": conversation.message_count,
        "channel": conversation.channel,
        "owner": conversation.owner,
        "audience": conversation.audience,
    });
    let marked = [
        ("pinned", marks.is_pinned),
        ("archived", marks.is_archived),
        ("unread", marks.is_unread),
    ];
    for (name, _) in marked.iter().filter(|(_, is_so)| *is_so) {
        view[*name] = json!(true);
    }
    let chosen = [
        ("model", conversation.model),
        ("instructions", conversation.instructions),
    ];
    for (name, value) in chosen {
        if let Some(value) = value {
            view[name] = json!(value);
        }
    }
    view
}

/// The data of `get_messages`.
pub fn messages(page: MessagePage) -> Value {
    let messages: Vec<event::Message> = page.messages.into_iter().map(message).collect();
    json!({ "messages": messages, "has_more": page.has_more })
}

/// Characters shown around a word that was searched for.
const SNIPPET_CHARACTERS: usize = 160;

/// The data of `search_messages`.
pub fn found_messages(found: Vec<Message>, query: &str) -> Value {
    let messages: Vec<Value> = found
        .into_iter()
        .map(|found| {
            let conversation_id = found.conversation_id;
            let snippet = excerpt(&found.content, query, SNIPPET_CHARACTERS);
            let mut shown = json!(message(found));
            shown["conversation_id"] = json!(conversation_id);
            shown["snippet"] = json!(snippet);
            shown
        })
        .collect();
    json!({ "messages": messages })
}

/// The data of `list_approvals`.
pub fn approvals(
    approvals: &[Approval],
    may_answer: impl Fn(&Approval) -> bool,
    own_reason: impl Fn(&Approval) -> Option<String>,
) -> Value {
    let shown = |one: &Approval| {
        let mut shown = approval(one);
        if let Some(own) = own_reason(one) {
            shown["reason"] = json!(own);
        }
        shown["may_answer"] = json!(may_answer(one));
        shown
    };
    let approvals: Vec<Value> = approvals.iter().map(shown).collect();
    json!({ "approvals": approvals })
}

/// Whom an answer for the conversation, or for always, covers; nobody where it is not
/// known who asked.
pub fn covers(approval: &Approval) -> Option<String> {
    match (&approval.account, approval.user_id) {
        // An answer holds once.
        _ if approval.question.is_some() => None,
        (Some(account), _) => Some(format!("the webhook account {account}")),
        (None, Some(_)) => approval.requested_by.clone(),
        (None, None) => None,
    }
}

/// What the running tool of an approval asks, if that is what it is.
pub fn question(approval: &Approval) -> Option<Value> {
    let question = approval.question.as_ref()?;
    serde_json::from_str(question).ok()
}

/// One approval.
pub fn approval(approval: &Approval) -> Value {
    let mut view = json!({
        "approval_id": approval.id,
        "turn_id": approval.turn_id,
        "conversation_id": approval.conversation_id,
        "tool": approval.tool,
        "arguments": arguments(&approval.arguments),
        "reason": approval.reason,
        "requested_by": approval.requested_by,
        "channel": approval.channel,
        "covers": covers(approval),
        "outside": approval.is_outside,
        "created_at": approval.created_at,
        "expires_at": approval.expires_at,
        "decision": approval.decision.as_ref().map(|decision| decision.verdict.as_str()),
        "by": approval.decision.as_ref().map(|decision| &decision.by),
    });
    if let Some(question) = question(approval) {
        view["question"] = question;
    }
    view
}

/// Arguments as JSON, or as the text that the model wrote when it is not JSON.
pub fn arguments(text: &str) -> Value {
    match text {
        "" => json!({}),
        text => serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
    }
}

/// The data of `list_memories`.
pub fn memories(memories: Vec<Memory>) -> Value {
    let memories: Vec<Value> = memories.iter().map(memory).collect();
    json!({ "memories": memories })
}

/// One memory.
pub fn memory(memory: &Memory) -> Value {
    let mut shown = json!({
        "id": memory.id,
        "content": memory.content,
        "speaker": provenance(memory),
        "created_at": memory.created_at,
        "owner": memory.owner,
        "audience": memory.audience,
        "source": { "channel": memory.channel, "account": memory.account },
    });
    if !memory.search_words.is_empty() {
        shown["search_words"] = json!(memory.search_words);
    }
    shown
}

/// The data of `list_lists`.
pub fn lists(lists: Vec<ListSummary>) -> Value {
    let lists: Vec<Value> = lists.iter().map(list_summary).collect();
    json!({ "lists": lists })
}

/// One list, without what is on it.
pub fn list_summary(list: &ListSummary) -> Value {
    json!({ "list": list.name, "items": list.items, "unchecked": list.unchecked })
}

/// A list with what is on it.
pub fn list(list: List) -> Value {
    let items: Vec<Value> = list.items.iter().map(item).collect();
    json!({ "list": list.name, "items": items })
}

/// One item of a list.
pub fn item(item: &ListItem) -> Value {
    json!({ "item_id": item.id, "text": item.text, "checked": item.is_checked })
}

/// A skill in `list_skills`, and on the command line.
pub fn skill(skill: &Skill) -> Value {
    json!({
        "name": skill.name,
        "description": skill.description,
        "bytes": skill.bytes,
        "files": skill.files,
    })
}

/// The data of `list_schedules`.
pub fn schedules(schedules: Vec<Schedule>) -> Value {
    let schedules: Vec<Value> = schedules.iter().map(schedule).collect();
    json!({ "schedules": schedules })
}

/// One schedule.
pub fn schedule(schedule: &Schedule) -> Value {
    json!({
        "schedule_id": schedule.id,
        "prompt": schedule.prompt,
        "owner": schedule.owner,
        "conversation_id": schedule.conversation_id,
        "webhook": schedule.account,
        "cron": schedule.timing.cron.as_ref().map(ToString::to_string),
        "next_at": schedule.timing.next_at,
        "last_at": schedule.last_at,
        "paused": schedule.is_paused,
        "created_at": schedule.created_at,
    })
}

/// The data of `list_deliveries`.
pub fn deliveries(deliveries: Vec<Delivery>) -> Value {
    let deliveries: Vec<Value> = deliveries.iter().map(delivery).collect();
    json!({ "deliveries": deliveries })
}

/// One delivery.
pub fn delivery(delivery: &Delivery) -> Value {
    json!({
        "delivery_id": delivery.id,
        "account": delivery.account,
        "turn_id": delivery.turn_id,
        "conversation_id": delivery.conversation_id,
        "state": delivery.state.as_str(),
        "attempts": delivery.attempts,
        "created_at": delivery.created_at,
        "next_at": delivery.next_at,
        "last_error": delivery.last_error,
    })
}
