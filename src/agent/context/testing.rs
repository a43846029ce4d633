//! Messages, turns and steps for tests.

use base::clock::Timestamp;
use base::ids::{ConversationId, MessageId, TurnId};
use store::{Message, PastTurn, Role, Step, ToolCall};

pub fn said(role: Role, speaker: Option<&str>, content: &str) -> Message {
    Message {
        id: MessageId::from(1),
        conversation_id: ConversationId::from(1),
        turn_id: None,
        role,
        content: content.to_owned(),
        speaker: speaker.map(str::to_owned),
        in_reply_to: None,
        created_at: Timestamp::from_millis(0),
        attachments: Vec::new(),
    }
}

pub const HOME: &str = "websocket";

pub fn asked(content: &str) -> Message {
    said(Role::User, None, content)
}

pub fn past(question: &str, steps: Vec<Step>, answer: Option<&str>) -> PastTurn {
    PastTurn {
        id: TurnId::from(1),
        channel: HOME.to_owned(),
        message: asked(question),
        steps,
        reply: answer.map(|answer| said(Role::Assistant, None, answer)),
    }
}

pub fn call(id: &str, tool: &str) -> ToolCall {
    ToolCall {
        id: id.to_owned(),
        provider_id: None,
        tool: tool.to_owned(),
        arguments: "{}".to_owned(),
        extra: None,
    }
}

pub fn calls(text: &str, calls: &[(&str, &str)]) -> Step {
    Step::Reply {
        text: text.to_owned(),
        calls: calls.iter().map(|(id, tool)| call(id, tool)).collect(),
        extra: None,
    }
}

pub fn started(id: &str) -> Step {
    Step::Started {
        call_id: id.to_owned(),
    }
}

pub fn result(id: &str, ok: bool, content: &str) -> Step {
    Step::Result {
        call_id: id.to_owned(),
        ok,
        content: content.to_owned(),
        outside: false,
        private: false,
    }
}
