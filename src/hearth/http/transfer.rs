//! GET /export and POST /import. Neither holds a whole file in memory.

use std::io::{self, Read};
use std::time::Duration;

use super::disposition;
use super::extension::Context;
use crate::api::access::holder;
use crate::service::Service;
use crate::service::transfer::format_of;
use crate::transfer::ExportFormat;
use base::error::{Error, Result};
use config::Config;
use net::http::checks::{bearer, percent_decoded, query};
use net::http::{Admitted, Answer, BodyError, Head, RequestBody, Response};
use protocol::command::Export;
use protocol::envelope;

/// What is read of a body at a time.
const PIECE: usize = 64 * 1024;
/// Within what time a file to import must have arrived: its conversations are stored meanwhile.
const IMPORT_TIME: Duration = Duration::from_secs(2 * 60 * 60);

/// GET /export: what is the sender's, and with `all=1` everything.
///
/// # Errors
/// `invalid_token`, `unauthorized`, `not_found`, `invalid_request`.
pub fn export(context: &Context<'_>) -> Result<Answer> {
    let head = &context.request.head;
    let identity = context.service.identify_at(&head.peer, &bearer(head)?)?;
    let identity = holder(head, identity)?;
    let field = |wanted: &str| {
        let mut fields = query(head.query.as_deref());
        fields
            .find(|(name, _)| *name == wanted)
            .map(|(_, value)| value)
    };
    let format = format_of(field("format"))?;
    let flag = |name: &str| match field(name) {
        None | Some("0") => Ok(false),
        Some("1") => Ok(true),
        Some(_) => Err(Error::invalid_request(format!("\"{name}\" must be 1 or 0"))),
    };
    let wanted = Export {
        part: 0,
        conversation_id: field("conversation").map(str::parse).transpose()?,
        format: field("format").map(str::to_owned),
        shared: flag("shared")?,
        all: flag("all")?,
    };
    let mut exporter = context.service.export(&identity, &wanted)?;
    // What is wrong from the start is an error, and no file.
    let mut first = exporter.next_piece()?;
    let (media_type, ending) = match format {
        ExportFormat::JsonLines => ("application/jsonl; charset=utf-8", "jsonl"),
        ExportFormat::Markdown => ("text/markdown; charset=utf-8", "md"),
    };
    let name = format!("hearth-{}.{ending}", identity.user);
    let mut response = Response::empty(200);
    response.add("Content-Type", media_type);
    response.add("Content-Disposition", disposition::of_file(&name, false));
    response.add("X-Content-Type-Options", "nosniff");
    let next = move || match first.take() {
        Some(piece) => Ok(piece),
        None => Ok(exporter.next_piece()?.unwrap_or_default()),
    };
    Ok(Answer::Pieces(response, None, Box::new(next)))
}

/// POST /import: stores the body as it arrives. The sender is known before the first byte is
/// read.
///
/// # Errors
/// The response that refuses it.
pub fn import<'a>(
    service: &'a Service,
    head: &Head,
    config: &Config,
) -> Result<Admitted<'a>, Response> {
    let identity = bearer(head)
        .and_then(|token| service.identify_at(&head.peer, &token))
        .and_then(|identity| holder(head, identity));
    let identity = identity.map_err(|error| Response::error(&error))?;
    let limit = usize::try_from(config.limits.import_bytes).unwrap_or(usize::MAX);
    Ok(Admitted::streamed(limit, IMPORT_TIME, move |head, body| {
        let mut fields = query(head.query.as_deref());
        let owner = fields.find(|(name, _)| *name == "owner");
        let owner = owner.map(|(_, name)| percent_decoded(name));
        let mut file = Body {
            body,
            failure: None,
        };
        let imported = service.import(&identity, owner.as_deref(), &mut file);
        match (imported, file.failure) {
            (_, Some(failure)) => Err(failure),
            (Err(error), None) => Err(error.into()),
            (Ok(report), None) => {
                // Nothing after the end of the export counts.
                let data = envelope::success(None, &report);
                Ok(Answer::Now(Response::json(200, data)))
            }
        }
    })
    .refusing_as(refusal, None))
}

/// The refusal of a file. One that is too large names the setting.
fn refusal(error: &Error) -> Response {
    match error.status() {
        413 => Response::error(
            &(error.clone()).rephrased(|text| format!("{text} (limits.import_bytes)")),
        ),
        _ => Response::error(error),
    }
}

/// The body of a request as a file.
struct Body<'a, 'b> {
    body: &'a mut RequestBody<'b>,
    /// Why it could not be read on.
    failure: Option<BodyError>,
}

impl Read for Body<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.body.next_piece(buffer.len().min(PIECE)) {
            Ok(piece) => {
                let piece = piece.unwrap_or_default();
                buffer[..piece.len()].copy_from_slice(&piece);
                Ok(piece.len())
            }
            Err(failure) => {
                self.failure = Some(failure);
                Err(io::Error::other("the body could not be read"))
            }
        }
    }
}
