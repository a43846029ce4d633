//! POST /attachments and GET /attachments/ID. Neither holds a whole file in memory.

use std::borrow::Cow;
use std::ops::Range;
use std::time::Duration;

use super::disposition;
use super::extension::Context;
use crate::api::access::holder;
use crate::service::Service;
use base::error::{Error, Result};
use base::ids::AttachmentId;
use config::Config;
use net::http::checks::bearer;
use net::http::{Admitted, Answer, Head, Response};
use protocol::envelope;
use protocol::record::Attachment;
use store::{PIECE_BYTES, Store, Viewer};

/// What the path of a file begins with; its id follows.
const BELOW: &str = "/attachments/";

/// Bytes that are read at a time for a response.
const READ_BYTES: usize = 64 * 1024;

/// Types that browsers show without running anything in them.
const SHOWN: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// POST /attachments: stores the body as it arrives. The sender is known before the
/// first byte is read.
///
/// # Errors
/// The response that refuses it.
pub fn put<'a>(
    service: &'a Service,
    head: &Head,
    config: &Config,
) -> Result<Admitted<'a>, Response> {
    let identity = bearer(head)
        .and_then(|token| service.identify(&token))
        .and_then(|identity| holder(head, identity));
    let identity = identity.map_err(|error| Response::error(&error))?;
    let most = config.limits.attachment_bytes;
    let time = Duration::from_secs(config.limits.attachment_seconds);
    let limit = usize::try_from(most).unwrap_or(usize::MAX);
    Ok(Admitted::streamed(limit, time, move |head, body| {
        let name = head.header("content-disposition");
        let name = name.and_then(disposition::file_name).unwrap_or_default();
        let declared = head.header("content-type").map(str::to_owned);
        let bytes = body.length().unwrap_or(most);
        let mut file = service.receive_file(&identity, name, declared, bytes)?;
        while let Some(piece) = body.next_piece(PIECE_BYTES)? {
            file.add(piece)?;
        }
        let attachment = file.finish()?;
        let mut response = Response::json(201, envelope::success(None, &attachment));
        // Relative: what is before /attachments may be a proxy's.
        let location = format!("attachments/{}", attachment.attachment_id);
        response.add("Location", location);
        Ok(Answer::Now(response))
    }))
}

/// GET /attachments/ID: the file, or a range of it.
///
/// # Errors
/// `invalid_token`; `not_found` where the person does not see it.
pub fn get(context: &Context<'_>) -> Result<Answer> {
    let (service, head) = (context.service, &context.request.head);
    let identity = holder(head, service.identify(&bearer(head)?)?)?;
    let id = head.path[BELOW.len()..].parse()?;
    file(&service.store, identity.viewer(), id, head)
}

fn file(store: &Store, viewer: Viewer, id: AttachmentId, head: &Head) -> Result<Answer> {
    let attachment = store.snapshot(&viewer)?.attachment(id)?;
    let bytes = attachment.bytes;
    let mut response = Response {
        status: 200,
        headers: headers(&attachment),
        body: Cow::Borrowed(b""),
    };
    let range = match wanted_range(head, bytes) {
        Wanted::All => 0..bytes,
        Wanted::Part(range) => {
            response.status = 206;
            let last = range.end - 1;
            let place = format!("bytes {}-{last}/{bytes}", range.start);
            response.add("Content-Range", place);
            range
        }
        Wanted::Nothing => {
            let error = Error::invalid_request(format!("the file has only {bytes} bytes"));
            let mut response = Response::error(&error.with_status(416));
            response.add("Content-Range", format!("bytes */{bytes}"));
            return Ok(Answer::Now(response));
        }
    };
    let store = store.clone();
    let Range { mut start, end } = range;
    let next = move || {
        let most = usize::try_from(end - start).map_or(READ_BYTES, |left| left.min(READ_BYTES));
        // Whoever may no longer see it gets no more of it.
        let (_, piece) = store.snapshot(&viewer)?.attachment_part(id, start, most)?;
        start += piece.len() as u64;
        Ok(piece)
    };
    Ok(Answer::Pieces(response, Some(end - start), Box::new(next)))
}

/// A file is never a page of our origin: whatever it holds runs in a sandbox, is taken
/// for nothing but its type, and is saved unless it is a picture.
fn headers(attachment: &Attachment) -> Vec<(&'static str, Cow<'static, str>)> {
    let media_type = match attachment.media_type.as_str() {
        "text/plain" => "text/plain; charset=utf-8".to_owned(),
        media_type => media_type.to_owned(),
    };
    let is_shown = SHOWN.contains(&attachment.media_type.as_str());
    let disposition = disposition::of_file(&attachment.name, is_shown);
    vec![
        ("Content-Type", Cow::Owned(media_type)),
        ("Content-Disposition", Cow::Owned(disposition)),
        ("Content-Security-Policy", Cow::Borrowed("sandbox")),
        ("X-Content-Type-Options", Cow::Borrowed("nosniff")),
        ("Cross-Origin-Resource-Policy", Cow::Borrowed("same-origin")),
        ("Referrer-Policy", Cow::Borrowed("no-referrer")),
        ("Accept-Ranges", Cow::Borrowed("bytes")),
    ]
}

/// What a request wants of a file.
#[derive(Debug, PartialEq, Eq)]
enum Wanted {
    All,
    Part(Range<u64>),
    /// A range after the end.
    Nothing,
}

/// The one range of the header `Range` (RFC 9110 section 14.2). What is malformed, of
/// another unit or several ranges counts as absent, and so does a range under a
/// condition, because files have no version.
fn wanted_range(head: &Head, bytes: u64) -> Wanted {
    let range = head
        .header("range")
        .filter(|_| head.header("if-range").is_none());
    let bounds = range
        .and_then(|range| range.strip_prefix("bytes="))
        .and_then(|range| range.trim().split_once('-'));
    let number = |text: &str| -> Option<u64> {
        let is_number = !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
        is_number.then(|| text.parse().unwrap_or(u64::MAX))
    };
    let range = match bounds {
        Some(("", last)) => number(last).map(|last| bytes.saturating_sub(last)..bytes),
        Some((first, "")) => number(first).map(|first| first..bytes),
        Some((first, last)) => match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => {
                Some(first..last.saturating_add(1).min(bytes))
            }
            _ => None,
        },
        None => None,
    };
    match range {
        None => Wanted::All,
        Some(range) if range.start < range.end => Wanted::Part(range),
        Some(_) => Wanted::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_range_is_understood() {
        for (range, wanted) in [
            ("bytes=0-0", Wanted::Part(0..1)),
            ("bytes=2-5", Wanted::Part(2..6)),
            ("bytes=2-", Wanted::Part(2..10)),
            ("bytes=8-99", Wanted::Part(8..10)),
            ("bytes=-3", Wanted::Part(7..10)),
            ("bytes=-99", Wanted::Part(0..10)),
            ("bytes=0-99999999999999999999", Wanted::Part(0..10)),
            ("bytes=10-", Wanted::Nothing),
            ("bytes=99999999999999999999-", Wanted::Nothing),
            ("bytes=-0", Wanted::Nothing),
            ("bytes=5-2", Wanted::All),
            ("bytes=0-1,4-5", Wanted::All),
            ("bytes=a-b", Wanted::All),
            ("bytes=+1-2", Wanted::All),
            ("bytes=-", Wanted::All),
            ("items=0-1", Wanted::All),
            ("", Wanted::All),
        ] {
            let head = net::testing::head("GET", "/attachments/a", &[("range", range)]);
            assert_eq!(wanted_range(&head, 10), wanted, "{range}");
        }
        let headers = [("range", "bytes=0-0"), ("if-range", "\"a\"")];
        let conditional = net::testing::head("GET", "/attachments/a", &headers);
        assert_eq!(wanted_range(&conditional, 10), Wanted::All);
    }
}
