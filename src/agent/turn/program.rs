//! A program that asks for a reply and runs tools of its own, such as one that speaks
//! OpenAI's interface: its calls leave the turn, and their results come back.

use super::turn_context::{HandedBack, HandedCalls, Stop};
use super::{TurnLoop, said_so_far};
use crate::model::ToolSpec;
use crate::model::client_options::ClientOptions;
use crate::tools::permission::describes_from_outside;
use crate::tools::{Origin, ResultDetails};
use store::{Step, ToolCall, last_round};

impl<'a> TurnLoop<'a, '_> {
    /// Whether a call is one of the program's own tools.
    pub(super) fn is_of_program(&self, call: &ToolCall) -> bool {
        let program = self.run.program;
        program.is_some_and(|program| program.tools().iter().any(|one| one.name == call.tool))
    }

    /// What the program wants of the next reply.
    pub(super) fn client_options(&self) -> Option<&'a ClientOptions> {
        let was_called = self
            .steps
            .iter()
            .flat_map(Step::calls)
            .any(|call| self.is_of_program(call));
        self.run.program.map(|program| program.options(was_called))
    }

    /// What the model may call in the next round: the household's tools and the program's. A
    /// call that the program demands is one of its own.
    pub(super) fn offered_now(&mut self) -> Vec<ToolSpec> {
        let shown = self.offer.after(self.searches.iter().map(String::as_str));
        // Not noted: the descriptions go when the server does.
        self.is_outside |= describes_from_outside(&self.run.assistant.toolbox, &shown);
        let is_demanded = self
            .client_options()
            .is_some_and(|one| one.must_call.is_some());
        match self.run.program {
            Some(program) if is_demanded => program.tools().to_vec(),
            _ => shown,
        }
    }

    /// Has the program run its calls.
    pub(super) fn run_by_program(&mut self, calls: &[ToolCall]) -> Result<(), Stop> {
        let Some(program) = self.run.program.filter(|_| !calls.is_empty()) else {
            return Ok(());
        };
        self.check_stop()?;
        for call in calls {
            let call_id = call.id.clone();
            self.add(Step::Started { call_id });
        }
        self.save()?;
        let mut usage = self.run.turn.usage;
        usage.add(self.noted);
        usage.add(self.usage);
        let handed = HandedCalls {
            calls: calls.to_vec(),
            said: said_so_far(&self.steps, ""),
            usage,
        };
        let HandedBack { results, is_last } =
            program.run(handed, self.run.deadline, self.run.cancel);
        self.check_stop()?;
        for (call, result) in calls.iter().zip(results) {
            // One that comes later is added then.
            let Some(result) = result else { continue };
            let details = ResultDetails {
                origin: Origin::Outside,
                ..ResultDetails::default()
            };
            self.add_result(call, Ok(result), details);
        }
        // The model may be asked meanwhile: what comes of it is stored behind these.
        let unsaved = self.take_unsaved();
        let (store, turn) = (self.run.store, self.run.turn.id);
        store
            .record_steps_deferred(turn, unsaved, self.audience)?
            .uncommitted();
        match is_last {
            true => Err(Stop::Left),
            false => Ok(()),
        }
    }

    /// What a person reads as the reply of a turn that its program has left: what the model has
    /// said, or else the results that the program has shown.
    pub(super) fn left(&self) -> String {
        let said = said_so_far(&self.steps, "");
        if !said.is_empty() {
            return said;
        }
        let results = last_round(&self.steps)
            .1
            .iter()
            .filter_map(|step| match step {
                Step::Result { content, .. } => Some(content.as_str()),
                _ => None,
            });
        results.collect::<Vec<_>>().join("\n\n")
    }
}
