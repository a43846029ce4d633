//! What a run of a turn shows the model of its conversation, fitted into the token budget.
//!
//! Messages stay on disk whole: only the model's view of them is folded.

use std::cell::Cell;
use std::collections::HashSet;
use std::time::Duration;

use super::asker::Asker;
use super::turn_context::TurnContext;
use crate::model::estimate;
use crate::model::estimate::tool_tokens;
use crate::model::fence::{is_outside, is_untrusted};
use crate::model::servers::Candidate;
use crate::model::{Takes, ToolSpec};
use crate::prompt::fit::{TokenBudget, WHOLE_TURNS, fit, is_comfortable};
use crate::prompt::memories::share;
use crate::prompt::system::{MOST_PEOPLE, SystemPrompt};
use crate::prompt::{Context, PromptInput};
use crate::tools::output::MAX_RESULT_CHARS;
use crate::tools::permission::Circumstances;
use crate::tools::{Address, Offer, READ_SKILL};
use base::error::Result;
use base::ids::{AudienceId, MemoryId, TurnId};
use base::people::UserRole;
use config::Permission;
use store::{Memory, Message, Past, Purpose, ShownAs, Step, Vector, WantedPast, show_name};

/// Most sources of text from outside that a question names.
const MOST_SOURCES: usize = 3;
/// Most turns of the past that are read and shown.
const MOST_TURNS: usize = 400;
/// Most bytes of the past that are read for each token of the budget: more than
/// any text needs.
const BYTES_PER_TOKEN: usize = 8;
/// Bytes of the past that are read however small the budget is, and however
/// large.
const READ_BYTES: (usize, usize) = (64 * 1024, 8 * 1024 * 1024);
/// How often a model may reject what it is shown in one run: the last is a sixteenth.
const MOST_REFUSALS: u32 = 4;
/// Most tokens of the past that a reminder or routine is shown, by estimates: it comes when
/// no cache holds the conversation any more, and says itself what it is about.
const ROUTINE_PAST: usize = 1_000;
/// Most bytes of the memories of one, beside those that fit it.
const ROUTINE_MEMORIES: usize = 2_000;
/// After how long without a turn no service has the conversation in its cache.
const COLD: Duration = Duration::from_secs(60 * 60);
/// Fewest bytes of tools' results for which the past is shown in short then.
const WORTH_FOLDING: usize = 8 * 1024;
/// A smaller budget is of no use.
const LEAST_BUDGET: usize = 256;

/// Whether the model may be shown memories. A stranger's message gets them only if `recall`
/// needs no approval.
fn may_recall(asker: &Asker, run: &TurnContext<'_>) -> bool {
    let Some(tool) = run.assistant.toolbox.get("recall") else {
        return false;
    };
    let actor = asker.actor(run);
    match actor.decide(tool.definition(), Circumstances::default()) {
        Permission::Allow => true,
        Permission::Ask | Permission::AllowOwn => !is_untrusted(&run.turn.channel),
        Permission::Deny => false,
    }
}

/// What a run reads of the household before it asks the model, all as it was at one moment.
struct View {
    /// Who asks.
    asker: Asker,
    /// Who sees the conversation.
    audience: AudienceId,
    past: Past,
    /// Those that go with the message: what the model was shown with it before, or else what
    /// fits it and was not shown with an earlier one.
    memories: Vec<Memory>,
    /// Whether they were chosen now.
    is_chosen: bool,
    /// Whether the choice depends on what the message means.
    wants_vector: bool,
    people: Vec<(String, UserRole)>,
    /// The message; its speaker bears the display name.
    present: Message,
}

impl View {
    /// Reads it. `vector` is that of the message, once it was asked for.
    fn read(
        run: &TurnContext<'_>,
        budget: usize,
        may_choose: bool,
        vector: Option<Option<Vector>>,
    ) -> Result<View> {
        let turn = run.turn;
        let seen = run.store.snapshot(&run.viewer())?;
        let audience = seen.audience_of(turn)?.unwrap_or(turn.audience_id);
        let asker = Asker::of(turn, run.message.speaker.as_deref(), &seen)?;
        let may_recall = may_recall(&asker, run);
        let past = seen.past(turn.conversation_id, &wanted(budget, may_recall, false))?;
        let (mut memories, mut is_chosen, mut wants_vector) = (Vec::new(), false, false);
        if may_recall && (run.is_resumed || !may_choose) {
            memories = seen.shown_memories(turn.id)?;
        }
        let is_routine = run.purpose() == Purpose::Routine;
        let share = match is_routine {
            true => share(budget).min(ROUTINE_MEMORIES),
            false => share(budget),
        };
        // They may have been chosen for a model with a larger window.
        let others = memories.iter().filter(|one| one.shown_as != ShownAs::Match);
        let has_too_many = others.map(|one| one.content.len()).sum::<usize>() > share;
        if may_recall && (may_choose && memories.is_empty() || has_too_many) {
            is_chosen = may_choose;
            let may_ask = may_choose && vector.is_none() && run.assistant.embedder.is_some();
            wants_vector = may_ask && seen.has_many_memories(share)?;
            if !wants_vector {
                // A routine is shown hardly any of the past.
                let turns = past.turns.iter().filter(|_| !is_routine);
                let shown = turns.flat_map(|turn| &turn.memories);
                let shown: HashSet<MemoryId> = shown.map(|memory| memory.id).collect();
                let (message, vector) = (&run.message.content, vector.flatten());
                memories = seen.relevant_memories(message, vector.as_ref(), &shown, share)?;
            }
        }
        for memory in &mut memories {
            show_name(&mut memory.speaker, &past.names);
        }
        let mut present = run.message.clone();
        show_name(&mut present.speaker, &past.names);
        let people = match turn.account {
            // Whoever gets the reply may be anybody.
            Some(_) => Vec::new(),
            None => seen.household(MOST_PEOPLE)?,
        };
        Ok(View {
            asker,
            audience,
            past,
            memories,
            is_chosen,
            wants_vector,
            people,
            present,
        })
    }
}

/// The past of a conversation, for one run of one turn.
pub struct History<'a> {
    run: &'a TurnContext<'a>,
    /// The model that is shown it.
    pub model: Candidate<'a>,
    /// What is taken for the model's window.
    window: usize,
    /// Most tokens of a request, as the provider counts them.
    pub budget: usize,
    /// How many contexts the model has rejected as too long.
    refusals: u32,
    /// Whether only these show how large its window is.
    hides_window: bool,
    /// Whether the budget is a guess, because the model's server has not said its window.
    is_guess: bool,
    /// Who asks.
    pub asker: Asker,
    /// Who sees the conversation.
    pub audience: AudienceId,
    /// As it was read.
    pub past: Past,
    present: Message,
    memories: Vec<Memory>,
    /// The system prompt of this run.
    pub system_prompt: String,
    /// The uncorrected estimate of the newest context.
    sent: Cell<usize>,
}

impl<'a> History<'a> {
    /// Reads the past, and the memories that go with the message, if they may be shown.
    /// Unless the model has been asked before, it chooses these first.
    ///
    /// # Errors
    /// `not_found` where whoever asked does not see the conversation any longer; also when
    /// the database cannot be read.
    pub fn open(
        run: &'a TurnContext<'a>,
        model: Candidate<'a>,
        may_choose: bool,
    ) -> Result<History<'a>> {
        if run.is_resumed || !may_choose {
            // What this run has noted may not be committed yet.
            run.store.flush()?;
        }
        let config = &run.assistant.config;
        let window = model.window();
        let ceiling = (model.learned()).ceiling(model.model, window, run.clock.monotonic());
        let budget =
            estimate::request_tokens(window, config.max_tokens).min(ceiling.unwrap_or(usize::MAX));
        let mut view = View::read(run, budget, may_choose, None)?;
        let (is_guess, folded_for) = (model.guesses_window(), view.past.folded_for);
        if model.is_first() && folded_for > 0 && budget >= folded_for * 3 / 2 && !is_guess {
            // It was folded for a smaller model.
            run.store.unfold(run.turn.conversation_id)?;
            view = View::read(run, budget, may_choose, None)?;
        }
        if let Some(last) = cold(run, &view.past).filter(|_| may_choose) {
            // It has to be read as new in any case: the shorter, the cheaper, and later too.
            let conversation = run.turn.conversation_id;
            run.store.fold(conversation, None, Some(last), budget);
            run.store.flush()?;
            view = View::read(run, budget, may_choose, None)?;
        }
        if let Some(embedder) = run
            .assistant
            .embedder
            .as_ref()
            .filter(|_| view.wants_vector)
        {
            let vector = embedder.of_message(&run.message.content, run.deadline, run.cancel);
            view = View::read(run, budget, may_choose, Some(vector))?;
        }
        if view.is_chosen && !view.memories.is_empty() {
            let shown = |memory: &Memory| (memory.id, memory.shown_as);
            let chosen = view.memories.iter().map(shown).collect();
            run.store.note_shown(run.turn.id, chosen);
        }
        Ok(History {
            run,
            model,
            window,
            budget,
            is_guess,
            refusals: 0,
            hides_window: false,
            system_prompt: system_prompt(run, &view),
            audience: view.audience,
            asker: view.asker,
            past: view.past,
            present: view.present,
            memories: view.memories,
            sent: Cell::new(0),
        })
    }

    /// The next request's content, after these steps of the present turn and with these
    /// tools.
    pub fn context<'t>(&'t self, steps: &'t [Step], tools: &[ToolSpec]) -> Context<'t> {
        let is_routine = self.run.purpose() == Purpose::Routine;
        let input = PromptInput {
            system_prompt: &self.system_prompt,
            form: self.run.assistant.message_form(self.takes()),
            summary: (self.past.summary.as_ref())
                .filter(|_| !is_routine)
                .map(|summary| summary.content.as_str()),
            has_gap: self.past.has_more
                || self.past.has_hidden
                || is_routine && self.past.summary.is_some(),
            past: &self.past.turns,
            turn: self.run.turn.id,
            present: &self.present,
            memories: &self.memories,
            steps,
            channel: &self.run.turn.channel,
        };
        let context = fit(&input, tool_tokens(tools), self.token_budget());
        self.sent.set(context.tokens);
        context
    }

    /// Which tools go with the requests of this conversation.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn offer(&self) -> Result<Offer> {
        let run = self.run;
        let toolbox = &run.assistant.toolbox;
        let offered = self.asker.actor(run).offered(toolbox);
        let own = run.program.map_or(&[][..], |program| program.tools());
        Offer::new(offered, own, toolbox, self.window, || {
            let seen = run.store.snapshot(&run.viewer())?;
            seen.most_called(run.turn.conversation_id)
        })
    }

    /// What the model takes beside text.
    pub fn takes(&self) -> Takes {
        self.model.takes()
    }

    /// Whether the past is to be folded after a reply of this many tokens.
    pub fn is_long(&self, reply_tokens: u64) -> bool {
        let tokens = self.sent.get() + reply_tokens as usize;
        let past = &self.past;
        let is_long = past.has_hidden
            || past.has_more
            || past.turns.len() + 1 >= MOST_TURNS
            || !is_comfortable(tokens, self.token_budget());
        // What is folded stays so: not for a guess.
        is_long && !self.is_guess
    }

    /// Whether text from outside is among the past or the memories, or was once.
    pub fn has_outside_text(&self) -> bool {
        self.past.has_outside_text || self.memories.iter().any(|memory| memory.is_outside)
    }

    /// From where the text from outside is that the model is shown, as far as that can be
    /// told: a kind and a name on each line, the newest last, without what only readers of
    /// the conversation may know.
    pub fn outside_sources(&self, steps: &[Step]) -> String {
        let run = self.run;
        let config = &run.assistant.config;
        let mut sources: Vec<String> = Vec::new();
        let present = (run.message, run.turn.channel.as_str(), steps);
        let past = self.past.turns.iter();
        let past = past.map(|turn| (&turn.message, turn.channel.as_str(), &turn.steps[..]));
        if self.memories.iter().any(|memory| memory.is_outside) {
            sources.push("memory".to_owned());
        }
        for (message, channel, steps) in past.chain([present]) {
            if let Some(name) = channel.strip_prefix("webhook:")
                && is_outside(channel, config)
            {
                sources.push(format!("webhook {name}"));
            }
            sources.extend((!message.attachments.is_empty()).then(|| "attachment".to_owned()));
            let calls = || steps.iter().flat_map(Step::calls);
            for step in steps {
                let Step::Result {
                    call_id, outside, ..
                } = step
                else {
                    continue;
                };
                let call = calls().find(|call| call.id == *call_id && *outside);
                let tool = call.and_then(|call| run.assistant.toolbox.get(&call.tool));
                if let (Some(call), Some(tool)) = (call, tool) {
                    sources.extend(tool.outside_source(&call.arguments, config));
                }
            }
        }
        // Each once, where it came last.
        let mut newest: Vec<String> = Vec::new();
        for source in sources.into_iter().rev() {
            let source = source.replace('\n', " ");
            if newest.len() < MOST_SOURCES && !newest.contains(&source) {
                newest.insert(0, source);
            }
        }
        newest.join("\n")
    }

    /// Whether somebody else gave this address to the model, in the past, in the present
    /// message or by these steps.
    pub fn has(&self, address: &Address, steps: &[Step]) -> bool {
        let turn = self.run.turn;
        let present = (
            self.run.message,
            turn.channel.as_str(),
            turn.is_composed,
            steps,
        );
        let toolbox = &self.run.assistant.toolbox;
        let looks_outside = |tool: &str| {
            toolbox
                .get(tool)
                .is_some_and(|tool| tool.definition().looks_outside())
        };
        let config = &self.run.assistant.config;
        let past = self.past.turns.iter();
        past.map(|turn| {
            let channel = turn.channel.as_str();
            (&turn.message, channel, turn.is_composed, &turn.steps[..])
        })
        .chain([present])
        .any(|(message, channel, is_composed, steps)| {
            !is_composed && address.is_in(message, is_outside(channel, config))
                || address.is_found_in(steps, &looks_outside)
        })
    }

    /// Records that the model has answered the newest context, and how many tokens
    /// it counted (0 if it did not count).
    pub fn answered(&mut self, counted: u64) {
        let (learned, model) = (self.model.learned(), self.model.model);
        learned.learn_count(model, self.sent.get(), counted);
        if std::mem::take(&mut self.hides_window) {
            // It was the length, then.
            let now = self.run.clock.monotonic();
            let most = self.budget.max(self.tokens_sent());
            learned.learn_ceiling(model, most, self.window, now);
        }
    }

    /// Lowers the budget after the model rejected the newest context as too long: to the
    /// window that the server has named, or to half. Returns whether another attempt makes
    /// sense. Only where it `hides_window` is there something to remember here.
    pub fn shrink(&mut self, hides_window: bool) -> bool {
        let sent = self.tokens_sent();
        self.refusals += 1;
        // A message that is too long by itself says nothing of the model.
        self.hides_window = hides_window && sent <= self.budget;
        let most_reply = self.run.assistant.config.max_tokens;
        let named = estimate::request_tokens(self.model.window(), most_reply);
        self.budget = match named < self.budget.min(sent) {
            true => named,
            false => self.budget.min(sent) / 2,
        };
        self.budget >= LEAST_BUDGET && self.refusals <= MOST_REFUSALS
    }

    /// The tokens of the newest context, as the provider counts them.
    fn tokens_sent(&self) -> usize {
        (self.sent.get() as f64 * self.factor()) as usize
    }

    /// The same past, and what is hidden of it.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn with_hidden(&self) -> Result<Past> {
        let seen = self.run.store.snapshot(&self.run.viewer())?;
        let wanted = wanted(self.budget, false, true);
        seen.past(self.run.turn.conversation_id, &wanted)
    }

    fn factor(&self) -> f64 {
        self.model.learned().factor(self.model.model)
    }

    /// The limits of a request, by estimates.
    pub fn token_budget(&self) -> TokenBudget {
        TokenBudget {
            tokens: (self.budget as f64 / self.factor()) as usize,
            // About a quarter of the request.
            result_chars: self.budget.min(MAX_RESULT_CHARS),
            turns: MOST_TURNS,
            past: match self.run.purpose() {
                Purpose::Routine => ROUTINE_PAST,
                _ => usize::MAX,
            },
        }
    }
}

/// The last turn of which the tools' results need not be shown whole any more, where that is
/// worth it and no service has the conversation in its cache.
fn cold(run: &TurnContext<'_>, past: &Past) -> Option<TurnId> {
    let newest = past.turns.last()?.reply.as_ref()?;
    if run.message.created_at.since(newest.created_at) < COLD {
        return None;
    }
    let older = &past.turns[..past.turns.len().saturating_sub(WHOLE_TURNS)];
    let whole = older.iter().filter(|turn| !turn.is_shortened);
    let results = whole.flat_map(|turn| &turn.steps).map(|step| match step {
        Step::Result { content, .. } => content.len(),
        _ => 0,
    });
    (results.sum::<usize>() >= WORTH_FOLDING).then(|| older.last().map(|turn| turn.id))?
}

/// What is read of the past for requests of so many tokens.
fn wanted(budget: usize, with_memories: bool, with_hidden: bool) -> WantedPast {
    WantedPast {
        with_memories,
        most_turns: MOST_TURNS,
        most_bytes: (budget * BYTES_PER_TOKEN).clamp(READ_BYTES.0, READ_BYTES.1),
        with_hidden,
    }
}

/// The system prompt of this turn.
fn system_prompt(run: &TurnContext<'_>, view: &View) -> String {
    let person = view.asker.person(run);
    let (actor, toolbox) = (view.asker.actor(run), &run.assistant.toolbox);
    let reader = toolbox.get(READ_SKILL);
    let reader = reader.filter(|tool| actor.may_use(tool.definition()));
    let servers = actor.server_notes(toolbox);
    let prompt = SystemPrompt {
        config: &run.assistant.config,
        people: &view.people,
        servers: servers.as_deref(),
        skills: reader.and_then(|_| run.assistant.skills.overview()),
        surface: run.turn.surface,
        // Not a note beside the message: others who speak here would be told it. So the
        // cache begins anew where people with instructions of their own take turns.
        for_person: person.and_then(|(_, person)| person.instructions.as_deref()),
        of_client: run.turn.instructions.as_deref(),
    };
    prompt.text()
}
