//! Conversations as people change them: renamed, shared, deleted.

use serde_json::Value;

use super::caller::Caller;
use super::commands::check_audience;
use super::{Service, views};
use base::error::{Error, Result};
use base::ids::{ConversationId, MessageId};
use base::language::Said;
use base::people::Audience;
use base::sync::lock;
use base::visible::label;
use protocol::command::{GetMessages, ListConversations, UpdateConversation};
use protocol::event::EventKind;
use serde_json::json;
use store::{Conversation, ConversationChange, Identity, Readers, Reshared, TELEGRAM, Viewer};

impl Service {
    /// Who sees a new conversation of a person who does not say.
    pub(super) fn usual_audience(&self) -> Audience {
        self.settings.current().privacy.conversations.clone()
    }

    /// A page of the conversations, or of one of them.
    pub(super) fn page_of_conversations(
        &self,
        viewer: &Viewer,
        list: &ListConversations,
    ) -> Result<Value> {
        let store = &self.store;
        let page = match list.conversation_id {
            Some(id) => self.settled(|| store.snapshot(viewer)?.conversation_alone(id)),
            None => store
                .snapshot(viewer)?
                .conversations(list.limit, list.cursor, list.archived),
        };
        page.map(|page| {
            let shown = page.conversations.into_iter().map(views::conversation);
            json!({
                "conversations": shown.collect::<Vec<_>>(),
                "next_cursor": page.next.map(|cursor| cursor.0),
            })
        })
    }

    /// A page of the messages of a conversation: of those that are shown, or of the others.
    pub(super) fn page_of_messages(&self, viewer: &Viewer, get: &GetMessages) -> Result<Value> {
        let (id, limit, before) = (get.conversation_id, get.limit, get.before);
        if let Some(around) = get.around {
            let (page, has_newer) =
                self.settled(|| (self.store.snapshot(viewer)?).messages_around(id, limit, around))?;
            let messages: Vec<_> = page.messages.into_iter().map(views::message).collect();
            return Ok(json!({
                "messages": messages,
                "has_more": page.has_more,
                "has_more_before": page.has_more,
                "has_more_after": has_newer,
            }));
        }
        let page = self.settled(|| {
            let seen = self.store.snapshot(viewer)?;
            match get.hidden {
                true => seen.hidden_messages(id, limit, before),
                false => seen.messages(id, limit, before),
            }
        })?;
        let messages: Vec<_> = page.messages.into_iter().map(views::message).collect();
        Ok(json!({ "messages": messages, "has_more": page.has_more }))
    }

    /// Gives a conversation another title.
    pub(super) fn rename(&self, viewer: &Viewer, id: ConversationId, title: &str) -> Result<Value> {
        let title = label(title);
        if title.is_empty() {
            return Err(Error::refused("error.title_empty", &[]));
        }
        let readers = self.store.rename_conversation(viewer, id, &title)?;
        self.hub.publish_title(id, readers, title.clone());
        Ok(json!({ "conversation_id": id, "title": title }))
    }

    /// Changes how the caller keeps a conversation, or what its owner may choose for all.
    pub(super) fn update_conversation(
        &self,
        caller: &Caller<'_>,
        update: UpdateConversation,
    ) -> Result<Value> {
        let viewer = &caller.identity.viewer();
        self.check_model(caller.identity, update.model.as_deref())?;
        if update
            .instructions
            .as_ref()
            .is_some_and(|text| !text.is_empty())
        {
            self.check_unlimited(caller.identity, "error.limited.instructions")?;
        }
        let is_kept_anew = update.pinned.is_some() || update.archived.is_some();
        let is_for_all = update.model.is_some() || update.instructions.is_some();
        let change = ConversationChange {
            pinned: update.pinned,
            archived: update.archived,
            model: update.model,
            instructions: update.instructions,
        };
        let id = update.conversation_id;
        let (changed, readers) = self.store.change_conversation(viewer, id, change)?;
        if is_for_all {
            self.hub.publish_change(id, readers);
        } else if is_kept_anew {
            self.hub
                .publish_marks(id, (caller.identity.user_id, caller.connection), readers);
        }
        Ok(json!(views::conversation(changed)))
    }

    /// Notes that the caller has seen all of a conversation.
    pub(super) fn mark_read(&self, caller: &Caller<'_>, id: ConversationId) -> Result<Value> {
        let news = self.store.mark_read(&caller.identity.viewer(), id)?;
        if let Some(readers) = news {
            self.hub
                .publish_marks(id, (caller.identity.user_id, caller.connection), readers);
        }
        Ok(json!({ "conversation_id": id }))
    }

    /// Checks that the configuration does not limit a person who would choose how they are
    /// answered.
    ///
    /// # Errors
    /// `unauthorized`.
    fn check_unlimited(&self, identity: &Identity, refused: &'static str) -> Result<()> {
        let config = self.settings.current();
        match config.person(&identity.user) {
            Some(person) if person.is_limited() => {
                let limited = Said::of(refused, &[("name", &identity.user)]);
                Err(Error::unauthorized(limited))
            }
            _ => Ok(()),
        }
    }

    /// Checks that this person may choose this model.
    ///
    /// # Errors
    /// `invalid_request`, with those that people may; `unauthorized` for who is limited.
    pub(super) fn check_model(&self, identity: &Identity, model: Option<&str>) -> Result<()> {
        let config = self.settings.current();
        if model.is_some_and(|model| !model.is_empty() && model != config.model) {
            self.check_unlimited(identity, "error.limited.model")?;
        }
        let may = |model: &str| {
            model.is_empty()
                || config.models.is_empty()
                || model == config.model
                || config.models.iter().any(|one| one == model)
        };
        match model {
            Some(model) if !may(model) => {
                let fields = [("model", model), ("models", &config.models.join(", "))];
                Err(Error::refused("error.no_choice", &fields))
            }
            _ => Ok(()),
        }
    }

    /// Shows another version of a message.
    pub(super) fn select_version(&self, viewer: &Viewer, id: MessageId) -> Result<Value> {
        let changed = self.store.select_version(viewer, id)?;
        self.hub
            .publish_change(changed.conversation_id, changed.readers);
        Ok(json!({ "message_id": id, "conversation_id": changed.conversation_id }))
    }

    /// Deletes a message and the other one of its turn.
    pub(super) fn delete_message(&self, viewer: &Viewer, id: MessageId) -> Result<Value> {
        let changed = self.store.delete_message(viewer, id)?;
        self.hub.delete_turns(&changed.deleted);
        self.hub
            .publish_change(changed.conversation_id, changed.readers);
        Ok(json!({ "message_id": id, "conversation_id": changed.conversation_id }))
    }

    /// Deletes a conversation.
    pub(super) fn delete(&self, viewer: &Viewer, id: ConversationId) -> Result<Value> {
        let readers = self.store.delete_conversation(viewer, id)?;
        self.hub.delete(id, readers, &self.queue.conversations());
        Ok(json!({ "conversation_id": id }))
    }

    /// Changes who sees a conversation.
    pub(super) fn share(
        &self,
        who: &Identity,
        id: ConversationId,
        audience: &Audience,
    ) -> Result<Value> {
        check_audience(who, audience)?;
        let (viewer, by) = (&who.viewer(), who.user.as_str());
        // The hub must learn of two shares in the order of their commits.
        let _order = lock(&self.sharing);
        let before = self
            .settled(|| self.store.snapshot(viewer)?.conversation(id))?
            .readers;
        let shared = self.store.share_conversation(viewer, id, audience)?;
        log::info!("{id}: {by} changed who sees it");
        let (owner, audience) = (&shared.owner, &shared.audience);
        let view = json!({ "conversation_id": id, "owner": owner, "audience": audience });
        self.publish_shared(before, shared, by);
        Ok(view)
    }

    /// Tells those who saw a conversation before, and those who see it now, who owns and who
    /// sees it now.
    pub(super) fn publish_shared(&self, before: Readers, shared: Conversation, by: &str) {
        let (owner, audience) = (shared.owner, shared.audience);
        let kind = EventKind::ConversationShared { owner, audience };
        let busy = self.queue.conversations();
        self.hub
            .share(shared.id, before, shared.readers, &busy, kind);
        self.end_turns_of_former_readers(shared.id, by);
    }

    /// Ends the turns of a conversation whose askers do not see it any longer: they get
    /// no answer, and are asked for nothing. What is not ended here ends at its next step.
    fn end_turns_of_former_readers(&self, id: ConversationId, by: &str) {
        let ended = self
            .server_snapshot()
            .and_then(|seen| seen.turns_of_former_readers(id))
            .and_then(|turns| {
                let mut turns = turns.into_iter();
                turns.try_for_each(|turn| self.stop(turn, by).map(drop))
            });
        if let Err(error) = ended {
            log::warn!("{id}: a turn of somebody who no longer sees it goes on: {error}");
        }
    }

    /// Gives the conversations of webhook accounts the audience that the configuration
    /// says.
    pub fn apply_account_audiences(&self) {
        let _order = lock(&self.sharing);
        match self.store.set_account_audiences(self.account_audiences()) {
            Ok(changed) => self.publish_reshared(changed),
            Err(error) => log::warn!("audiences of webhook accounts: {error}"),
        }
    }

    /// Corrects what the last run has left, and the same.
    pub(super) fn settle(&self) -> Result<()> {
        let changed = self.store.settle(self.account_audiences())?;
        self.publish_reshared(changed);
        Ok(())
    }

    fn account_audiences(&self) -> Vec<(String, Audience)> {
        let config = self.settings.current();
        let accounts = config.webhook_accounts();
        accounts
            .map(|account| (account.name.clone(), account.audience.clone()))
            // It has no conversations of its own, only senders.
            .chain(
                config
                    .telegram()
                    .map(|_| (TELEGRAM.to_owned(), Audience::Household)),
            )
            .collect()
    }

    fn publish_reshared(&self, changed: Vec<Reshared>) {
        // A turn that began before the commit is either not queued yet, and then
        // `has_turn`, or it is queued now, or all its events are published.
        let mut busy = self.queue.conversations();
        let with_turn = changed.iter().filter(|one| one.has_turn);
        busy.extend(with_turn.map(|one| one.conversation_id));
        let mut known = self.hub.conversations();
        known.extend(&busy);
        // Nobody has heard of the others, and none of their turns holds readers.
        for one in changed {
            let (id, has_turn) = (one.conversation_id, one.has_turn);
            if known.contains(&id) {
                let kind = EventKind::ConversationShared {
                    owner: None,
                    audience: one.audience,
                };
                (self.hub).share(id, one.before, one.now, &busy, kind);
            }
            if has_turn {
                self.end_turns_of_former_readers(id, "the configuration");
            }
        }
    }
}
