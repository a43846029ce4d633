//! The tool calls of one reply: each is run, refused, or waits for the owner's
//! approval.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use super::asker::{Asker, grantee};
use super::history::History;
use super::turn_context::{Stop, TurnContext};
use super::{Progress, TurnLoop, query};
use crate::model::fence::PROGRAM_CHANNELS;
use crate::model::{ModelReply, make_call_id};
use crate::parallel::run_parallel;
use crate::tools::output::MAX_RESULT_CHARS;
use crate::tools::permission::{self, Circumstances, MOST_CARRIED, Reach};
use crate::tools::wording::{Approver, Wording};
use crate::tools::{
    Origin, READ_FILE, ResultDetails, Start, Tool, ToolContext, check_arguments, output,
    unknown_tool,
};
use base::error::{Code, Result};
use base::ids::TurnId;
use base::language::Words;
use config::{FIND_TOOLS, Permission};
use store::{
    Approval, Attachment, BY_HEARTH, Durable, IncludedFile, NewApproval, Snapshot, Step, ToolCall,
    UploadLimits, Viewer, is_watched_call, open_calls,
};

/// Most tools that run in parallel within one turn.
const MOST_AT_A_TIME: usize = 4;
/// Most calls of one reply that run.
const MAX_CALLS: usize = 128;
/// Bytes of a tool's result that subscribers are shown.
const SUMMARY_BYTES: usize = 200;

/// What the model reads of a tool that whoever asks does not have.
const NOT_PERMITTED: &str = "this tool is not permitted here";

/// What to do about one call.
enum CallDecision {
    Run(Arc<dyn Tool>, Map<String, Value>),
    Refuse(String),
    /// Ask a person.
    Ask {
        /// What.
        reason: String,
        /// Whether the answer can cover later calls.
        may_last: bool,
    },
}

/// A call that gets its result now: from its tool, or the reason why it is refused.
type Settled<'a> = (ToolCall, std::result::Result<Runnable<'a>, String>);
/// A tool that only reads, and what it runs with.
type Runnable<'a> = (Arc<dyn Tool>, Map<String, Value>, ToolContext<'a>);

impl<'a> TurnLoop<'a, '_> {
    /// Adds a reply with calls, and gives each call an id of the server's own: what
    /// is decided about a call must hold for no other, whatever ids a model makes up.
    pub(super) fn add_calls(&mut self, mut reply: ModelReply, history: &History<'_>) {
        let are_too_many = reply.calls.len() > MAX_CALLS;
        reply.calls.truncate(MAX_CALLS);
        for place in 0..reply.calls.len() {
            let (earlier, rest) = reply.calls.split_at_mut(place);
            let call = &mut rest[0];
            let in_steps = self.steps.iter().flat_map(Step::calls);
            let known = || in_steps.clone().chain(earlier.iter());
            let is_known = |id: &str| {
                known().any(|call| call.id == id || call.provider_id.as_deref() == Some(id))
            };
            let mut id = make_call_id();
            while is_known(&id) {
                id = make_call_id();
            }
            let provider_id = std::mem::replace(&mut call.id, id);
            // Some models count from one again in each reply.
            call.provider_id = (!is_known(&provider_id)).then_some(provider_id);
        }
        for call in &reply.calls {
            let viewer = self.run.viewer();
            let arguments = serde_json::from_str(&call.arguments).unwrap_or_default();
            let run = self.run;
            let said = |words| wording(run, words, &call.tool, &arguments, &viewer);
            (self.observe)(Progress::ToolCall(call, &said));
        }
        let chars = history.token_budget().result_chars;
        self.add(Step::Reply {
            text: reply.text,
            calls: reply.calls,
            result_chars: (chars < MAX_RESULT_CHARS).then_some(chars),
            extra: reply.extra,
        });
        if are_too_many {
            self.note(format!("Only the first {MAX_CALLS} calls of a reply run."));
        }
    }

    /// Gives every open call of the last reply its result, in their order.
    /// Read-only tools run in parallel; a tool with an effect runs alone. Calls that
    /// need an approval come last: the turn is suspended for them.
    pub(super) fn settle_calls(
        &mut self,
        approvals: &[Approval],
        history: &History<'_>,
    ) -> Result<Option<Durable<Vec<Approval>>>, Stop> {
        let mut questions = Vec::new();
        let mut together: Vec<Settled<'a>> = Vec::new();
        let open = open_calls(&self.steps).into_iter();
        let (of_program, open): (Vec<_>, Vec<_>) = open.partition(|call| self.is_of_program(call));
        for call in open {
            self.check_stop()?;
            match self.decide(&call, approvals, history)? {
                CallDecision::Refuse(why) => together.push((call, Err(why))),
                CallDecision::Run(tool, arguments) => {
                    match Start::of_read_only(tool.definition()) {
                        Some(start) => {
                            let context = self.tool_context(start, tool.as_ref());
                            together.push((call, Ok((tool, arguments, context))));
                        }
                        None => {
                            self.run_read_only(std::mem::take(&mut together))?;
                            self.run_alone(&call, tool.as_ref(), &arguments)?;
                        }
                    }
                }
                CallDecision::Ask { reason, may_last } => questions.push(NewApproval {
                    reason,
                    call_id: call.id,
                    tool: call.tool,
                    arguments: call.arguments,
                    is_outside: self.is_outside,
                    outside_sources: history.outside_sources(&self.steps),
                    may_last,
                }),
            }
        }
        self.run_read_only(together)?;
        if questions.is_empty() {
            self.run_by_program(&of_program)?;
            self.save()?;
            return Ok(None);
        }
        let run = self.run;
        let wait = Duration::from_secs(run.assistant.config.limits.approval_seconds);
        let unsaved = self.take_unsaved();
        let expires_at = run.clock.now().plus(wait);
        Ok(Some(run.store.suspend_turn(
            run.turn.id,
            unsaved,
            self.audience,
            questions,
            expires_at,
        )?))
    }

    fn decide(
        &mut self,
        call: &ToolCall,
        approvals: &[Approval],
        history: &History<'_>,
    ) -> Result<CallDecision, Stop> {
        let run = self.run;
        let was_started = self
            .steps
            .iter()
            .any(|step| matches!(step, Step::Started { call_id } if *call_id == call.id));
        let find = self.offer.find().filter(|_| call.tool == FIND_TOOLS);
        let tool = run.assistant.toolbox.get(&call.tool).or(find.as_ref());
        let is_of_program = PROGRAM_CHANNELS.contains(&&*run.turn.channel) && tool.is_none();
        if was_started && is_of_program && run.program.is_none() {
            // The server has stopped since. What the program returns later is added then.
            return Err(Stop::Left);
        }
        // Whatever has become of its tool since.
        if was_started {
            return Ok(CallDecision::Refuse(
                "the server was interrupted while this ran: it may or may not have taken effect"
                    .to_owned(),
            ));
        }
        let Some(tool) = tool else {
            let mut offered = self.asker.actor(run).offered(&run.assistant.toolbox);
            offered.extend(run.program.iter().flat_map(|one| one.tools().to_vec()));
            return Ok(CallDecision::Refuse(unknown_tool(&call.tool, &offered)));
        };
        if call.is_withdrawn() {
            return Ok(CallDecision::Refuse(
                "more people see the conversation now: if this is still wanted, call it again"
                    .to_owned(),
            ));
        }
        let arguments = match check_arguments(tool.spec(), &call.arguments) {
            Ok(arguments) => arguments,
            Err(why) => return Ok(CallDecision::Refuse(why)),
        };
        if is_watched_call(&call.id) && !tool.definition().is_read_only {
            let refused = "a routine watches only what is read, and this tool does more";
            return Ok(CallDecision::Refuse(refused.to_owned()));
        }
        if let Some(find) = find {
            // It finds nothing that whoever asks may not have.
            self.searches.extend(query(&call.arguments));
            return Ok(CallDecision::Run(find, arguments));
        }
        let seen = run.store.snapshot(&run.viewer())?;
        // Who asked may have been removed while the call before ran, or made a guest.
        self.asker = Asker::of(run.turn, run.message.speaker.as_deref(), &seen)?;
        let actor = self.asker.actor(run);
        // Who may not forget may not replace either.
        let needed = permission::needed(&call.tool, &arguments);
        let toolbox = &run.assistant.toolbox;
        let needed = || needed.iter().filter_map(|name| toolbox.get(name));
        let asked = approvals.iter().find(|approval| approval.is_for(call));
        let decision = asked.and_then(|approval| approval.decision.as_ref());
        let (mut widens, mut may_last) = (false, true);
        let permission = match decision {
            Some(decision) if decision.verdict.is_approval() => {
                actor.once_allowed(&call.tool, &arguments, toolbox)
            }
            Some(decision) if decision.by == BY_HEARTH => {
                let refused = "whoever asked may not do this any more";
                return Ok(CallDecision::Refuse(refused.to_owned()));
            }
            Some(decision) => {
                return Ok(CallDecision::Refuse(format!(
                    "the owner did not allow this ({} by {})",
                    decision.verdict.as_str(),
                    decision.by
                )));
            }
            None => {
                let (user, account) = grantee(run);
                let conversation = run.turn.conversation_id;
                let config = &run.assistant.config;
                let address = tool.asked_address(&arguments, config);
                let carries_much = self.is_outside
                    && permission::carries(tool.definition())
                    && self.carried_until(call) > MOST_CARRIED;
                let carries_out = carries_much
                    || address.is_some_and(|one| {
                        self.addresses_until(call) > config.tools.web_fetch.addresses_per_turn
                            || !history.has(&one, &self.steps)
                    });
                if let Some(memory) = permission::replaced(&call.tool, &arguments) {
                    widens = seen.is_seen_by_more(memory, self.audience)?;
                }
                let reach = match user {
                    Some(_) => Reach::of(&call.tool, &arguments),
                    None => Reach::Others,
                };
                let may_cover = user.is_none() || permission::may_last(&call.tool, reach);
                let mut permissions = Vec::new();
                for tool in needed() {
                    let name = &tool.spec().name;
                    let circumstances = Circumstances {
                        is_granted: may_cover
                            && seen.is_granted(conversation, name, user, account)?,
                        is_outside: self.is_outside,
                        carries_out,
                        widens,
                        reach,
                    };
                    permissions.push(actor.decide(tool.definition(), circumstances));
                    let later = Circumstances {
                        is_granted: may_cover,
                        ..circumstances
                    };
                    may_last &= actor.decide(tool.definition(), later) == Permission::Allow;
                }
                permission::least(permissions)
            }
        };
        drop(seen);
        Ok(match permission {
            Permission::Allow => CallDecision::Run(Arc::clone(tool), arguments),
            Permission::Ask | Permission::AllowOwn => {
                // Admins are asked, too, who may not see what the person sees.
                let viewer = run.viewer().household_only();
                let words = self.asker.words();
                let wording = wording(run, words, &call.tool, &arguments.into(), &viewer);
                let reason = wording.question(words, widens);
                CallDecision::Ask { reason, may_last }
            }
            Permission::Deny => CallDecision::Refuse(NOT_PERMITTED.to_owned()),
        })
    }

    /// The calls of this turn, the last of which is this one.
    fn calls_until<'b>(&'b self, call: &'b ToolCall) -> impl Iterator<Item = &'b ToolCall> {
        let calls = self.steps.iter().flat_map(Step::calls);
        calls.take_while(|one| one.id != call.id).chain([call])
    }

    /// How many bytes the calls of this turn take along, this one included, so that nothing is
    /// carried out in pieces. What was too much alone was asked for.
    fn carried_until(&self, call: &ToolCall) -> usize {
        let toolbox = &self.run.assistant.toolbox;
        let counts = |one: &&ToolCall| {
            let tool = toolbox.get(&one.tool);
            let is_asked = one.id != call.id && one.arguments.len() > MOST_CARRIED;
            !is_asked && tool.is_some_and(|tool| permission::carries(tool.definition()))
        };
        let calls = self.calls_until(call).filter(counts);
        calls.map(|one| one.arguments.len()).sum()
    }

    /// How many addresses outside the calls of this turn have asked, this one included. Going
    /// back to an earlier one counts: the order can carry something out, too.
    fn addresses_until(&self, call: &ToolCall) -> usize {
        let assistant = self.run.assistant;
        let asked = self.calls_until(call).filter_map(|one| {
            let tool = assistant.toolbox.get(&one.tool)?;
            let arguments = check_arguments(tool.spec(), &one.arguments).ok()?;
            Some(tool.asked_address(&arguments, &assistant.config)?.url)
        });
        let mut addresses: Vec<String> = asked.collect();
        addresses.dedup();
        addresses.len()
    }

    fn tool_context(&self, start: Start, tool: &dyn Tool) -> ToolContext<'a> {
        let run = self.run;
        let actor = self.asker.actor(run);
        let elsewhere = Circumstances {
            is_granted: true,
            is_outside: self.is_outside,
            carries_out: self.is_outside,
            ..Circumstances::default()
        };
        ToolContext {
            start,
            store: run.store,
            config: &run.assistant.config,
            embedder: run.assistant.embedder.as_deref(),
            clock: run.clock,
            viewer: run.viewer(),
            conversation_id: Some(run.turn.conversation_id),
            turn_id: Some(run.turn.id),
            channel: &run.turn.channel,
            account: run.turn.account.as_deref(),
            speaker: run.message.speaker.as_deref(),
            user_id: run.turn.user_id,
            is_narrowed: actor.is_narrowed_person() || run.turn.is_household_only,
            reminds_alone: run.turn.is_household_only,
            stays_on_host: actor.decide(tool.definition(), elsewhere) != Permission::Allow,
            is_outside: self.is_outside,
            details: ResultDetails::of(tool.definition()),
            deadline: run.deadline,
            cancel: run.cancel,
            data_dir: run.data_dir,
            pdfs: &run.assistant.pdfs,
        }
    }

    /// Runs read-only tools in parallel and adds all results in the order of the
    /// calls.
    fn run_read_only(&mut self, calls: Vec<Settled<'a>>) -> Result<(), Stop> {
        self.check_stop()?;
        let turn = self.run.turn.id;
        let results = run_parallel(calls.len(), MOST_AT_A_TIME, |number| {
            let (call, runnable) = &calls[number];
            let (tool, arguments, context) = runnable.as_ref().map_err(Clone::clone)?;
            run_tool(turn, call, tool.as_ref(), arguments, context)
        });
        for ((call, runnable), result) in calls.into_iter().zip(results) {
            let details = runnable.map(|(.., context)| context.into_details());
            self.add_result(&call, result, details.unwrap_or_default());
        }
        Ok(())
    }

    /// Runs a tool with an effect. Its start is on disk before, its result after.
    fn run_alone(
        &mut self,
        call: &ToolCall,
        tool: &dyn Tool,
        arguments: &Map<String, Value>,
    ) -> Result<(), Stop> {
        self.check_stop()?;
        let (store, turn) = (self.run.store, self.run.turn.id);
        let unsaved = self.take_unsaved();
        let count = unsaved.len();
        let call_id = call.id.clone();
        let (user, audience) = (grantee(self.run).0, self.audience);
        let started = match store.start_call(turn, user, unsaved, audience, call_id.clone()) {
            // Whoever asked may do nothing any more since this was decided.
            Err(error) if error.code() == Code::Unauthorized => {
                self.unsaved = count;
                let refused = Err(NOT_PERMITTED.to_owned());
                self.add_result(call, refused, ResultDetails::default());
                return Ok(());
            }
            started => started?,
        };
        self.steps.push(Step::Started { call_id });
        let context = self.tool_context(Start::stored(&started), tool);
        let result = run_tool(turn, call, tool, arguments, &context);
        let details = context.into_details();
        for change in &details.changes {
            (self.observe)(Progress::Changed(change));
        }
        self.add_result(call, result, details);
        self.save()
    }

    pub(super) fn add_result(
        &mut self,
        call: &ToolCall,
        result: std::result::Result<String, String>,
        details: ResultDetails,
    ) {
        let is_outside = details.origin == Origin::Outside;
        if is_outside {
            self.note_outside_text();
        }
        let ok = result.is_ok();
        let text = result.unwrap_or_else(|why| why);
        let toolbox = &self.run.assistant.toolbox;
        let tool = toolbox.get(&call.tool).map(|tool| tool.definition());
        // A memory that is forgotten must not live on in a copy.
        let is_kept = !tool.is_some_and(|tool| tool.is_private);
        let keep = |whole: &str| {
            let (is_outside, is_private) = (is_outside, details.is_private);
            is_kept
                .then(|| self.keep(whole, is_outside, is_private))
                .flatten()
        };
        let (mut content, page) = output::cap_result(text, details.page, keep);
        let files = self.keep_brought(details.files).unwrap_or_else(|why| {
            content.push_str(&format!("\n[what came with this is not kept: {why}]"));
            Vec::new()
        });
        let summary = content.floor_char_boundary(SUMMARY_BYTES);
        (self.observe)(Progress::ToolResult {
            call_id: &call.id,
            ok,
            summary: &content[..summary],
            needs_admin: details.needs_admin,
        });
        self.add(Step::Result {
            call_id: call.id.clone(),
            ok,
            content,
            outside: details.origin != Origin::Tool,
            private: details.is_private,
            memories: details.memories,
            files,
            page,
        });
    }

    /// Keeps what a tool brought, before the step that names it.
    ///
    /// # Errors
    /// Why not, for the model.
    fn keep_brought(
        &self,
        files: Vec<IncludedFile>,
    ) -> std::result::Result<Vec<Attachment>, String> {
        if files.is_empty() {
            return Ok(Vec::new());
        }
        let (store, turn) = (self.run.store, self.run.turn.id);
        let limits = &self.run.assistant.config.limits;
        let limits = UploadLimits {
            bytes: limits.attachment_bytes,
            total_bytes: limits.attachments_total_bytes,
            time: Duration::from_secs(limits.attachment_seconds),
        };
        let kept = store.keep_brought(turn, files, limits);
        kept.map_err(|error| {
            log::warn!("{turn}: what a tool brought is not kept: {error}");
            error.message().to_owned()
        })
    }

    /// Keeps a result for the tool that reads it on, if the model has that.
    fn keep(&self, whole: &str, is_outside: bool, is_private: bool) -> Option<String> {
        let run = self.run;
        let reader = run.assistant.toolbox.get(READ_FILE)?.definition();
        if !self.asker.actor(run).may_use(reader) {
            return None;
        }
        let conversation = run.turn.conversation_id;
        let only = is_private.then_some(self.audience);
        match run.store.keep_result(conversation, whole, is_outside, only) {
            Ok(id) => id.map(|id| id.to_string()),
            Err(error) => {
                log::warn!("{}: a long result is not kept: {error}", run.turn.id);
                None
            }
        }
    }
}

/// A call in words for people.
fn wording(
    run: &TurnContext<'_>,
    words: Words,
    tool: &str,
    arguments: &Value,
    viewer: &Viewer,
) -> Wording {
    let known = run.assistant.toolbox.get(tool).map(Arc::as_ref);
    let approver = Approver {
        words,
        store: run.store,
        viewer,
    };
    Wording::of(tool, known, arguments, &approver)
}

/// Runs one tool. A panic counts as a failed call.
fn run_tool(
    turn: TurnId,
    call: &ToolCall,
    tool: &dyn Tool,
    arguments: &Map<String, Value>,
    context: &ToolContext<'_>,
) -> std::result::Result<String, String> {
    let began = Instant::now();
    Snapshot::none_open();
    let result = catch_unwind(AssertUnwindSafe(|| tool.run(arguments, context)))
        .unwrap_or_else(|_| Err(format!("the tool {:?} failed inside the server", call.tool)));
    log::info!(
        "{turn}: tool {} {} in {} ms",
        call.tool,
        if result.is_ok() { "ran" } else { "failed" },
        began.elapsed().as_millis()
    );
    result
}
