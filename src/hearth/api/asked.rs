//! Who answers a question.

use std::sync::Arc;

use super::answer::{self, Task};
use super::{options, plain};
use crate::service::Service;
use base::error::Result;
use net::http::{Answer, Request};

/// Answers a question to this model: by the household's assistant, or by its model alone.
///
/// # Errors
/// As [`answer::answer`] and [`plain::answer`].
pub fn begin(
    service: &Arc<Service>,
    mut task: Task,
    model: &str,
    request: &Request,
) -> Result<Answer> {
    if let Some(program) = &task.program {
        let hints = options::only_hints(&service.settings().current(), &program.reply);
        // First: the header is bounded.
        task.ignored.splice(..0, hints);
    }
    match plain::is_wanted(model, &request.head) {
        true => plain::answer(service, task, &request.head),
        false => answer::answer(service, task, request),
    }
}
