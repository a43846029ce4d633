//! Who answers a question.

use std::sync::Arc;

use super::answering::{self, Task};
use super::plain;
use crate::service::Service;
use base::error::Result;
use net::http::{Answer, Request};

/// Answers a question to this model: by the household's assistant, or by its model alone.
///
/// # Errors
/// As [`answering::answer`] and [`plain::answer`].
pub fn begin(service: &Arc<Service>, task: Task, model: &str, request: &Request) -> Result<Answer> {
    match plain::is_wanted(model, &request.head) {
        true => plain::answer(service, task, &request.head),
        false => answering::answer(service, task, request),
    }
}
