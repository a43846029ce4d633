//! Commands: the role that each needs, and its response.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value};

use super::caller::{Caller, Responder};
use super::hub::Person;
use super::settings::list_settings;
use super::tools::list_available_tools;
use super::{Service, views};
use crate::qr;
use agent::model::nearby;
use agent::model::probe::probe;
use agent::skills;
use agent::tools::permission::Actor;
use agent::tools::{Offer, Source, parameter_types, wording};
use base::error::{Code, Error, Result};
use base::ids::ConversationId;
use base::language::Words;
use base::people::Audience;
use base::secret::Secret;
use base::sync::lock;
use config::Preset;
use net::tls::{Trust, fingerprint, load_certificates};
use protocol::command::{Command, Declaration, Scope, SearchOrder, Subscribe, UpdateList};
use protocol::record;
use serde_json::json;
use store::{DeliveryState, Identity, ListChange, UserRole, Viewer};

/// The data of the response to `auth` for this identity; `token` is the session token that
/// was created for it, if one was.
pub fn authenticated(
    service: &Service,
    identity: &Identity,
    token: Option<Secret>,
) -> record::Authenticated {
    let config = service.settings.current();
    let now = service.clock.now();
    record::Authenticated {
        authenticated: true,
        user: identity.user.clone(),
        display_name: match service.store.user(&identity.user) {
            Ok(Some(user)) => user.called().to_owned(),
            Ok(None) | Err(_) => identity.user.clone(),
        },
        role: identity.role.as_str(),
        language: service.store.language(identity.user_id).ok().flatten(),
        admin: (identity.role < UserRole::Admin)
            .then(|| service.first_admin().ok().flatten().map(|admin| admin.name))
            .flatten(),
        expires_in: identity
            .expires_at
            .map(|expiry| expiry.since(now).as_secs()),
        server: record::Server {
            name: "hearth",
            version: env!("CARGO_PKG_VERSION"),
            protocol: protocol::VERSION,
        },
        limits: record::ConnectionLimits {
            max_message_bytes: config.limits.message_bytes,
            max_in_flight: config.limits.in_flight,
            ping_seconds: config.limits.ping_seconds,
        },
        token: token.map(|token| token.expose().to_owned()),
    }
}

/// Most errors of the log that are listed, and how far back they are looked for.
const ERRORS: usize = 100;
const ERROR_BYTES: u64 = 256 * 1024;
/// How long a provider may take to say whether it would answer.
const TEST_TIME: Duration = Duration::from_secs(8);

/// Asks the provider that the settings would name, with these changes, for its models.
fn test_config(service: &Service, changes: &Map<String, Value>, words: Words) -> Result<Value> {
    let config = service.settings.preview(changes)?;
    let trust = Trust::new(config.tls.ca_file.as_deref());
    let probe = probe(&config.first_choice(), &trust, TEST_TIME);
    Ok(json!({
        "is_usable": probe.finding.is_usable(),
        "message": probe.said().in_words(words),
        "models": probe.models.unwrap_or_default(),
        "usual_url": Preset::of(&config.provider).and_then(|preset| preset.base_url),
    }))
}

/// Runs a command of a caller whose role suffices. Its response goes through `responder` before
/// this returns, except for `chat`, whose response waits for its turn.
pub fn run(service: &Service, caller: &Caller<'_>, command: Command, responder: Responder) {
    match command {
        Command::Chat(chat) => service.chat(caller, chat, responder),
        Command::Subscribe(wanted) => subscribe(service, caller, &wanted, responder),
        Command::Transcribe(asked) => service.transcribe(asked, responder),
        Command::Speak(asked) => service.speak(asked, responder),
        command => {
            let ending = ends_access(&command).then(|| lock(&service.ending));
            let answer = answer(service, caller, command, responder.words);
            responder.send(answer);
            if ending.is_some() {
                service.close_revoked();
            }
        }
    }
}

/// The answer to a command that has one at once, in the words of this language.
// Its frame has room for every command. Inlined, it would take 16 KB of the stack of each
// connection that only chats.
#[inline(never)]
fn answer(
    service: &Service,
    caller: &Caller<'_>,
    command: Command,
    words: Option<Words>,
) -> Result<Value> {
    let store = &service.store;
    let user = caller.identity.user.as_str();
    let viewer = &caller.identity.viewer();
    match command {
        Command::SignOut => {
            let revoked = service.revoke(caller.identity);
            revoked.map(|()| json!({ "revoked": true }))
        }
        Command::SignOutEverywhere(wanted) => service.sign_out_everywhere(caller, wanted.tokens),
        // The session takes the first, and `run` the others.
        Command::Auth(_)
        | Command::Chat(_)
        | Command::Subscribe(_)
        | Command::Transcribe(_)
        | Command::Speak(_) => Err(Error::server(
            "the command was not run",
            "it has no answer at once",
        )),
        Command::FindModels(find) => match find.addresses.as_slice() {
            [] => Ok(nearby::on_this_machine()),
            addresses => nearby::at(addresses),
        }
        .map(|servers| json!({ "servers": servers })),
        Command::GetConfig(get) => service.get_config(caller.identity, get.path.as_deref()),
        Command::SetConfig(set) => service.set_config(set),
        Command::ReplaceConfig(new) => service.replace_config(&new),
        Command::CheckConfig => service.check_config(),
        Command::ListSettings => Ok(list_settings()),
        Command::UpdateConfig(update) if update.test => {
            test_config(service, &update.config, words.unwrap_or(Words::ENGLISH))
        }
        Command::UpdateConfig(update) => service.update_config(&update.config, caller.identity),
        Command::ListConversations(list) => service.page_of_conversations(viewer, &list),
        Command::GetMessages(get) => service.page_of_messages(viewer, &get),
        Command::ListTools => list_tools(service, caller.identity),
        Command::Ping => Ok(json!({ "time": service.clock.now() })),
        Command::GetTurn(get) => service.turn_view(viewer, words, get.turn_id),
        Command::Cancel(cancel) => service.cancel(cancel.turn_id, caller.identity),
        Command::RenameConversation(rename) => {
            service.rename(viewer, rename.conversation_id, rename.title.trim())
        }
        Command::UpdateConversation(update) => service.update_conversation(caller, update),
        Command::MarkRead(mark) => service.mark_read(caller, mark.conversation_id),
        Command::SelectVersion(select) => service.select_version(viewer, select.message_id),
        Command::DeleteMessage(delete) => service.delete_message(viewer, delete.message_id),
        Command::DeleteConversation(delete) => service.delete(viewer, delete.conversation_id),
        Command::ShareConversation(share) => {
            service.share(caller.identity, share.conversation_id, &share.audience)
        }
        Command::SearchMessages(search) => {
            let vector = match search.order {
                SearchOrder::Relevance => service.vector_of(&search.query),
                SearchOrder::Newest => None,
            };
            store
                .snapshot_to_search(viewer)
                .and_then(|seen| {
                    let (limit, order) = (search.limit, search.order);
                    seen.search_messages(&search.query, vector.as_ref(), limit, order)
                })
                .map(views::search_hits)
        }
        Command::PutAttachment(put) => service.put_attachment(caller.identity, put),
        Command::PutAttachmentPart(put) => service.put_attachment_part(viewer, put),
        Command::GetAttachment(get) => service.get_attachment(viewer, &get),
        Command::ReadAttachment(read) => service.read_attachment(viewer, read.attachment_id),
        Command::Export(wanted) => service.export_part(caller, &wanted),
        Command::ListApprovals => service.list_approvals(caller.identity),
        Command::Approve(approve) => {
            service.approve(approve.approval_id, approve.remember, caller.identity)
        }
        Command::Deny(deny) => service.deny(deny.approval_id, caller.identity),
        Command::ListMemories(list) => {
            let found = match &list.query {
                Some(query) => store
                    .snapshot_to_search(viewer)
                    .and_then(|seen| seen.recall(query, None, list.limit)),
                None => store.snapshot(viewer).and_then(|seen| seen.memories()),
            };
            found.map(|mut memories| {
                memories.retain(|one| !list.own || one.owner_id == Some(caller.identity.user_id));
                views::records("memories", memories.iter().map(views::memory))
            })
        }
        Command::AddMemory(new) => service.add_memory(new, caller),
        Command::UpdateMemory(update) => service.update_memory(update, caller),
        Command::DeleteMemory(delete) => store.forget(viewer, delete.memory_id).map(|readers| {
            service.hub.publish_memory(delete.memory_id, readers);
            json!({ "memory_id": delete.memory_id })
        }),
        Command::ListLists => store
            .snapshot(viewer)
            .and_then(|seen| seen.lists())
            .map(|lists| views::records("lists", lists.iter().map(views::list_summary))),
        Command::GetList(get) => store
            .snapshot(viewer)
            .and_then(|seen| seen.list(&get.list))
            .map(|list| json!(views::list(&list))),
        Command::UpdateList(update) => service.update_list(viewer, update),
        Command::DeleteList(delete) => store.delete_list(viewer, &delete.list).map(|list| {
            service.hub.publish_list(&list);
            json!({ "list": list })
        }),
        Command::CreateSchedule(new) => service
            .create_schedule(new, caller.identity)
            .map(|made| json!(service.schedule_view(&made, caller.identity))),
        Command::FinishReminder(finish) => service.finish_reminder(viewer, finish.schedule_id),
        Command::SnoozeReminder(snooze) => service
            .snooze_reminder(viewer, &snooze)
            .map(|again| json!(service.schedule_view(&again, caller.identity))),
        Command::ListScheduleRuns(list) => service.list_schedule_runs(viewer, list.schedule_id),
        Command::GetQuietHours => service.get_quiet_hours(caller.identity),
        Command::SetLanguage(set) => service.set_language(caller.identity, set.language.as_deref()),
        Command::SetQuietHours(set) => service.set_quiet_hours(caller.identity, set.quiet_hours),
        Command::ListSchedules => service.list_schedules(viewer, caller.identity),
        Command::DeleteSchedule(delete) => {
            store
                .delete_schedule(viewer, delete.schedule_id)
                .map(|readers| {
                    service.hub.publish_schedule(delete.schedule_id, readers);
                    json!({ "schedule_id": delete.schedule_id })
                })
        }
        Command::PauseSchedule(pause) => service
            .pause_schedule(viewer, pause.schedule_id, pause.paused)
            .map(|paused| json!(service.schedule_view(&paused, caller.identity))),
        Command::ListCalendars => service.list_calendars(caller.identity, words),
        Command::AddCalendar(new) => service.add_calendar(new, caller.identity, words),
        Command::UpdateCalendar(update) => service.update_calendar(update, caller.identity, words),
        Command::RemoveCalendar(remove) => service.remove_calendar(viewer, remove.calendar_id),
        Command::ListEvents(list) => service.list_events(viewer, &list),
        Command::Today(get) => service.today(get.user.as_deref(), caller.identity),
        Command::ListSkills => {
            let assistant = service.assistant();
            let skills: Vec<_> = assistant.skills.all().iter().map(views::skill).collect();
            // They name folders of the machine.
            let problems = assistant.skills.problems();
            let problems = if caller.is_admin() { problems } else { &[] };
            Ok(json!({ "skills": skills, "problems": problems }))
        }
        Command::AddSkill(new) => service.add_skill(&new.directory, user),
        Command::RemoveSkill(remove) => service.remove_skill(&remove.name, user),
        Command::ListOwnTools => service.list_own_tools(),
        Command::ListWebhookAccounts => service.list_webhook_accounts(),
        Command::AddWebhookAccount(new) => service.add_webhook_account(new, caller.identity),
        Command::RemoveWebhookAccount(remove) => service.remove_webhook_account(&remove.name),
        Command::TestWebhookAccount(test) => service.test_webhook_account(&test, caller.identity),
        Command::ListAvailableTools => {
            let words = store.words_of(caller.identity.user_id);
            Ok(list_available_tools(words))
        }
        Command::AddTool(new) => service.add_tool(new, caller.identity),
        Command::RemoveTool(remove) => service.remove_tool(&remove.name, user),
        Command::DrawAddress(draw) => qr::rows(&draw.url).map(|qr| json!({ "qr": qr })),
        Command::ListDeliveries(list) => delivery_state(list.state.as_deref())
            .and_then(|state| store.snapshot(viewer)?.deliveries(state, list.limit))
            .map(|found| {
                let shown = |one| views::delivery(one, words);
                views::records("deliveries", found.iter().map(shown))
            }),
        Command::RetryDelivery(retry) => {
            store
                .retry_delivery(viewer, retry.delivery_id)
                .map(|delivery| {
                    service.delivery_changed(&delivery);
                    json!(views::delivery(&delivery, words))
                })
        }
        Command::PushSubscribe(new) => service.push_subscribe(caller.identity, new.subscription),
        Command::PushUnsubscribe(gone) => service.push_unsubscribe(caller.identity, &gone.endpoint),
        Command::ServerInfo => server_info(service, caller, words).map(|info| json!(info)),
        Command::ListUsers => service.list_users(),
        Command::AddUser(new) => service.add_user(new, user),
        Command::InviteUser(new) => service.invite_user(new, user),
        Command::ResetPassword(reset) => service.reset_password(&reset, user),
        Command::ListInvitations => service.list_invitations(),
        Command::RevokeInvitation(revoke) => service.revoke_invitation(&revoke.name, user),
        Command::ChangePassword(change) => service.change_password(caller, &change),
        Command::DeleteAccount(delete) => service.delete_account(caller, &delete.password),
        Command::ListOwnTokens => service.list_own_tokens(caller),
        Command::RevokeOwnToken(revoke) => service.revoke_own_token(caller, revoke.token_id),
        Command::ListPeople => service.list_people(viewer),
        Command::SetDisplayName(new) => service.set_display_name(&new, caller.identity),
        Command::LinkSender(wanted) => service.link_sender(caller.identity, &wanted),
        Command::ListSenders(list) => service.list_senders(caller.identity, list.all),
        Command::UnlinkSender(gone) => service.unlink_sender(caller.identity, &gone),
        Command::SetPassword(new) => service.set_password(new, user),
        Command::SetRole(new) => service.set_role(&new, user),
        Command::SetLimits(new) => service.set_limits(new, caller.identity),
        Command::GetBelongings(get) => service.belongings(&get.name),
        Command::CreateSession(new) => service.create_session(new.user.as_deref()),
        Command::TestNotification(test) => {
            let results = service.sender.test_notification(&test.name);
            results.map(|results| json!({ "results": results }))
        }
        Command::ListErrors => service.list_errors(),
        Command::ListBackups => service.list_backups(),
        Command::StartBackup => service.start_backup(),
        Command::DownloadBackup(wanted) => service.download_backup(&wanted),
        Command::BackUp(wanted) => service.back_up(caller, wanted.part),
        Command::GetUsage(get) => service.usage(&get),
        Command::RemoveUser(remove) => service.remove_user(&remove, caller.identity),
        Command::ListTokens(list) => service.list_tokens(list.sessions),
        Command::CreateToken(new) => service.create_token(new, caller.identity),
        Command::RevokeToken(revoke) => service.revoke_token(revoke.token_id, user),
    }
}

/// Whether a command may end the access of connections: that of whoever sends it gets the
/// answer first.
fn ends_access(command: &Command) -> bool {
    matches!(
        command,
        Command::SignOut
            | Command::SignOutEverywhere(_)
            | Command::ChangePassword(_)
            | Command::DeleteAccount(_)
            | Command::RevokeOwnToken(_)
            | Command::RevokeToken(_)
            | Command::RevokeInvitation(_)
            | Command::SetPassword(_)
            | Command::SetRole(_)
            | Command::RemoveUser(_)
    )
}

fn subscribe(service: &Service, caller: &Caller<'_>, wanted: &Subscribe, responder: Responder) {
    service.reserve_event_numbers();
    service.hub.subscribe(
        caller.connection,
        caller.outbox,
        wanted.events,
        Person::reading(caller.identity, responder.words),
        wanted.since,
        |subscribed| {
            responder.send(Ok(json!({
                "events": wanted.events.names().collect::<Vec<_>>(),
                "seq": subscribed.seq,
                "events_lost": subscribed.events_lost,
            })));
        },
    );
    service.tell_again(caller.identity);
}

/// Why a command may not be sent with this identity, if so.
pub fn refusal(identity: &Identity, declaration: &Declaration) -> Option<Error> {
    if identity.role < declaration.role {
        let fields = [
            ("needed", declaration.role.as_str()),
            ("own", identity.role.as_str()),
        ];
        return Some(Error::worded(Code::Unauthorized, "error.role", &fields));
    }
    let is_owner = identity.role == UserRole::Owner;
    let refused = match declaration.scope {
        Scope::Person | Scope::Account if is_owner => "error.for_a_person",
        Scope::Account if identity.is_narrowed => "error.token_account",
        Scope::Calendars if !may_see_calendars(identity) => "error.token_calendars",
        Scope::AllTools if identity.scope.tools.is_some() => "error.token_household",
        // That a guest may is for who was made one.
        Scope::AllTools if identity.role < UserRole::User && identity.is_narrowed => {
            "error.token_schedules"
        }
        _ => return None,
    };
    Some(Error::worded(Code::Unauthorized, refused, &[]))
}

/// Whether a token reaches calendars: it has every tool, or the one that finds events.
pub(super) fn may_see_calendars(identity: &Identity) -> bool {
    let tools = identity.scope.tools.as_deref();
    tools.is_none_or(|tools| tools.iter().any(|listed| listed == "find_events"))
}

/// Refuses an audience that a token for the household may not give a conversation.
pub(super) fn check_audience(identity: &Identity, audience: &Audience) -> Result<()> {
    if identity.scope.household_only && *audience != Audience::Household {
        return Err(Error::unauthorized(
            "what a token for the household makes is the household's, and stays so",
        ));
    }
    Ok(())
}

fn delivery_state(word: Option<&str>) -> Result<Option<DeliveryState>> {
    word.map(|word| {
        DeliveryState::parse(word).ok_or_else(|| {
            Error::invalid_request("\"state\" must be pending, held, delivered or dead")
        })
    })
    .transpose()
}

/// The tools that the caller's turns may have, also those that are denied at present. A
/// guest has no turns.
fn list_tools(service: &Service, caller: &Identity) -> Result<Value> {
    let assistant = service.assistant();
    let config = &assistant.config;
    let of_token = caller.scope.tools.as_deref();
    let actor = Actor::of_turn(config, None, caller.person()).with_tools(of_token);
    let is_guest = caller.role < UserRole::User;
    let words = service.store.words_of(caller.user_id);
    let offered = actor.offered(&assistant.toolbox);
    let window = assistant.servers.first(&config.model).window();
    let offer = Offer::new(offered, &[], &assistant.toolbox, window, || {
        let seen = service.server_snapshot()?;
        // As a conversation that begins now has them.
        seen.most_called(ConversationId::from(i64::MAX))
    })?;
    let tools = assistant
        .toolbox
        .iter()
        .filter(|tool| !is_guest && actor.may_have(tool.definition()))
        .map(|tool| {
            let spec = tool.spec();
            let permission = actor.permission(tool.definition());
            record::Tool {
                name: spec.name.clone(),
                label: wording::label(words, &spec.name, Some(tool.definition())),
                about: wording::about(words, tool.definition()),
                description: spec.description.clone(),
                parameters: parameter_types(&spec.parameters),
                source: match &tool.definition().source {
                    Source::Builtin => "builtin".to_owned(),
                    Source::Custom => "custom".to_owned(),
                    Source::Mcp(server) => format!("mcp:{server}"),
                },
                permission: permission.as_str(),
                annotations: tool.annotations().cloned(),
                effect: wording::effect(words, &**tool),
                is_left_out: offer.left_out().any(|name| name == spec.name),
            }
        });
    Ok(views::records("tools", tools))
}

fn server_info(
    service: &Service,
    caller: &Caller<'_>,
    words: Option<Words>,
) -> Result<record::ServerInfo> {
    let (store, now) = (&service.store, service.clock.now());
    let assistant = service.assistant();
    let config = &assistant.config;
    let identity = caller.identity;
    // An admin runs the server: the numbers of all of it, and of nothing in it. Others
    // get what is theirs.
    let user = (!caller.is_admin()).then_some(identity.user_id);
    let viewer = user.map_or_else(Viewer::server, |_| identity.viewer());
    let counts = store.snapshot(&viewer)?.counts()?;
    let whole = service.server_snapshot()?;
    let (budget, month) = match user {
        None => (config.budget.monthly_tokens, whole.tokens_of_month(now)?),
        Some(id) => {
            let limits = config.person(&identity.user);
            let budget = limits.and_then(|limits| limits.monthly_tokens);
            (budget, whole.tokens_of_month_by(id, now)?)
        }
    };
    drop(whole);
    let load = service.load();
    let named = |state: &str, count: &u64| (state.to_owned(), *count);
    let turns = counts.turns.iter();
    let mut turns: BTreeMap<String, u64> = turns
        .map(|(state, count)| named(state.as_str(), count))
        .collect();
    if caller.is_admin() {
        // The database learns of a turn's start with its next commit; the queue
        // knows at once.
        turns.insert("running".to_owned(), load.running as u64);
        turns.insert("queued".to_owned(), load.waiting as u64);
    }
    let mcp_servers = service.mcp.statuses().into_iter();
    let models = assistant.servers.health(&config.model).into_iter();
    let authority = config.tls.authority();
    let authority = authority.and_then(|path| load_certificates(&path).ok());
    Ok(record::ServerInfo {
        name: "hearth",
        version: env!("CARGO_PKG_VERSION"),
        uptime_seconds: service.uptime().as_secs(),
        machine_id: service.relays.machine_id().map(|id| id.as_str().to_owned()),
        relays: service.relays.statuses(),
        connections: service.connections.count(user) as u64,
        conversations: counts.conversations,
        database_bytes: caller.is_admin().then_some(counts.database_bytes),
        attachment_bytes: caller.is_admin().then_some(counts.attachment_bytes),
        backup: service.backup_status(),
        turns,
        deliveries: (counts.deliveries.iter())
            .map(|(state, count)| named(state.as_str(), count))
            .collect(),
        mcp_servers: mcp_servers
            .map(|server| {
                let mut shown = views::mcp_server(server, words);
                // It may have what a program of the machine has printed.
                shown.problem = shown.problem.filter(|_| caller.is_admin());
                shown
            })
            .collect(),
        push_key: service.sender.push_key(),
        authority: authority.map(|certificates| fingerprint(&certificates[0])),
        tokens: views::tokens(counts.usage),
        budget: record::Budget {
            monthly_tokens: budget,
            used_this_month: month,
        },
        models: models.map(views::model_status).collect(),
    })
}

impl Service {
    fn update_list(&self, viewer: &Viewer, update: UpdateList) -> Result<Value> {
        let change = ListChange {
            add: update.add,
            check: update.check,
            uncheck: update.uncheck,
            remove: update.remove,
            ..ListChange::default()
        };
        let list = self.store.update_list(viewer, &update.list, change)?;
        self.hub.publish_list(&list.name);
        Ok(json!(views::list(&list)))
    }

    fn add_skill(&self, directory: &str, by: &str) -> Result<Value> {
        let installed = skills::add(&self.data_dir, Path::new(directory))
            .map_err(|error| Error::invalid_request(error.to_string()))?;
        let skill = installed.skill;
        log::info!("skill {}: installed by {by}", skill.name);
        self.hub.publish_skill(&skill.name);
        Ok(json!({
            "name": skill.name,
            "description": skill.description,
            "was_there": installed.was_there,
        }))
    }

    /// The newest lines of the log that are warnings or errors, as it has them: nothing
    /// secret is logged.
    fn list_errors(&self) -> Result<Value> {
        let path = self.data_dir.join("hearth.log");
        let read = || -> io::Result<Vec<u8>> {
            let mut file = File::open(&path)?;
            let end = file.seek(SeekFrom::End(0))?;
            file.seek(SeekFrom::Start(end.saturating_sub(ERROR_BYTES)))?;
            let mut text = Vec::new();
            file.take(ERROR_BYTES).read_to_end(&mut text)?;
            Ok(text)
        };
        let text = match read() {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(Error::server("the log cannot be read", error.to_string())),
        };
        let text = String::from_utf8_lossy(&text);
        let is_error = |line: &&str| {
            // The level comes first, or after the time.
            let mut words = line.split_whitespace().take(2);
            words.any(|word| matches!(word, "WARN" | "ERROR"))
        };
        let mut errors: Vec<&str> = text.lines().rev().filter(is_error).take(ERRORS).collect();
        errors.reverse();
        Ok(json!({ "errors": errors }))
    }

    fn remove_skill(&self, name: &str, by: &str) -> Result<Value> {
        let removed = skills::remove(&self.data_dir, name)
            .map_err(|error| Error::server("the skill could not be removed", error.to_string()))?;
        if !removed {
            return Err(Error::not_found(format!("there is no skill {name:?}")));
        }
        log::info!("skill {name}: removed by {by}");
        self.hub.publish_skill(name);
        Ok(json!({ "name": name }))
    }
}
