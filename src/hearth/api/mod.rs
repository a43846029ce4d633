//! The household's assistant behind the interfaces of model servers, for
//! programs that people already have: OpenAI's (`/v1/...`) and Ollama's
//! (`/api/...`), and Anthropic's (`/v1/messages`). Off unless `openai_api.enabled`.
//!
//! Such a program knows no conversations: it sends everything that was said with
//! every message. `transcript` separates the new message from what came before
//! it; the store finds the conversation that continues. The turn is one like any
//! other, with memory, tools, permissions and limits.
//!
//! # The walk of a request
//!
//! 1. The router finds the path in its table ([`http`](crate::http)); `access::asker` looks
//!    up the token before the body is read.
//! 2. `openai::complete`, `responses::respond`, `anthropic::create`, `ollama::chat` or another
//!    reads the body into a `request::ReplyRequest`, and `transcript::read` its messages.
//! 3. `ReplyRequest::answer` starts the turn ([`Service::follow`](crate::service::Service::follow)).
//! 4. `answer::PendingAnswer::advance`, on the connection's thread, takes what
//!    happened in the turn ([`ReplyStream::take`](crate::service::reply_stream::ReplyStream::take)),
//!    and the interface's `Form` writes it.

pub(crate) mod access;
mod answer;
pub(crate) mod anthropic;
pub(crate) mod audio;
mod client_message;
pub(crate) mod embeddings;
pub(crate) mod mcp;
mod models;
pub(crate) mod ollama;
pub(crate) mod openai;
mod options;
mod plain;
mod request;
pub(crate) mod responses;
mod transcript;

pub(crate) use answer::new_waker;
