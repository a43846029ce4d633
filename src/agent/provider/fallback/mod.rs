//! Several providers in order: if one does not answer, the next one gets the request.

mod breaker;
mod fit;

use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::context::window::request_tokens;
use crate::model::{Cause, ModelHealth, ModelReply, ModelRequest, Provider, ProviderError, Takes};
use base::finish_reason::FinishReason;
use base::sync::lock;
use breaker::Breaker;
use config::ModelChoice;

/// Providers in the order in which they get a request.
pub struct Fallback {
    entries: Vec<Entry>,
}

/// One of them.
struct Entry {
    provider: Box<dyn Provider>,
    /// As the configuration names it.
    name: String,
    /// The model at this provider; that of the request for the first.
    model: Option<String>,
    breaker: Mutex<Breaker>,
}

impl Entry {
    fn breaker(&self) -> MutexGuard<'_, Breaker> {
        lock(&self.breaker)
    }

    fn start_cooldown(&self) -> Duration {
        self.breaker().failed(Instant::now())
    }

    /// Asks this provider. The request was made for the first one's window: any other gets as
    /// much of it as fits into its own, and less when it refuses that as too long.
    fn complete(
        &self,
        request: &ModelRequest<'_>,
        on_text: &mut dyn FnMut(&str),
    ) -> Result<ModelReply, ProviderError> {
        if self.model.is_none() {
            return self.provider.complete(request, on_text);
        }
        let mut refused: Option<(usize, ProviderError)> = None;
        loop {
            let window = self.provider.window(request.model);
            let less = refused.as_ref().map_or(usize::MAX, |(sent, _)| sent / 2);
            let budget = request_tokens(window, request.max_tokens).min(less);
            let messages = &fit::newest(request, budget);
            let request = ModelRequest {
                messages,
                ..*request
            };
            let tokens = fit::tokens(&request);
            if let Some((sent, error)) = refused
                && tokens >= sent
            {
                return Err(error);
            }
            match self.provider.complete(&request, on_text) {
                Err(error @ ProviderError::ContextOverflow { .. }) => {
                    refused = Some((tokens, error));
                }
                result => return result,
            }
        }
    }
}

impl Fallback {
    /// The providers of these choices. A request names the model of the first.
    pub fn new(providers: Vec<(&ModelChoice, Box<dyn Provider>)>) -> Fallback {
        let entries = providers.into_iter().enumerate();
        let entries = entries.map(|(place, (choice, provider))| Entry {
            provider,
            name: choice.provider.clone(),
            model: (place > 0).then(|| choice.model.clone()),
            breaker: Mutex::default(),
        });
        Fallback {
            entries: entries.collect(),
        }
    }

    /// First the providers that are not cooling down, then the others: asking them
    /// again is better than asking none.
    fn order(&self) -> Vec<&Entry> {
        let now = Instant::now();
        let (ready, resting): (Vec<&Entry>, Vec<&Entry>) = self
            .entries
            .iter()
            .partition(|entry| entry.breaker().admit(now));
        ready.into_iter().chain(resting).collect()
    }
}

impl Provider for Fallback {
    fn complete(
        &self,
        request: &ModelRequest<'_>,
        on_text: &mut dyn FnMut(&str),
    ) -> Result<ModelReply, ProviderError> {
        let mut failures: Vec<(String, String)> = Vec::new();
        for entry in self.order() {
            let model = entry.model.as_deref().unwrap_or(request.model);
            let request = ModelRequest { model, ..*request };
            let mut has_streamed = false;
            let result = entry.complete(&request, &mut |piece| {
                has_streamed = true;
                on_text(piece);
            });
            match result {
                Ok(reply) => {
                    match reply.finish_reason {
                        // What goes on with the reply does not come from this one.
                        Some(FinishReason::Interrupted) => drop(entry.start_cooldown()),
                        _ => entry.breaker().worked(),
                    }
                    if !failures.is_empty() || entry.model.is_some() {
                        log::info!("{} answers with {model:?} instead", entry.name);
                    }
                    return Ok(reply);
                }
                Err(ProviderError::Failed {
                    public,
                    detail,
                    cause: Cause::Server,
                }) => {
                    let cooldown = entry.start_cooldown();
                    log::warn!(
                        "{public}; it is not asked again for {} s ({detail})",
                        cooldown.as_secs()
                    );
                    failures.push((public, detail));
                    if has_streamed {
                        break;
                    }
                }
                Err(ProviderError::TimedOut) => {
                    entry.start_cooldown();
                    return Err(ProviderError::TimedOut);
                }
                // Not the first one's window.
                Err(ProviderError::ContextOverflow { public, detail, .. })
                    if entry.model.is_some() =>
                {
                    entry.breaker().worked();
                    failures.push((public, detail));
                }
                // The request is to blame: the server works.
                Err(error) => {
                    entry.breaker().worked();
                    return Err(error);
                }
            }
        }
        let (public, detail): (Vec<String>, Vec<String>) = failures.into_iter().unzip();
        Err(ProviderError::Failed {
            public: public.join("; "),
            detail: detail.join("; "),
            cause: Cause::Server,
        })
    }

    fn window(&self, model: &str) -> usize {
        self.entries[0].provider.window(model)
    }

    fn guesses_window(&self, model: &str) -> bool {
        self.entries[0].provider.guesses_window(model)
    }

    fn takes(&self, model: &str) -> Takes {
        self.entries[0].provider.takes(model)
    }

    fn health(&self, model: &str) -> Vec<ModelHealth> {
        let now = Instant::now();
        let standing = |entry: &Entry| ModelHealth {
            provider: entry.name.clone(),
            model: entry.model.as_deref().unwrap_or(model).to_owned(),
            cooldown_left: entry.breaker().cooldown_left(now),
        };
        self.entries.iter().map(standing).collect()
    }
}

#[cfg(test)]
mod tests;
