//! How a person, a program and the log read that a request to a model server failed.

use super::classify::{Overflow, Verdict};
use super::endpoint::{Endpoint, model_error};
use super::failure::{ErrorResponse, Failure};
use crate::model::{Cause, ProviderError, Refusal};
use base::error::{Code, Error};
use base::language::Said;
use net::http_client::ClientError;

impl Failure {
    /// The error to report for a request to `model`. `answered` says whether the head of a
    /// successful reply had arrived.
    pub fn into_error(
        self,
        verdict: Verdict,
        endpoint: &Endpoint,
        model: &str,
        answered: bool,
    ) -> ProviderError {
        let (says, detail) = match self {
            Failure::Client(error @ ClientError::Interrupted { .. }) if answered => {
                (model_error("cut_short", &[]), error.to_string())
            }
            Failure::Client(error) => return endpoint.unanswered(&error, answered),
            Failure::NotJson(detail) => (model_error("not_json", &[]), detail),
            Failure::NoReply => (
                model_error("no_reply", &[]),
                "the JSON has not the form of a reply".to_owned(),
            ),
            Failure::NoWord => (
                model_error("no_word", &[]),
                "the stream brought no text and no reasoning".to_owned(),
            ),
            Failure::CutShort => (
                model_error("cut_short", &[]),
                "the stream ended before it said that the reply is complete".to_owned(),
            ),
            Failure::Withheld(reason) => (model_error("withheld", &[]), reason),
            Failure::Reported(response) => {
                let says = match verdict {
                    Verdict::Shorter(overflow) => response.too_long(overflow, model),
                    _ => response.says(endpoint, model),
                };
                let detail = response.detail(&says);
                let mut error = endpoint.failed(says, detail, verdict.cause(&response));
                if let ProviderError::Failed { refusal, .. } = &mut error {
                    *refusal = response.refusal();
                }
                return error;
            }
        };
        let cause = match verdict {
            Verdict::GiveUp => Cause::Request,
            _ => Cause::Server,
        };
        endpoint.failed(says, detail, cause)
    }

    /// What the log reads of a request for something else than a reply.
    pub fn told(self, endpoint: &Endpoint) -> String {
        match self {
            Failure::Reported(response) => response.told(endpoint).to_string(),
            failure => (failure.into_error(Verdict::NextServer, endpoint, "", false)).to_string(),
        }
    }

    /// What the person or the program reads who made such a request.
    pub fn into_refusal(self, verdict: Verdict, endpoint: &Endpoint) -> Error {
        match self {
            Failure::Reported(response) => {
                let message = response.told(endpoint);
                let refusal = response.refusal();
                refusal.apply(match refusal.status {
                    429 => Error::new(Code::RateLimited, message),
                    // A refused key is the household's, not theirs.
                    424 | 503 => {
                        let detail = endpoint.scrub(&response.detail(&message));
                        Error::server(message, detail)
                    }
                    _ => Error::invalid_request(message),
                })
            }
            failure => match failure.into_error(verdict, endpoint, "", false) {
                error @ ProviderError::Failed { .. } => error.into_error(),
                error => Error::server(endpoint.sentence(model_error("late", &[])), error)
                    .with_status(504),
            },
        }
    }
}

impl ErrorResponse {
    /// What a program reads that asked.
    fn refusal(&self) -> Refusal {
        let status = match self.status {
            404 if !self.is_about_model() => 424,
            // The error stood in a reply.
            200 if self.retry().is_some() => 503,
            status => status,
        };
        Refusal::of(status, self.wait, self.is_quota())
    }

    /// What happened, as the end of a sentence about the server.
    pub fn says(&self, endpoint: &Endpoint, model: &str) -> Said {
        let mut said = Said::from(endpoint.quote(&self.message));
        let key = match self.status {
            300..=399 => {
                said = match self.location.as_deref() {
                    Some(place) => endpoint.quote(place).into(),
                    None => model_error("elsewhere", &[]),
                };
                "redirect"
            }
            401 if endpoint.key().is_none() => "no_key",
            401 => "wrong_key",
            402 => "no_credit",
            403 => "forbidden",
            // OpenRouter: no service behind it takes what the request has.
            404 if self.mentions(&["no endpoints found"]) => "refused",
            404 if self.is_about_model() => "unknown",
            404 => "no_api",
            429 if self.is_quota() => "quota",
            429 => "too_many",
            503 => "loading",
            529 => "overloaded",
            408 | 409 | 500..=599 => "failed",
            200 => "reported",
            _ => "refused",
        };
        let fields = [("status", &*self.status.to_string()), ("model", model)];
        let says = model_error(key, &fields).with("said", said);
        says.with("hint", endpoint.path_hint())
    }

    /// The same of a request for something else than a reply.
    fn told(&self, endpoint: &Endpoint) -> Said {
        let (status, said) = (self.status.to_string(), endpoint.quote(&self.message));
        endpoint.sentence(model_error(
            "status",
            &[("status", &status), ("said", &said)],
        ))
    }

    /// For the log, which has the `public` words before it.
    fn detail(&self, public: &Said) -> String {
        let mut about = format!("HTTP {}", self.status);
        if !self.labels.is_empty() {
            about = format!("{about}, {}", self.labels);
        }
        if let Some(id) = &self.request_id {
            about = format!("{about}, x-request-id {id}");
        }
        match self.message.as_str() {
            said if public.to_string().contains(said) => about,
            message => format!("{message} ({about})"),
        }
    }

    /// The same where the conversation is too long.
    fn too_long(&self, overflow: Overflow, model: &str) -> Said {
        let key = match overflow {
            Overflow::Perhaps => "perhaps_long",
            _ => "long",
        };
        model_error(
            key,
            &[("status", &self.status.to_string()), ("model", model)],
        )
    }
}
