//! Commands: who may send which, and what each is answered.

use serde::Serialize;
use serde_json::{Map, Value};

use super::session::{Caller, Responder};
use super::{Service, views};
use agent::permission::{self, Rules};
use agent::tool::{Source, parameter_types};
use base::error::{Error, Result};
use base::ids::ConversationId;
use base::secret::Secret;
use config::Permission;
use protocol;
use protocol::command::Command;
use protocol::event::{Event, Kind};
use serde_json::json;
use store::{DeliveryState, Identity, UserRole};

/// What `auth` is answered.
#[derive(Serialize)]
pub struct Authenticated {
    authenticated: bool,
    user: String,
    role: &'static str,
    expires_in: Option<u64>,
    server: Server,
    limits: Limits,
    /// Made for a name and password; absent where a token was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
}

#[derive(Serialize)]
struct Server {
    name: &'static str,
    version: &'static str,
    protocol: u32,
}

#[derive(Serialize)]
struct Limits {
    max_message_bytes: usize,
    max_in_flight: usize,
    ping_seconds: u64,
}

impl Authenticated {
    /// The answer for this identity; `token` is the session token that was
    /// made for it, if one was.
    pub fn of(service: &Service, identity: &Identity, token: Option<Secret>) -> Authenticated {
        let config = service.settings().current();
        let now = service.clock().now();
        Authenticated {
            authenticated: true,
            user: identity.user.clone(),
            role: identity.role.as_str(),
            expires_in: identity
                .expires_at
                .map(|expiry| expiry.since(now).as_secs()),
            server: Server {
                name: "hearth",
                version: env!("CARGO_PKG_VERSION"),
                protocol: protocol::VERSION,
            },
            limits: Limits {
                max_message_bytes: config.limits.message_bytes,
                max_in_flight: config.limits.in_flight,
                ping_seconds: config.limits.ping_seconds,
            },
            token: token.map(|token| token.expose().to_owned()),
        }
    }
}

/// The least role that may send a command (protocol section 2).
fn needed_role(command: &Command) -> UserRole {
    match command {
        Command::Auth(_)
        | Command::SignOut
        | Command::GetConfig
        | Command::ListConversations { .. }
        | Command::GetMessages { .. }
        | Command::ListTools
        | Command::Ping
        | Command::Subscribe { .. }
        | Command::GetTurn { .. }
        | Command::SearchMessages { .. }
        | Command::ListMemories
        | Command::ListSchedules
        | Command::ServerInfo => UserRole::Viewer,
        Command::Chat(_)
        | Command::Cancel { .. }
        | Command::RenameConversation { .. }
        | Command::DeleteConversation { .. }
        | Command::DeleteMemory { .. }
        | Command::CreateSchedule(_)
        | Command::DeleteSchedule { .. }
        | Command::PauseSchedule { .. } => UserRole::User,
        Command::UpdateConfig { .. }
        | Command::ListApprovals
        | Command::Approve { .. }
        | Command::Deny { .. }
        | Command::ListDeliveries { .. }
        | Command::RetryDelivery { .. }
        | Command::People(_) => UserRole::Admin,
    }
}

/// Runs a command. Its response goes through `responder`: before this returns,
/// but for `chat`, which is answered when its turn is over.
pub fn run(service: &Service, caller: &Caller<'_>, command: Command, responder: Responder) {
    let needed = needed_role(&command);
    if caller.identity.role < needed {
        return responder.send(Err::<(), _>(Error::unauthorized(format!(
            "this needs the role {}; yours is {}",
            needed.as_str(),
            caller.identity.role.as_str()
        ))));
    }
    match command {
        Command::Chat(chat) => service.chat(caller, chat, responder),
        Command::Subscribe { events, since } => {
            let is_admin = caller.identity.role >= UserRole::Admin;
            let (connection, outbox) = (caller.connection, caller.outbox);
            service
                .hub()
                .subscribe(connection, outbox, events, is_admin, since, |subscribed| {
                    responder.send(Ok(json!({
                        "events": events.names().collect::<Vec<_>>(),
                        "seq": subscribed.seq,
                        "events_lost": subscribed.events_lost,
                    })));
                });
        }
        Command::SignOut => {
            let revoked = service.revoke(caller.identity);
            // Told before its connection is closed.
            responder.send(revoked.map(|()| json!({ "revoked": true })));
            service.connections().revoke(caller.identity.token_id);
        }
        command => responder.send(answer(service, caller, command)),
    }
}

fn answer(service: &Service, caller: &Caller<'_>, command: Command) -> Result<Value> {
    let store = service.store();
    match command {
        Command::GetConfig => Ok(Value::Object(service.settings().readable())),
        Command::UpdateConfig { config } => update_config(service, &config),
        Command::ListConversations { limit, cursor } => {
            store.conversations(limit, cursor).map(views::conversations)
        }
        Command::GetMessages {
            conversation_id,
            limit,
            before,
        } => service
            .settled(|| store.messages(conversation_id, limit, before))
            .map(views::messages),
        Command::ListTools => Ok(list_tools(service)),
        Command::Ping => Ok(json!({ "time": service.clock().now() })),
        Command::GetTurn { turn_id } => service.turn_view(turn_id),
        Command::Cancel { turn_id } => service.cancel(turn_id, &caller.identity.user),
        Command::RenameConversation {
            conversation_id,
            title,
        } => {
            store.rename_conversation(conversation_id, title.trim())?;
            let shown = title.trim().to_owned();
            let kind = Kind::ConversationRenamed { title: shown };
            service.conversation_changed(conversation_id, kind);
            Ok(json!({ "conversation_id": conversation_id, "title": title.trim() }))
        }
        Command::DeleteConversation { conversation_id } => {
            store.delete_conversation(conversation_id)?;
            service.conversation_changed(conversation_id, Kind::ConversationDeleted);
            Ok(json!({ "conversation_id": conversation_id }))
        }
        Command::SearchMessages { query, limit } => store
            .search_messages(&query, limit)
            .map(|found| views::found_messages(found, &query)),
        Command::ListApprovals => store.waiting_approvals().map(views::approvals),
        Command::Approve {
            approval_id,
            remember,
        } => service.approve(approval_id, remember, &caller.identity.user),
        Command::Deny { approval_id } => service.deny(approval_id, &caller.identity.user),
        Command::ListMemories => store.memories().map(views::memories),
        Command::DeleteMemory { memory_id } => {
            store.forget(memory_id)?;
            Ok(json!({ "memory_id": memory_id }))
        }
        Command::CreateSchedule(new) => service
            .create_schedule(new, &caller.identity.user)
            .map(views::schedule),
        Command::ListSchedules => store.schedules().map(views::schedules),
        Command::DeleteSchedule { schedule_id } => {
            store.delete_schedule(schedule_id)?;
            Ok(json!({ "schedule_id": schedule_id }))
        }
        Command::PauseSchedule {
            schedule_id,
            paused,
        } => service
            .pause_schedule(schedule_id, paused)
            .map(views::schedule),
        Command::ListDeliveries { state, limit } => {
            let state = state.as_deref().map(delivery_state).transpose()?;
            store.deliveries(state, limit).map(views::deliveries)
        }
        Command::RetryDelivery { delivery_id } => {
            let delivery = store.retry_delivery(delivery_id)?;
            service.delivery_changed(&delivery);
            Ok(views::delivery(&delivery))
        }
        Command::ServerInfo => server_info(service),
        Command::People(command) => service.people(command, &caller.identity.user),
        // The session answers these itself.
        Command::Auth(_) | Command::SignOut | Command::Chat(_) | Command::Subscribe { .. } => Err(
            Error::server("the command was not answered", "it reached the wrong place"),
        ),
    }
}

fn delivery_state(word: &str) -> Result<DeliveryState> {
    DeliveryState::parse(word)
        .ok_or_else(|| Error::invalid_request("\"state\" must be pending, held, delivered or dead"))
}

fn update_config(service: &Service, changes: &Map<String, Value>) -> Result<Value> {
    let updated = service.settings().update(changes)?;
    service.config_changed(&updated);
    Ok(json!({ "updated_fields": updated }))
}

fn list_tools(service: &Service) -> Value {
    let assistant = service.assistant();
    let config = &assistant.config;
    let rules = Rules {
        mode: config.permission_mode,
        overrides: &config.tool_permissions,
        narrowing: None,
    };
    let tools: Vec<Value> = assistant
        .toolbox
        .iter()
        .map(|tool| {
            let spec = tool.spec();
            let permission = permission::decide(&spec.name, &rules, false);
            json!({
                "name": spec.name,
                "description": spec.description,
                "parameters": parameter_types(&spec.parameters),
                "source": match tool.source() {
                    Source::Builtin => "builtin".to_owned(),
                    Source::Custom => "custom".to_owned(),
                    Source::Mcp(server) => format!("mcp:{server}"),
                },
                "permission": match permission {
                    Permission::Ask => "ask",
                    Permission::Allow => "allow",
                    Permission::Deny => "deny",
                },
            })
        })
        .collect();
    json!({ "tools": tools })
}

fn server_info(service: &Service) -> Result<Value> {
    let counts = service.store().counts()?;
    let assistant = service.assistant();
    let config = &assistant.config;
    let month = service.store().tokens_of_month(service.clock().now())?;
    let standings = assistant.provider.standings(&config.model);
    let (running, waiting) = service.queue.load();
    let mut turns: Map<String, Value> = counts
        .turns
        .iter()
        .map(|(state, count)| (state.as_str().to_owned(), json!(count)))
        .collect();
    // The database learns of a turn's start with its next commit; the queue
    // knows at once.
    turns.insert("running".to_owned(), json!(running));
    turns.insert("queued".to_owned(), json!(waiting));
    let deliveries: Map<String, Value> = counts
        .deliveries
        .iter()
        .map(|(state, count)| (state.as_str().to_owned(), json!(count)))
        .collect();
    let mcp_servers: Vec<Value> = service
        .mcp()
        .statuses()
        .into_iter()
        .map(|server| {
            json!({
                "name": server.name,
                "state": server.state.as_str(),
                "tools": server.tools,
                "problem": server.problem,
            })
        })
        .collect();
    Ok(json!({
        "name": "hearth",
        "version": env!("CARGO_PKG_VERSION"),
        "uptime_seconds": service.uptime().as_secs(),
        "machine_id": service.relays().machine_id().map(|id| id.as_str().to_owned()),
        "relays": views::relays(service.relays().statuses()),
        "connections": service.connections().count(),
        "conversations": counts.conversations,
        "database_bytes": counts.database_bytes,
        "backup": service.backup_status(),
        "turns": turns,
        "deliveries": deliveries,
        "mcp_servers": mcp_servers,
        "tokens": views::tokens(counts.usage),
        "budget": {
            "monthly_tokens": config.budget.monthly_tokens,
            "used_this_month": month,
        },
        "models": views::standings(standings),
    }))
}

impl Service {
    /// Tells subscribers what became of a conversation.
    fn conversation_changed(&self, conversation: ConversationId, kind: Kind) {
        self.hub().publish(Event {
            turn_id: None,
            conversation_id: Some(conversation),
            kind,
        });
    }

    /// Tells subscribers which settings changed.
    pub fn config_changed(&self, fields: &[String]) {
        if !fields.is_empty() {
            log::info!("configuration: {} changed", fields.join(", "));
            self.start_mcp();
            self.hub().publish(Event {
                turn_id: None,
                conversation_id: None,
                kind: Kind::ConfigUpdated {
                    fields: fields.to_vec(),
                },
            });
        }
    }
}
