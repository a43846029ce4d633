//! A program that asks for a reply and runs tools of its own, such as one that speaks
//! OpenAI's interface: its calls leave the turn, and their results come back.

use super::TurnLoop;
use super::found::BY_PROGRAM;
use super::turn_context::Stop;
use crate::model::ToolSpec;
use store::{Step, ToolCall};

impl TurnLoop<'_, '_> {
    /// Whether a call is one of the program's own tools.
    pub(super) fn is_of_program(&self, call: &ToolCall) -> bool {
        let program = self.run.program;
        program.is_some_and(|program| program.tools().iter().any(|one| one.name == call.tool))
    }

    /// What the model may call: the household's tools and the program's.
    pub(super) fn with_program(&self, mut offered: Vec<ToolSpec>) -> Vec<ToolSpec> {
        if let Some(program) = self.run.program {
            let own = program.tools();
            offered.retain(|tool| !own.iter().any(|one| one.name == tool.name));
            offered.extend_from_slice(own);
        }
        offered
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
        let results = program.run(calls, self.run.due(), self.run.cancel);
        self.check_stop()?;
        for (call, result) in calls.iter().zip(results) {
            let result = result
                .ok_or_else(|| "the program that asked did not return a result in time".to_owned());
            self.add_result(call, result, BY_PROGRAM, Vec::new());
        }
        // The model may be asked meanwhile: what comes of it is stored behind these.
        let unsaved = self.take_unsaved();
        let (store, turn) = (self.run.store, self.run.turn.id);
        store
            .record_steps_deferred(turn, unsaved, self.audience)?
            .uncommitted();
        Ok(())
    }
}
