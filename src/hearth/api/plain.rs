//! The model `hearth-plain`: the household's model without the household. For what programs
//! ask beside a chat, such as for its title, and for those that want no assistant.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::answer::{Task, filled, new_waker};
use super::form::{Form, KEEP_ALIVE, Parts, TurnSummary};
use super::plain_chat::PlainChat;
use crate::service::Service;
use crate::service::held_token::HeldToken;
use agent::model::ModelReply;
use agent::plain::{self, PlainRequest};
use base::error::{Error, Result};
use base::sync::lock;
use config::Config;
use net::cancel::Cancel;
use net::http::{Answer, DeferredResponse, Head, ResponsePart};
use net::wait::Waker;
use store::Identity;

/// The header that names what a program asks beside a chat, such as Open WebUI's `{{TASK}}`.
const TASK: &str = "x-task";

/// Whether a request is for the model alone.
pub fn is_wanted(model: &str, head: &Head) -> bool {
    super::models::is_plain(model) || filled(head, TASK).is_some()
}

/// Asks the model, without the household.
///
/// # Errors
/// `invalid_request` for messages that cannot be read; those of [`defer`].
pub fn answer(service: &Arc<Service>, task: Task, head: &Head) -> Result<Answer> {
    let chat = PlainChat::read(task.said)?;
    let (asker, wants) = (task.asker, task.program.unwrap_or_default());
    let (stream, identity) = (task.stream, asker.identity.clone());
    let ask = move |work: Work<'_>| {
        let service = work.service;
        let asked = PlainRequest {
            user: (asker.user_id, &asker.user),
            system: &chat.system,
            messages: &chat.messages,
            files: &chat.files,
            tools: &wants.tools,
            client: &wants.reply,
            stream,
            deadline: work.deadline,
            cancel: work.cancel,
        };
        let assistant = service.assistant();
        let (store, clock) = (service.store(), service.clock());
        plain::reply(&assistant, store, clock, &asked, work.on_text)
    };
    let identity = identity.as_ref();
    defer(
        service,
        identity,
        task.form,
        stream,
        head,
        &task.ignored,
        ask,
    )
}

/// What the thread has that asks a server.
pub struct Work<'a> {
    pub service: &'a Service,
    /// When the time is up.
    pub deadline: Instant,
    /// Stops it when the client has gone.
    pub cancel: &'a Cancel,
    /// Gets pieces of text as they arrive.
    pub on_text: &'a mut dyn FnMut(&str),
}

/// What has no effect, and the header of a key: nothing is kept that would be repeated.
fn without_effect(head: &Head, ignored: &[String]) -> Vec<String> {
    let key = head.header("idempotency-key").map(|_| "Idempotency-Key");
    let names = key.into_iter().map(str::to_owned);
    names.chain(ignored.iter().cloned()).collect()
}

/// Asks a server on a thread of its own, which ends with the response, and that with the
/// token of `identity`.
///
/// # Errors
/// 503 while as many are asked as there are workers, and without a thread or descriptor.
pub fn defer(
    service: &Arc<Service>,
    identity: Option<&Identity>,
    form: Box<dyn Form>,
    stream: bool,
    head: &Head,
    ignored: &[String],
    ask: impl FnOnce(Work<'_>) -> Result<ModelReply> + Send + 'static,
) -> Result<Answer> {
    let config = service.settings().current();
    let place = Place::take(service, &config)?;
    let waker = new_waker(head)?;
    let wake = Arc::clone(&waker);
    let token = identity.map(|one| HeldToken::new(service, one, move || wake.wake()));
    let began = Instant::now();
    let deadline = began + Duration::from_secs(config.limits.turn_seconds);
    let happened = Arc::<Mutex<Happened>>::default();
    let cancel = Cancel::default();
    let run = {
        let (happened, waker, cancel) = (Arc::clone(&happened), Arc::clone(&waker), cancel.clone());
        move || {
            let answer = ask(Work {
                service: &place.0,
                deadline,
                cancel: &cancel,
                on_text: &mut |text| {
                    lock(&happened).text.push_str(text);
                    waker.wake();
                },
            });
            lock(&happened).end = Some(answer);
            waker.wake();
        }
    };
    let thread = thread::Builder::new()
        .name("plain-reply".to_owned())
        .spawn(run)
        .map_err(|error| {
            log::warn!("no thread for a plain reply: {error}");
            Error::overloaded("the server has no thread left", 5)
        })?;
    Ok(Answer::Deferred(Box::new(PlainAnswer {
        waker,
        token,
        stream,
        began,
        deadline,
        happened,
        cancel,
        thread: Some(thread),
        is_over: false,
        parts: Parts::new(form, head, &config, &without_effect(head, ignored)),
    })))
}

/// One of the places for such requests, given back when it is dropped.
struct Place(Arc<Service>);

impl Place {
    fn take(service: &Arc<Service>, config: &Config) -> Result<Place> {
        let taken = service.plain_requests.fetch_add(1, Ordering::SeqCst);
        let place = Place(Arc::clone(service));
        if taken >= config.workers {
            return Err(Error::overloaded("the model is asked too much at once", 5));
        }
        Ok(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.plain_requests.fetch_sub(1, Ordering::SeqCst);
    }
}

/// What the thread has to tell.
#[derive(Default)]
struct Happened {
    text: String,
    end: Option<Result<ModelReply>>,
}

struct PlainAnswer {
    waker: Arc<Waker>,
    /// Of the request, if it had one.
    token: Option<HeldToken>,
    stream: bool,
    began: Instant,
    deadline: Instant,
    happened: Arc<Mutex<Happened>>,
    cancel: Cancel,
    thread: Option<JoinHandle<()>>,
    is_over: bool,
    parts: Parts,
}

impl DeferredResponse for PlainAnswer {
    fn waker(&self) -> &Arc<Waker> {
        &self.waker
    }

    fn advance(&mut self) -> ResponsePart {
        if self.parts.is_empty() && !self.is_over {
            self.look();
        }
        match self.parts.next() {
            Some(part) => part,
            None if self.is_over => ResponsePart::Broken,
            None if self.stream => ResponsePart::Wait(self.parts.next_keep_alive()),
            // The provider ends at the deadline by itself.
            None => ResponsePart::Wait(self.deadline + KEEP_ALIVE),
        }
    }
}

impl PlainAnswer {
    fn look(&mut self) {
        if self.token.as_ref().is_some_and(HeldToken::is_revoked) {
            self.cancel.cancel();
            return self.fail(&Error::invalid_token("the token is no longer valid"));
        }
        let Happened { text, end } = std::mem::take(&mut *lock(&self.happened));
        if self.stream {
            self.parts.text(&text);
        }
        match end {
            Some(Ok(reply)) => self.finish(reply),
            Some(Err(error)) => self.fail(&error),
            None if Instant::now() >= self.deadline + KEEP_ALIVE => {
                self.fail(&Error::server(
                    "the model did not answer in time",
                    "a plain reply",
                ));
            }
            None if self.stream => self.parts.keep_alive(Instant::now()),
            None => {}
        }
    }

    fn finish(&mut self, reply: ModelReply) {
        self.is_over = true;
        let summary = TurnSummary {
            usage: reply.usage,
            took: self.began.elapsed(),
            finish_reason: reply.finish_reason,
            calls: reply.calls,
        };
        match self.stream {
            true => self.parts.close(&summary),
            false => self.parts.whole(&reply.text, &summary),
        }
    }

    fn fail(&mut self, error: &Error) {
        self.is_over = true;
        self.parts.fail(error);
    }
}

impl Drop for PlainAnswer {
    fn drop(&mut self) {
        self.cancel.cancel();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            log::error!("a plain reply ended with a panic");
        }
    }
}
