//! Messages, turns and steps for tests.

use std::sync::LazyLock;

use super::{Context, MessageForm, PromptInput};
use crate::model::{ChatMessage, Content, Takes};
use base::calendar::Zone;
use base::clock::Timestamp;
use base::ids::{ConversationId, MemoryId, MessageId, TurnId};
use config::Config;
use store::{
    Audience, Memory, Message, PastTurn, Readers, Role, ShownAs, Step, ToolCall, TurnState,
};

pub fn said(role: Role, speaker: Option<&str>, content: &str) -> Message {
    Message {
        id: MessageId::from(1),
        conversation_id: ConversationId::from(1),
        turn_id: None,
        role,
        content: content.to_owned(),
        speaker: speaker.map(str::to_owned),
        in_reply_to: None,
        versions: Vec::new(),
        finish_reason: None,
        created_at: Timestamp::from_millis(0),
        attachments: Vec::new(),
    }
}

pub const HOME: &str = "websocket";

pub fn utc() -> Zone {
    Zone::named("UTC").unwrap()
}

pub fn asked(content: &str) -> Message {
    said(Role::User, None, content)
}

pub fn past(question: &str, steps: Vec<Step>, answer: Option<&str>) -> PastTurn {
    PastTurn {
        id: TurnId::from(1),
        is_composed: false,
        channel: HOME.to_owned(),
        message: asked(question),
        memories: Vec::new(),
        steps,
        reply: answer.map(|answer| said(Role::Assistant, None, answer)),
        state: TurnState::Done,
        error: None,
        is_shortened: false,
    }
}

/// The form of messages by the default configuration.
pub fn form(zone: &Zone) -> MessageForm<'_> {
    static DEFAULT: LazyLock<Config> = LazyLock::new(Config::default);
    MessageForm {
        zone,
        config: &DEFAULT,
        takes: Takes::default(),
    }
}

/// A request that shows only this.
pub fn input<'a>(zone: &'a Zone, past: &'a [PastTurn], present: &'a Message) -> PromptInput<'a> {
    PromptInput {
        system_prompt: "Be kind.",
        form: form(zone),
        summary: None,
        has_gap: false,
        past,
        turn: TurnId::from(1_000),
        present,
        memories: &[],
        steps: &[],
        channel: HOME,
    }
}

/// The same, of its own.
pub fn owned(context: Context<'_>) -> Context<'static> {
    let own = |content: Content<'_>| Content {
        earlier: content.earlier,
        memories: content.memories,
        is_overtaken: content.is_overtaken,
        speaker: content.speaker,
        text: content.text.into_owned().into(),
        is_outside: content.is_outside,
        notes: content.notes,
    };
    let messages = context.messages.into_iter().map(|message| match message {
        ChatMessage::User { content, files } => {
            let content = own(content);
            ChatMessage::User { content, files }
        }
        ChatMessage::Assistant { text, calls, extra } => {
            let text = text.into_owned().into();
            ChatMessage::Assistant { text, calls, extra }
        }
        ChatMessage::ToolResult {
            call_id,
            tool,
            content,
            ok,
            files,
        } => ChatMessage::ToolResult {
            call_id,
            tool,
            content: own(content),
            ok,
            files,
        },
    });
    Context {
        messages: messages.collect(),
        system: context.system,
        left_out: context.left_out,
        tokens: context.tokens,
    }
}

/// A user's text without its time, which is 1970 unless a test says otherwise.
pub fn unstamped(text: &str) -> String {
    text.replace("[Thu 1970-01-01 00:00] ", "")
}

/// A memory of the household.
pub fn memory(content: &str) -> Memory {
    Memory {
        id: MemoryId::from(1),
        content: content.to_owned(),
        search_words: Vec::new(),
        speaker: None,
        owner: None,
        owner_id: None,
        audience: Audience::Household,
        readers: Readers::Household,
        channel: None,
        account: None,
        created_at: Timestamp::from_millis(1_795_253_400_125),
        is_outside: false,
        shown_as: ShownAs::default(),
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
        result_chars: None,
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
        memories: Vec::new(),
        files: Vec::new(),
        page: None,
    }
}
