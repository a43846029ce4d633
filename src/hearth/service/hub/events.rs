//! What is published, each event made from what it reports. An event that carries a
//! reply, the end of a turn or a question to a person takes a
//! [`Durable`](store::Durable), so that nobody learns of what a failed commit takes
//! back. Progress and a person's own message may come before their commit. What is worded
//! for people comes in each of their languages.

use super::{ConnectionId, Hub, Recipients};
use crate::service::views;
use agent::tools::Change;
use agent::turn::Progress;
use base::ids::{CalendarId, ConversationId, MemoryId, MessageId, ScheduleId, UserId};
use base::language::Words;
use protocol::event::{Event, EventKind, EventName};
use protocol::record;
use store::{
    Approval, Begun, Decision, Delivery, Durable, Finished, Message, Readers, Schedule, Turn,
    TurnState, UserRole,
};

impl Hub {
    /// A piece of text, a tool call or its result. People read `languages` beside English.
    pub fn publish_progress(
        &self,
        turn: &Turn,
        progress: Progress<'_>,
        languages: impl Fn() -> Vec<Words>,
    ) {
        let kind = match progress {
            Progress::Changed(change) => return self.publish_change_of_tool(change),
            Progress::Waits(wait) => EventKind::Waiting {
                seconds: wait.as_secs_f64().ceil() as u64,
            },
            Progress::Text(text) => EventKind::Delta {
                text: text.to_owned(),
            },
            Progress::Thought(text) => EventKind::Reasoning {
                text: text.to_owned(),
            },
            Progress::ToolCall(call, said) => {
                let called = worded(turn, &languages(), |words| {
                    let wording = said(words);
                    EventKind::ToolCall {
                        tool: call.tool.clone(),
                        arguments: views::arguments(&call.arguments),
                        call_id: call.id.clone(),
                        sentence: wording.sentence(),
                        label: wording.label,
                    }
                });
                return self.publish_found(called, &turn.readers);
            }
            Progress::ToolResult {
                call_id,
                ok,
                summary,
                needs_admin,
            } => EventKind::ToolResult {
                call_id: call_id.to_owned(),
                ok,
                summary: summary.to_owned(),
                needs_admin,
            },
        };
        if matches!(kind.name(), EventName::Delta | EventName::Waiting) {
            return self.publish_of(turn, kind);
        }
        self.publish_found(of_turn(turn, kind), &turn.readers);
    }

    /// The model may have put into a call, or think of, what it found before.
    fn publish_found(&self, event: Event, readers: &Readers) {
        let (then, now) = (readers.clone(), readers.clone());
        self.publish(event, Recipients::Finders { then, now });
    }

    /// The message of a new turn.
    pub fn publish_begin(&self, begun: &Begun) {
        if let Begun::New { turn, message, .. } = begun {
            self.publish_of(turn, created(message));
        }
    }

    /// The end of a turn, and its reply.
    ///
    /// ```
    /// use hearth::service::hub::Hub;
    /// use store::{Durable, Finished};
    ///
    /// fn publish(hub: &Hub, finished: &Durable<Finished>) {
    ///     hub.publish_end(finished);
    /// }
    /// ```
    ///
    /// ```compile_fail
    /// use hearth::service::hub::Hub;
    /// use store::{Finished, Provisional};
    ///
    /// fn publish(hub: &Hub, finished: &Provisional<Finished>) {
    ///     hub.publish_end(finished);
    /// }
    /// ```
    pub fn publish_end(&self, finished: &Durable<Finished>) {
        let turn = &finished.turn;
        if let Some(reply) = &finished.reply {
            self.publish_of(turn, created(reply));
        }
        if let (TurnState::Done, Some(reply)) = (turn.state, &finished.reply) {
            let kind = EventKind::Done {
                message_id: reply.id,
                in_reply_to: reply.in_reply_to,
                finish_reason: reply.finish_reason,
            };
            return self.publish_of(turn, kind);
        }
        let error = turn.error.clone().unwrap_or_else(views::cancelled);
        self.publish_of(
            turn,
            EventKind::Failed {
                code: error.code(),
                error: error.said().clone(),
                key: error.key().map(str::to_owned),
                cancelled: turn.state == TurnState::Cancelled,
                text: finished.reply.as_ref().map(|said| said.content.clone()),
            },
        );
    }

    /// The tool calls for which a turn waits, as `shown` says them in these languages to the
    /// person who asked (true) and to admins, who may not see what that person sees.
    pub fn publish_requests(
        &self,
        turn: &Turn,
        approvals: &Durable<Vec<Approval>>,
        languages: &[Words],
        shown: impl Fn(&Approval, bool, Words) -> record::Approval,
    ) {
        let event = |approval: &Approval, is_own: bool| {
            worded(turn, languages, |words| {
                requested(shown(approval, is_own, words))
            })
        };
        for approval in approvals.iter() {
            let readers = || turn.readers.clone();
            let asker = approval.user_id;
            let mut recipients = Recipients::Askers {
                asker,
                readers: readers(),
            };
            if let Some(asker) = asker {
                let [own, for_admins] =
                    [true, false].map(|is_own| shown(approval, is_own, Words::ENGLISH));
                if (&own.reason, &own.words) != (&for_admins.reason, &for_admins.words) {
                    let only = Recipients::Asker {
                        asker,
                        readers: readers(),
                    };
                    self.publish(event(approval, true), only);
                    recipients = Recipients::OtherAdmins(asker);
                }
            }
            self.publish(event(approval, false), recipients);
        }
    }

    /// A person's decision, or that nobody decided in time, in a conversation with these
    /// readers.
    pub fn publish_decision(&self, approval: &Approval, decision: &Decision, readers: Readers) {
        let kind = EventKind::ApprovalResolved {
            approval_id: approval.id,
            decision: decision.verdict.as_str().to_owned(),
            by: decision.by.clone(),
        };
        let event = Event {
            turn_id: Some(approval.turn_id),
            ..of_conversation(approval.conversation_id, kind)
        };
        let asker = approval.user_id;
        self.publish(event, Recipients::Askers { asker, readers });
    }

    /// That a callback was stored or attempted.
    pub fn publish_delivery(&self, delivery: &Delivery) {
        let kind = EventKind::DeliveryUpdated {
            delivery_id: delivery.id,
            state: delivery.state.as_str().to_owned(),
            attempts: delivery.attempts,
        };
        let event = Event {
            turn_id: Some(delivery.turn_id),
            ..of_conversation(delivery.conversation_id, kind)
        };
        let readers = delivery.readers.clone();
        self.publish(event, Recipients::ReadingAdmins(readers));
    }

    /// A conversation's new title.
    pub fn publish_title(&self, conversation: ConversationId, readers: Readers, title: String) {
        let event = of_conversation(conversation, EventKind::ConversationRenamed { title });
        self.publish(event, Recipients::Readers(readers));
    }

    /// Asks clients to read a conversation again.
    pub fn publish_change(&self, conversation: ConversationId, readers: Readers) {
        self.publish_changed(conversation, false, Recipients::Readers(readers));
    }

    /// That this person keeps a conversation in another way, as they said on this connection:
    /// pinned, archived or read. Only their other connections must learn of it.
    pub fn publish_marks(
        &self,
        conversation: ConversationId,
        (id, connection): (UserId, ConnectionId),
        readers: Readers,
    ) {
        let recipients = Recipients::Elsewhere {
            id,
            connection,
            readers,
        };
        self.publish_changed(conversation, true, recipients);
    }

    fn publish_changed(
        &self,
        conversation: ConversationId,
        marks_only: bool,
        recipients: Recipients,
    ) {
        let kind = EventKind::ConversationChanged { marks_only };
        self.publish(of_conversation(conversation, kind), recipients);
    }

    /// What a tool has changed, on disk.
    pub fn publish_change_of_tool(&self, change: &Change) {
        match change {
            Change::List(list) => self.publish_list(list),
            Change::Memory(id, readers) => self.publish_memory(*id, readers.clone()),
            Change::Schedule(id, readers) => self.publish_schedule(*id, readers.clone()),
            Change::Calendar(id, readers) => self.publish_calendar(*id, readers.clone()),
        }
    }

    /// That a list was changed, made or deleted, on disk.
    pub fn publish_list(&self, list: &str) {
        let list = list.to_owned();
        let kind = EventKind::ListUpdated { list };
        self.publish(of_household(kind), Recipients::Readers(Readers::Household));
    }

    /// That a memory was made, changed or deleted, on disk.
    pub fn publish_memory(&self, memory_id: MemoryId, readers: Readers) {
        let kind = EventKind::MemoryUpdated { memory_id };
        self.publish(of_household(kind), Recipients::Members(readers));
    }

    /// That a schedule was made, changed or deleted, on disk.
    pub fn publish_schedule(&self, schedule_id: ScheduleId, readers: Readers) {
        let kind = EventKind::ScheduleUpdated { schedule_id };
        self.publish(of_household(kind), Recipients::Readers(readers));
    }

    /// That a calendar or what is in it was changed, on disk.
    pub fn publish_calendar(&self, calendar_id: CalendarId, readers: Readers) {
        let kind = EventKind::CalendarUpdated { calendar_id };
        self.publish(of_household(kind), Recipients::Readers(readers));
    }

    /// Whether a connection would get what a reminder of this person says.
    pub fn hears_reminders(&self, person: UserId) -> bool {
        let recipients = Recipients::Readers(Readers::People([person].into()));
        let state = self.lock();
        let mut hearing = state.subscribed(EventName::ReminderTold, None, &recipients);
        hearing.next().is_some()
    }

    /// A reminder that was told, on disk: to its person, or to those who see one of nobody.
    pub fn publish_reminder(&self, told: &Schedule, message: Option<MessageId>, again: bool) {
        let readers = match told.owner_id {
            Some(owner) => Readers::People(vec![owner].into()),
            None => told.readers.clone(),
        };
        let kind = EventKind::ReminderTold {
            schedule_id: told.id,
            message_id: message,
            say: told.text.clone(),
            again,
        };
        let event = Event {
            turn_id: told.told_by,
            conversation_id: told.conversation_id,
            ..of_household(kind)
        };
        self.publish(event, Recipients::Readers(readers));
    }

    /// That a skill was installed, replaced or removed.
    pub fn publish_skill(&self, name: &str) {
        let name = name.to_owned();
        let kind = EventKind::SkillUpdated { name };
        self.publish(of_household(kind), Recipients::Readers(Readers::Household));
    }

    /// That this person is called otherwise: to the household, and to the person, who may be a
    /// guest.
    pub fn publish_name(&self, id: UserId, role: UserRole) {
        let mut readers = vec![Readers::Household];
        if role < UserRole::User {
            readers.push(Readers::People([id].into()));
        }
        for readers in readers {
            let event = of_household(EventKind::NamesUpdated);
            self.publish(event, Recipients::Readers(readers));
        }
    }

    /// That people, their tokens or invitations changed.
    pub fn publish_people(&self) {
        self.publish(of_household(EventKind::PeopleUpdated), Recipients::Admins);
    }

    /// The names of settings that changed.
    pub fn publish_settings(&self, fields: &[String]) {
        let fields = fields.to_vec();
        let kind = EventKind::ConfigUpdated { fields };
        self.publish(of_household(kind), Recipients::Admins);
    }

    fn publish_of(&self, turn: &Turn, kind: EventKind) {
        let readers = turn.readers.clone();
        self.publish(of_turn(turn, kind), Recipients::Readers(readers));
    }
}

fn created(message: &Message) -> EventKind {
    let message = views::message(message.clone());
    EventKind::MessageCreated { message }
}

/// An event that belongs to no conversation.
fn of_household(kind: EventKind) -> Event {
    Event {
        turn_id: None,
        conversation_id: None,
        kind,
        translations: Vec::new(),
    }
}

/// An event of a conversation, but of none of its turns.
pub(super) fn of_conversation(conversation: ConversationId, kind: EventKind) -> Event {
    Event {
        conversation_id: Some(conversation),
        ..of_household(kind)
    }
}

fn requested(approval: record::Approval) -> EventKind {
    let words = approval.words;
    EventKind::ApprovalRequested {
        approval_id: approval.approval_id,
        tool: approval.tool,
        arguments: approval.arguments,
        reason: approval.reason,
        label: words.label,
        origin: words.origin,
        after: words.after,
        details: words.details,
        answers: words.answers,
        requested_by: approval.requested_by,
        channel: approval.channel,
        covers: approval.covers,
        outside: approval.outside,
    }
}

/// What happened, as `said` says it in English and in these languages.
fn worded(turn: &Turn, languages: &[Words], said: impl Fn(Words) -> EventKind) -> Event {
    let translation = |&words: &Words| (words, said(words));
    Event {
        translations: languages.iter().map(translation).collect(),
        ..of_turn(turn, said(Words::ENGLISH))
    }
}

fn of_turn(turn: &Turn, kind: EventKind) -> Event {
    Event {
        turn_id: Some(turn.id),
        ..of_conversation(turn.conversation_id, kind)
    }
}
