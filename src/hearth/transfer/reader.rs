//! Reads a file to import: Hearth's own export line by line, those of other assistants item by
//! item. What cannot be read is skipped and counted.

use std::io::{BufRead, BufReader, Read};

use super::foreign;
use super::importer::{ImportReport, ImportRequest, Importer, unread};
use super::line::{Line, VERSION};
use base::error::{Error, Result};
use store::Store;

/// Longest line that is read: a message is far shorter, and a file comes in parts.
const LINE_BYTES: u64 = 16 * 1024 * 1024;
/// What is read at a time.
const BUFFER: usize = 64 * 1024;
/// Where a file of unicode text may begin with this mark.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Imports a whole file: Hearth's own export, or conversations.json of an account export of
/// ChatGPT or Claude.
///
/// What has been imported stays, also when it fails: with `invalid_request` for another format,
/// and for a file that ends early or has an overlong line, with the line and what has been
/// imported until then; with `server_error` when the database cannot be written.
pub fn import(
    store: &Store,
    request: ImportRequest,
    file: impl Read,
) -> (ImportReport, Result<()>) {
    let mut importer = Importer::new(store, request);
    let mut reader = BufReader::with_capacity(BUFFER, file);
    let format = reader.fill_buf().map(FileFormat::of).map_err(unread);
    let read = format.and_then(|format| match format {
        FileFormat::Hearth => lines(&mut reader, &mut importer),
        FileFormat::Array => foreign::read(&mut reader, &mut importer),
        FileFormat::Zip => Err(Error::invalid_request(
            "it is a zip archive; unzip it and import its conversations.json",
        )),
        FileFormat::Newer(version) => Err(Error::invalid_request(format!(
            "a newer Hearth wrote it (version {version} of the format; this one reads {VERSION}): \
             upgrade this one first"
        ))),
        FileFormat::Unknown => Err(Error::invalid_request(
            "it is not a known export: it must be Hearth's own JSON Lines, or conversations.json \
             of a ChatGPT or Claude account export",
        )),
    });
    (importer.report, read)
}

/// The format of a file, judged by its beginning.
#[derive(Debug, PartialEq, Eq)]
enum FileFormat {
    Hearth,
    /// That of a later version.
    Newer(u32),
    Array,
    Zip,
    Unknown,
}

impl FileFormat {
    fn of(beginning: &[u8]) -> FileFormat {
        if beginning.starts_with(b"PK\x03\x04") {
            return FileFormat::Zip;
        }
        let line = without_mark(beginning).trim_ascii_start();
        let first = line.split(|&byte| byte == b'\n').next().unwrap_or_default();
        match line.first() {
            Some(b'[') => FileFormat::Array,
            Some(b'{') => match serde_json::from_slice(first) {
                Ok(Line::Head { version, .. }) if version == VERSION => FileFormat::Hearth,
                Ok(Line::Head { version, .. }) if version > VERSION => FileFormat::Newer(version),
                _ => FileFormat::Unknown,
            },
            _ => FileFormat::Unknown,
        }
    }
}

fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(MARK).unwrap_or(text)
}

/// Imports the lines of Hearth's own export.
fn lines(reader: &mut impl BufRead, importer: &mut Importer<'_>) -> Result<()> {
    let mut number = 0;
    take_lines(reader, importer, &mut number)
        .and_then(|()| importer.finish())
        .map_err(|error| importer.stopped(&format!("line {number}: "), &error))
}

/// Takes all lines; `number` is that of the last one that was read.
fn take_lines(
    reader: &mut impl BufRead,
    importer: &mut Importer<'_>,
    number: &mut u64,
) -> Result<()> {
    let (mut line, mut misses_end) = (Vec::new(), false);
    loop {
        line.clear();
        let mut bounded = (&mut *reader).take(LINE_BYTES);
        let count = bounded.read_until(b'\n', &mut line).map_err(unread)?;
        if count == 0 && misses_end {
            let cut = "the file ends here, before the end of the export";
            return Err(Error::invalid_request(cut));
        } else if count == 0 {
            return Ok(());
        }
        *number += 1;
        if count as u64 == LINE_BYTES {
            return Err(Error::invalid_request("a line is longer than 16 MiB"));
        }
        let text = without_mark(&line).trim_ascii();
        if text.is_empty() {
            continue;
        }
        match serde_json::from_slice(text) {
            Ok(Line::Head { has_end, .. }) => misses_end = has_end,
            Ok(Line::End { .. }) => misses_end = false,
            Ok(read) => take(read, importer)?,
            Err(_) if misses_end && !line.ends_with(b"\n") => {
                let cut = "the file ends in the middle of this line";
                return Err(Error::invalid_request(cut));
            }
            Err(_) => importer
                .report
                .skip("lines that do not belong to an export"),
        }
    }
}

fn take(line: Line, importer: &mut Importer<'_>) -> Result<()> {
    match line {
        Line::Head { .. } | Line::End { .. } => Ok(()),
        Line::Conversation(one) => importer.conversation(*one),
        Line::Message(message) => importer.message(*message),
        // Older exports do not say what it is hidden with.
        Line::HiddenMessage(message) if message.hidden_with.is_none() => importer
            .skip_message("versions that are not shown, in an export that does not place them"),
        Line::HiddenMessage(message) => importer.message(*message),
        Line::Attachment {
            attachment_id,
            name,
            media_type,
            bytes,
        } => importer.begin_file(attachment_id, &name, media_type, bytes),
        Line::AttachmentPart { data } => importer.add_to_file(&data),
        Line::Memory(memory) => importer.memory(*memory),
        Line::Schedule(schedule) => importer.schedule(*schedule),
        Line::Calendar(calendar) => importer.calendar(*calendar),
        Line::List {
            list,
            outside,
            items,
        } => importer.list(list, outside, items),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_recognised_by_the_beginning() {
        for (beginning, kind) in [
            (&b"PK\x03\x04rest"[..], FileFormat::Zip),
            (b"\xef\xbb\xbf\n [ {", FileFormat::Array),
            (
                b"{\"type\":\"hearth_export\",\"version\":1}\n{",
                FileFormat::Hearth,
            ),
            (
                b"{\"type\":\"hearth_export\",\"version\":99}\n{",
                FileFormat::Newer(99),
            ),
            (
                b"{\"type\":\"hearth_export\",\"version\":0}\n{",
                FileFormat::Unknown,
            ),
            (b"{\"mapping\": {}}", FileFormat::Unknown),
            (b"# Title", FileFormat::Unknown),
            (b"", FileFormat::Unknown),
        ] {
            assert_eq!(FileFormat::of(beginning), kind);
        }
    }
}
