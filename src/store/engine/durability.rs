//! Values that are on disk, and values that may yet be lost, as different types.
//!
//! What has an effect outside the process (a callback, a tool with an effect, an
//! acknowledgement, an event that carries a reply) takes a [`Durable`]. Only this
//! file makes one, from a read or a write that saw nothing uncommitted. What a
//! write returns before its commit is [`Provisional`], and so is what a read on the
//! writer's connection returns, because it sees the open transaction.

use std::ops::Deref;

use rusqlite::Connection;

use crate::engine::database::Store;
use crate::engine::failure::Outcome;
use crate::engine::job::{Acknowledge, Write};
use crate::engine::readers::OpenSnapshot;
use base::error::Result;

/// A value that is on disk: a crash or a power cut does not take it back.
///
/// ```
/// use store::{Delivery, Durable};
///
/// fn call_back(delivery: &Durable<Delivery>) {}
///
/// fn read(delivery: Durable<Delivery>) {
///     call_back(&delivery);
/// }
/// ```
///
/// A provisional value does not become one:
///
/// ```compile_fail
/// use store::{Delivery, Durable, Provisional};
///
/// fn call_back(delivery: &Durable<Delivery>) {}
///
/// fn read(delivery: Provisional<Delivery>) {
///     call_back(&delivery);
/// }
/// ```
///
/// Nor does its content, and nothing but the store makes one:
///
/// ```compile_fail
/// use store::{Delivery, Durable, Provisional};
///
/// fn read(delivery: Provisional<Delivery>) -> Durable<Delivery> {
///     Durable(delivery.uncommitted())
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Durable<T>(T);

impl<T> Durable<T> {
    /// Runs statements of an open snapshot, which is that of a reader.
    pub(crate) fn seen(_: &OpenSnapshot, work: impl FnOnce() -> Outcome<T>) -> Result<Durable<T>> {
        Ok(Durable(work()?))
    }

    /// The value alone, which nothing can tell from a provisional one.
    pub fn into_inner(self) -> T {
        self.0
    }

    /// A part of the value. `part` is a function without surroundings, so that
    /// nothing provisional can take the value's place.
    ///
    /// ```compile_fail
    /// use store::{Durable, Message};
    ///
    /// fn replace(stored: Durable<Message>, provisional: Message) -> Durable<Message> {
    ///     stored.map(|_| provisional.clone())
    /// }
    /// ```
    pub fn map<U>(self, part: fn(T) -> U) -> Durable<U> {
        Durable(part(self.0))
    }

    /// The same of a borrowed value.
    pub fn map_ref<U>(&self, part: fn(&T) -> U) -> Durable<U> {
        Durable(part(&self.0))
    }
}

#[cfg(feature = "testing")]
impl<T> Durable<T> {
    /// A value that a test says is on disk.
    pub fn for_test(value: T) -> Durable<T> {
        Durable(value)
    }
}

impl<T> Durable<Option<T>> {
    /// The value, if there is one.
    pub fn transpose(self) -> Option<Durable<T>> {
        self.0.map(Durable)
    }
}

impl<T> Deref for Durable<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// A value that depends on a commit which may yet fail. If it does, the value never
/// existed.
///
/// Its commit follows within 5 ms. To wait for it, ask for the same row with a
/// method that returns a [`Durable`].
#[derive(Clone, Debug)]
pub struct Provisional<T>(T);

impl<T> Provisional<T> {
    /// The value, for work inside the process that a failed commit may undo.
    pub fn uncommitted(self) -> T {
        self.0
    }
}

impl<T> From<Durable<T>> for Provisional<T> {
    fn from(durable: Durable<T>) -> Provisional<T> {
        Provisional(durable.0)
    }
}

impl Store {
    /// Runs statements on a reader, which sees only what is committed.
    pub(crate) fn read<T>(&self, work: impl FnOnce(&Connection) -> Outcome<T>) -> Result<T> {
        self.inner.readers.read(work)
    }

    /// The same for what has an effect outside.
    pub(crate) fn durable_read<T>(
        &self,
        work: impl FnOnce(&Connection) -> Outcome<T>,
    ) -> Result<Durable<T>> {
        self.read(work).map(Durable)
    }

    /// Runs statements on the writer and returns once they are committed.
    pub(crate) fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Write<'_>) -> Outcome<T> + Send + 'static,
    ) -> Result<T> {
        self.inner.writer.call(Acknowledge::AfterCommit, work)
    }

    /// The same for what has an effect outside.
    pub(crate) fn durable_write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Write<'_>) -> Outcome<T> + Send + 'static,
    ) -> Result<Durable<T>> {
        self.write(work).map(Durable)
    }

    /// Runs statements on the writer and returns before their commit, which
    /// follows within 5 ms. What they read may not be committed yet either.
    pub(crate) fn deferred_write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Write<'_>) -> Outcome<T> + Send + 'static,
    ) -> Result<Provisional<T>> {
        let ran = self.inner.writer.call(Acknowledge::AfterRun, work);
        ran.map(Provisional)
    }

    /// Runs statements that only read on the writer's connection, without a transaction: an
    /// idle server has no other connection. They see what is not committed yet.
    pub(crate) fn look<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Outcome<T> + Send + 'static,
    ) -> Result<Provisional<T>> {
        let work = |write: &Write<'_>| work(write.connection);
        let seen = self.inner.writer.call(Acknowledge::WithoutCommit, work);
        seen.map(Provisional)
    }
}
