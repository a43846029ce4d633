//! Approvals of tool calls: decided by a person who may, or by time.
//!
//! An approval is seen by the person who asked and by admins. Admins may answer it,
//! and the person who asked, where `approves` in `people.NAME` has the tool. It ends when that
//! person may not do what they asked for any more.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Service;
use super::views;
use agent::tools::permission;
use agent::tools::wording::{self, Approver, Wording};
use agent::tools::{Arguments, check_arguments};
use base::error::{Code, Error, Result};
use base::ids::ApprovalId;
use base::language::Words;
use base::visible::one_line;
use config::{Grantee, Permission};
use protocol::command::Remember;
use protocol::record;
use store::{
    Approval, BY_HEARTH, Decision, Durable, Identity, Readers, SCHEDULE_CHANNEL, Turn, UserRole,
    Verdict, Viewer,
};

/// The decider on record when nobody decided in time.
pub(super) const BY_TIME: &str = "timeout";

impl Service {
    /// The waiting approvals that this person sees.
    pub(super) fn list_approvals(&self, identity: &Identity) -> Result<Value> {
        let waiting = self.waiting_approvals(identity)?;
        Ok(views::records("approvals", waiting))
    }

    /// The calls that wait for a decision, as far as somebody sees them.
    pub(super) fn waiting_approvals(&self, identity: &Identity) -> Result<Vec<record::Approval>> {
        let waiting = self
            .store
            .snapshot(&identity.viewer())?
            .waiting_approvals()?;
        let words = self.store.words_of(identity.user_id);
        let shown = |approval: &Approval| record::Approval {
            may_answer: Some(self.may_answer(approval, identity)),
            ..self.shown(approval, approval.user_id == Some(identity.user_id), words)
        };
        Ok(waiting.iter().map(shown).collect())
    }

    /// Allows a waiting call. `always` is written to the configuration first, so that
    /// a failure to write leaves the call undecided.
    pub(super) fn approve(
        &self,
        id: ApprovalId,
        remember: Remember,
        by: &Identity,
    ) -> Result<Value> {
        let approval = self.answerable(id, by)?;
        let verdict = match remember {
            Remember::Once => Verdict::ApprovedOnce,
            Remember::Conversation => Verdict::ApprovedConversation,
            Remember::Always => {
                self.allow_always(&approval)?;
                Verdict::ApprovedAlways
            }
        };
        self.decide_for(id, verdict, by)
    }

    /// Refuses a waiting call.
    pub(super) fn deny(&self, id: ApprovalId, by: &Identity) -> Result<Value> {
        self.answerable(id, by)?;
        self.decide_for(id, Verdict::Denied, by)
    }

    /// The decision of a person, who reads what they have decided in their own words.
    fn decide_for(&self, id: ApprovalId, verdict: Verdict, by: &Identity) -> Result<Value> {
        let decided = self.decide(id, verdict, &by.user)?;
        let words = self.store.words_of(by.user_id);
        Ok(json!(self.shown(&decided, false, words)))
    }

    /// An approval that this person may answer.
    ///
    /// # Errors
    /// `not_found` where they do not see it; `unauthorized`.
    fn answerable(&self, id: ApprovalId, by: &Identity) -> Result<Approval> {
        let approval = self.store.snapshot(&by.viewer())?.approval(id)?;
        if !self.may_answer(&approval, by) {
            let tool = &approval.tool;
            let key = match by.scope.tools {
                Some(_) => "error.token_approvals",
                None => "error.admin_answers",
            };
            return Err(Error::worded(Code::Unauthorized, key, &[("tool", tool)]));
        }
        Ok(approval)
    }

    /// A token that is narrowed to some tools would have others run.
    pub(super) fn may_answer(&self, approval: &Approval, by: &Identity) -> bool {
        let arguments: Arguments = serde_json::from_str(&approval.arguments).unwrap_or_default();
        let needed = permission::needed(&approval.tool, &arguments);
        if approval.user_id == Some(by.user_id) {
            self.may_permit_own(&needed, &arguments, by)
        } else {
            by.scope.tools.is_none() && by.role >= UserRole::Admin
        }
    }

    /// Whether this person may answer for themselves what needs these tools.
    pub(super) fn may_permit_own(
        &self,
        needed: &[&str],
        arguments: &Arguments,
        by: &Identity,
    ) -> bool {
        let assistant = self.assistant();
        let (config, toolbox) = (&assistant.config, &assistant.toolbox);
        let may_own =
            |tool: &&str| permission::may_answer_own(config, &by.user, toolbox, tool, arguments);
        by.scope.tools.is_none() && (by.role >= UserRole::Admin || needed.iter().all(may_own))
    }

    /// Refuses calls that nobody decided in time.
    pub(super) fn expire_approvals(&self) -> Result<()> {
        let expired = self.store.expired_approvals(self.clock.now())?;
        // Deciding one waits for its commit.
        for id in expired.uncommitted() {
            self.decide(id, Verdict::Expired, BY_TIME)?;
        }
        Ok(())
    }

    /// Refuses the calls that wait for an answer, and would not run any more if it were yes:
    /// whoever asked was narrowed or removed, made a guest, unlinked the sender, or does not see
    /// the conversation.
    pub(super) fn end_lost_questions(&self) {
        for id in self
            .logged("approvals", self.lost_questions())
            .into_iter()
            .flatten()
        {
            self.logged("approvals", self.decide(id, Verdict::Denied, BY_HEARTH));
        }
    }

    fn lost_questions(&self) -> Result<Vec<ApprovalId>> {
        let seen = self.server_snapshot()?;
        let undecided = seen.undecided_approvals()?;
        if undecided.is_empty() {
            return Ok(Vec::new());
        }
        let assistant = self.assistant();
        let mut lost = Vec::new();
        for (approval, is_seen) in &undecided {
            let turn = seen.turn(approval.turn_id)?;
            if !is_seen || !agent::turn::would_run(&assistant, &turn, approval, &seen)? {
                lost.push(approval.id);
            }
        }
        Ok(lost)
    }

    /// Permits the tool to whoever asked, and to nobody else.
    fn allow_always(&self, approval: &Approval) -> Result<()> {
        let id = approval.id;
        if approval.decision.is_some() {
            let fields = [("id", &*id.to_string())];
            return Err(Error::refused("error.decided_already", &fields));
        }
        let config = self.settings.current();
        let person = approval.user_id.and(approval.requested_by.as_deref());
        let (grantee, mode, field) = match (person, &approval.account) {
            (Some(person), _) => {
                let own = config.person(person);
                let mode = own.and_then(|person| person.permission_mode);
                (Grantee::Person(person), mode, "people")
            }
            (None, Some(account)) => {
                let mode = config.existing_account(account)?.permission_mode;
                (Grantee::Account(account), mode, "channels")
            }
            (None, None) => return Err(Error::refused("error.once_only", &[])),
        };
        if mode.is_some_and(|mode| mode != Permission::Allow) {
            let name = approval.requested_by.as_deref().unwrap_or_default();
            return Err(Error::refused("error.mode_stays", &[("name", name)]));
        }
        let tool = &approval.tool;
        let permission = match grantee {
            Grantee::Person(_) => permission::lasting(tool),
            Grantee::Account(_) => Permission::Allow,
        };
        self.settings.permit_tool_to(grantee, tool, permission)?;
        self.config_changed(&[field.to_owned()]);
        Ok(())
    }

    /// Stores a decision about a waiting call, publishes it and resumes the turn.
    fn decide(&self, id: ApprovalId, verdict: Verdict, by: &str) -> Result<Approval> {
        let decision = Decision {
            verdict,
            by: by.to_owned(),
        };
        let decided = self.store.decide(id, decision.clone())?;
        self.publish_decision(&decided.approval, &decision);
        if decided.resumes {
            self.queue
                .resume(decided.approval.turn_id, decided.approval.conversation_id);
        }
        Ok(decided.approval)
    }

    /// An approval in words: as the person who asked may read it, with what they see, or as
    /// admins may, who are asked, too.
    fn shown(&self, approval: &Approval, is_own: bool, words: Words) -> record::Approval {
        let assistant = self.assistant();
        let toolbox = &assistant.toolbox;
        let nobody = Readers::People([].into());
        let viewer = Viewer::readers_of(approval.conversation_id, &nobody);
        let viewer = match approval.user_id.filter(|_| is_own) {
            Some(asker) => viewer.asked_by(Some(asker), None),
            None => viewer.household_only(),
        };
        let tool = toolbox.get(&approval.tool);
        let arguments = match tool.map(|tool| check_arguments(tool.spec(), &approval.arguments)) {
            Some(Ok(arguments)) => arguments.into(),
            _ => views::arguments(&approval.arguments),
        };
        let tool = tool.map(Arc::as_ref);
        let approver = Approver {
            words,
            store: &self.store,
            viewer: &viewer,
        };
        let wording = Wording::of(&approval.tool, tool, &arguments, &approver);
        // What a call was about may be gone once it has run.
        let reason = match approval.decision {
            None => wording.question(words, wording::widens(&approval.reason)),
            Some(_) => approval.reason.clone(),
        };
        let covers = views::covers(approval, words);
        let said = record::ApprovalWords {
            origin: origin(approval, words),
            after: (approval.is_outside).then(|| after(&approval.outside_sources, words)),
            details: wording.details,
            answers: answers(approval, covers.as_deref(), &wording.label, words),
            label: wording.label,
        };
        views::approval(approval, reason, covers, said)
    }

    /// A question as a chat shows it.
    pub(super) fn question_in_chat(
        &self,
        approval: &Approval,
        is_own: bool,
        words: Words,
    ) -> String {
        let shown = self.shown(approval, is_own, words);
        let words = shown.words;
        let origin: Vec<String> = [Some(words.origin), words.after]
            .into_iter()
            .flatten()
            .collect();
        let details = words.details.into_iter();
        let details = details.map(|detail| format!("{}: {}", detail.label, detail.text));
        let details: Vec<String> = details.collect();
        let parts = [shown.reason, origin.join(" · "), details.join("\n")];
        parts.join("\n\n").trim_end().to_owned()
    }

    /// Publishes the tool calls for which a turn waits.
    pub(super) fn publish_requests(&self, turn: &Turn, approvals: &Durable<Vec<Approval>>) {
        let languages = self.store.languages();
        (self.hub).publish_requests(turn, approvals, &languages, |one, is_own, words| {
            self.shown(one, is_own, words)
        });
    }

    pub(super) fn publish_decision(&self, approval: &Approval, decision: &Decision) {
        log::info!(
            "{}: tool {} {} by {}",
            approval.turn_id,
            approval.tool,
            decision.verdict.as_str(),
            decision.by
        );
        let viewer = Viewer::server();
        let readers = match self
            .store
            .snapshot(&viewer)
            .and_then(|seen| seen.conversation(approval.conversation_id))
        {
            Ok(conversation) => conversation.readers,
            // Admins hear of it in any case.
            Err(_) => Readers::People([].into()),
        };
        self.hub.publish_decision(approval, decision, readers);
    }
}

/// Who asks, and through what.
fn origin(approval: &Approval, words: Words) -> String {
    let person = approval.called.as_deref().map(one_line);
    let person = person.unwrap_or_else(|| words.word("approval.somebody"));
    let channel = approval.channel.split_once(':');
    let (key, account) = match (approval.channel.as_str(), channel) {
        (_, Some(("webhook", account))) => ("approval.asks.webhook", one_line(account)),
        (_, Some(("sender" | "outside_sender", account))) => {
            ("approval.asks.sender", one_line(account))
        }
        (SCHEDULE_CHANNEL, _) => ("approval.asks.schedule", String::new()),
        ("openai_api" | "ollama_api", _) => ("approval.asks.program", String::new()),
        ("mcp", _) => ("approval.asks.assistant", String::new()),
        _ => ("approval.asks", String::new()),
    };
    words.say(key, &[("person", &person), ("account", &account)])
}

/// After which text from outside a question comes.
fn after(sources: &str, words: Words) -> String {
    let said = sources.lines().map(|source| {
        let (kind, name) = source.split_once(' ').unwrap_or((source, ""));
        words.say(&format!("outside.{kind}"), &[("name", &one_line(name))])
    });
    let said: Vec<String> = said.collect();
    match said[..] {
        [] => words.word("approval.after_something"),
        _ => words.say("approval.after", &[("sources", &words.list(&said))]),
    }
}

/// The answers to a question: those that would not hold are none.
fn answers(
    approval: &Approval,
    covers: Option<&str>,
    tool: &str,
    words: Words,
) -> Vec<record::Answer> {
    let may_last = approval.may_last && covers.is_some();
    let person = one_line(covers.unwrap_or_default());
    let said = [
        ("once", "answer.once", "answer.once.means"),
        (
            "conversation",
            "answer.conversation",
            "answer.conversation.means",
        ),
        ("always", "answer.always", "answer.always.means"),
        ("deny", "answer.deny", "answer.deny.means"),
    ];
    let is_there = |(answer, ..): &(&str, _, _)| may_last || ["once", "deny"].contains(answer);
    let answer = |(answer, label, sentence)| record::Answer {
        answer,
        label: words.word(label),
        sentence: words.say(sentence, &[("person", &person), ("tool", tool)]),
    };
    said.into_iter().filter(is_there).map(answer).collect()
}
