//! A JSON array of conversations, as ChatGPT and Claude export them. It is read item
//! by item, so a file may be larger than the memory.

use std::cell::Cell;
use std::fmt;
use std::io::{self, BufRead, Read};
use std::rc::Rc;

use serde::de::{DeserializeSeed, Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::importer::{ForeignConversation, Importer, unread};
use base::error::{Error, Result};

mod chatgpt;
mod claude;

/// Largest conversation that is read.
const ITEM_BYTES: u64 = 32 * 1024 * 1024;

/// Imports a whole file.
///
/// # Errors
///
/// The file cannot be read or is not valid JSON, or the database fails.
pub fn read(reader: &mut impl BufRead, importer: &mut Importer<'_>) -> Result<()> {
    let mark = reader
        .fill_buf()
        .map_err(unread)?
        .starts_with(b"\xef\xbb\xbf");
    reader.consume(if mark { 3 } else { 0 });
    let position = Rc::new(ReadPosition::default());
    let bounded = BoundedReader {
        reader: &mut *reader,
        position: Rc::clone(&position),
    };
    let mut failure = None;
    let items = ItemVisitor {
        importer,
        position,
        failure: &mut failure,
    };
    let mut parser = serde_json::Deserializer::from_reader(bounded);
    let parsed = items.deserialize(&mut parser);
    let failure = match (failure, parsed) {
        (Some(failure), _) => failure,
        (None, Err(error)) => {
            Error::invalid_request(format!("the file is incomplete or invalid: {error}"))
        }
        (None, Ok(())) => return Ok(()),
    };
    Err(importer.stopped("", &failure))
}

/// How much of a file has been read.
#[derive(Default)]
struct ReadPosition {
    read: Cell<u64>,
    /// Where the current item must end.
    bound: Cell<Option<u64>>,
}

/// Fails when an item is too large for the memory.
struct BoundedReader<R> {
    reader: R,
    position: Rc<ReadPosition>,
}

impl<R: Read> Read for BoundedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        let read = self.position.read.get() + count as u64;
        self.position.read.set(read);
        match self.position.bound.get() {
            Some(bound) if read > bound => {
                Err(io::Error::other("a conversation is larger than 32 MiB"))
            }
            _ => Ok(count),
        }
    }
}

/// Gives each item to the importer.
struct ItemVisitor<'i, 'a> {
    importer: &'i mut Importer<'a>,
    position: Rc<ReadPosition>,
    failure: &'i mut Option<Error>,
}

impl<'de> DeserializeSeed<'de> for ItemVisitor<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for ItemVisitor<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of conversations")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        loop {
            let read = self.position.read.get();
            self.position.bound.set(Some(read + ITEM_BYTES));
            let Some(item) = items.next_element::<Box<RawValue>>()? else {
                return Ok(());
            };
            if let Err(failure) = import_item(&item, self.importer) {
                *self.failure = Some(failure);
                return Err(serde::de::Error::custom("stopped"));
            }
        }
    }
}

/// Imports one item of either service.
fn import_item(item: &RawValue, importer: &mut Importer<'_>) -> Result<()> {
    let text = item.get();
    let taken: Option<ForeignConversation> = match text {
        _ if !text.starts_with('{') => None,
        _ if text.contains("\"mapping\"") => chatgpt::conversation(text),
        _ if text.contains("\"chat_messages\"") => claude::conversation(text),
        _ => None,
    };
    match taken {
        Some(found) => importer.foreign(found),
        None => {
            let reason = "items that are not conversations of ChatGPT or Claude";
            importer.report.skip(reason);
            Ok(())
        }
    }
}
