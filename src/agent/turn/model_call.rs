//! Asking the model.

use std::time::Instant;

use super::history::History;
use super::{Progress, Stop, TurnLoop};
use crate::model::budget;
use crate::model::servers::Candidate;
use crate::model::{Cause, Heard, ModelReply, ModelRequest, ProviderError, ToolSpec};
use crate::prompt::said_so_far;
use crate::tools::{ConversationFiles, READ_FILE};
use store::{Purpose, Snapshot};

impl<'a> TurnLoop<'a, '_> {
    /// Asks the first model that answers.
    pub(super) fn ask_model(
        &mut self,
        history: &mut History<'a>,
        tools: &[ToolSpec],
        may_call: bool,
    ) -> Result<ModelReply, Stop> {
        let run = self.run;
        let config = &run.assistant.config;
        let now = run.clock.now();
        let person = self.asker.person(run);
        budget::check(config, run.store, now, self.usage, person)?;
        let ask = |model| self.ask_one(model, history, tools, may_call);
        match run.assistant.servers.ask(run.model(), ask)? {
            Ok(reply) => Ok(reply),
            Err(ProviderError::Cancelled) => Err(Stop::Cancelled),
            Err(error) => Err(error.into_error().into()),
        }
    }

    /// Asks one model, and again with less of the past if the conversation is too long for it.
    fn ask_one(
        &mut self,
        model: Candidate<'a>,
        history: &mut History<'a>,
        tools: &[ToolSpec],
        may_call: bool,
    ) -> Result<Result<ModelReply, ProviderError>, Stop> {
        let run = self.run;
        let config = &run.assistant.config;
        let of_model;
        let mut tools = tools;
        if !history.model.is(&model) {
            *history = self.read_history(model)?;
            of_model = self.choose_tools(history)?;
            tools = &of_model;
        }
        // What it called too long, and the tokens of that.
        let mut refused: Option<(ProviderError, usize)> = None;
        loop {
            self.follow_audience(history)?;
            let context = history.context(&self.steps, tools);
            let sent = context.tokens;
            if let Some((error, earlier)) = &refused
                && sent >= *earlier
            {
                return Ok(Err(error.clone()));
            }
            let client = self.client_options();
            let request = ModelRequest {
                model: model.model,
                system: &context.system,
                messages: &context.messages,
                files: &ConversationFiles {
                    store: run.store,
                    conversation: run.turn.conversation_id,
                    can_read_on: tools.iter().any(|tool| tool.name == READ_FILE),
                    data_dir: run.data_dir,
                    deadline: run.deadline,
                    cancel: run.cancel,
                    pdfs: &run.assistant.pdfs,
                },
                tools,
                may_call,
                purpose: run.purpose(),
                // A routine sends another beginning.
                conversation: (run.purpose() == Purpose::Reply).then_some(run.turn.conversation_id),
                client,
                words: self.asker.words(),
                temperature: client
                    .and_then(|client| client.temperature)
                    .or(config.temperature),
                max_tokens: client
                    .and_then(|client| client.max_tokens)
                    .into_iter()
                    .chain(config.max_tokens)
                    .min(),
                stream: (run.is_streamed)(),
                has_next: model.has_next,
                deadline: run.deadline,
                cancel: run.cancel,
            };
            let observe = &mut *self.observe;
            let written = &mut self.written;
            written.clear();
            // All pieces together are the reply.
            let follows = !said_so_far(&self.steps, "").is_empty();
            let began = Instant::now();
            Snapshot::none_open();
            let answer = model.complete(&request, &mut |heard| match heard {
                Heard::Text(text) => {
                    if follows && written.is_empty() {
                        observe(Progress::Text("\n\n"));
                    }
                    written.push_str(text);
                    observe(Progress::Text(text));
                }
                Heard::Thought(thought) => observe(Progress::Thought(thought)),
                Heard::Waits(wait) => observe(Progress::Waits(wait)),
            });
            run.assistant.meter.note(began.elapsed(), &answer);
            match answer {
                Ok(reply) => {
                    self.written.clear();
                    self.note_other_model(&reply);
                    self.usage.add(reply.usage);
                    let counted = reply.usage.input;
                    history.answered(if reply.is_estimated { 0 } else { counted });
                    self.answered_by = reply.model.clone();
                    return Ok(Ok(reply));
                }
                Err(
                    error @ ProviderError::Failed {
                        cause: Cause::Length { hides_window },
                        ..
                    },
                ) if self.written.is_empty() && history.shrink(hides_window) => {
                    log::info!(
                        "{}: too long for {:?}: retrying with less of the past",
                        run.turn.id,
                        model.model
                    );
                    refused = Some((error, sent));
                }
                answer => return Ok(answer),
            }
        }
    }

    /// Counts what the turn has used so far under the model that answered then, where another
    /// one answers now: each has its price.
    fn note_other_model(&mut self, reply: &ModelReply) {
        let (store, turn) = (self.run.store, self.run.turn.id);
        let is_other = |model: &mut String| Some(&*model) != reply.model.as_ref();
        if let Some(model) = self.answered_by.take_if(is_other) {
            let used = std::mem::take(&mut self.usage);
            store.note_usage(turn, used, &model, self.run.purpose());
            self.noted.add(used);
        }
    }
}
