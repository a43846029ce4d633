//! The routes of the server and their methods.

use super::attachments;
use net::http::checks;
use net::http::checks::upgrade_required;
use net::http::{Head, Response};

/// What a listener serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Serves {
    /// Everything.
    Everything,
    /// Webhooks and /health: the webhook channel's own port, which may be
    /// exposed without exposing the rest.
    WebhooksOnly,
}

/// What a path stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    Health,
    Welcome,
    /// The handbook, or a file of the web front end.
    Asset,
    Authentication,
    Registration,
    /// Where files are put.
    Attachments,
    /// A file.
    Attachment,
    /// /ws without an upgrade.
    Socket,
    /// An [`Extension`](super::Extension), by its place in the router.
    Extension(usize),
    /// Not ours: a webhook account's path, or nobody's.
    Other,
}

impl Route {
    pub fn of(path: &str, serves: Serves) -> Route {
        // The most frequent path comes first.
        match (path, serves) {
            ("/health", _) => Route::Health,
            (_, Serves::WebhooksOnly) => Route::Other,
            ("/", _) => Route::Welcome,
            ("/auth", _) => Route::Authentication,
            ("/ws/register", _) => Route::Registration,
            ("/ws", _) => Route::Socket,
            ("/attachments", _) => Route::Attachments,
            (path, _) if path.starts_with(attachments::BELOW) => Route::Attachment,
            ("/help", _) => Route::Asset,
            (path, _) if path.starts_with("/assets/") => Route::Asset,
            _ => Route::Other,
        }
    }

    /// The methods it takes, as the value of `Allow`.
    pub fn methods(self) -> &'static str {
        match self {
            Route::Health | Route::Welcome | Route::Asset | Route::Attachment => "GET, HEAD",
            Route::Authentication => "POST, DELETE",
            Route::Registration | Route::Attachments => "POST",
            Route::Socket => "GET",
            Route::Extension(_) => "GET, POST",
            Route::Other => "",
        }
    }

    /// Whether its requests or responses hold credentials or what is private.
    pub fn is_private(self) -> bool {
        matches!(
            self,
            Route::Authentication
                | Route::Registration
                | Route::Attachments
                | Route::Attachment
                | Route::Extension(_)
        )
    }

    /// Checks what in a head does not depend on its sender: method, content type, upgrade.
    pub fn check_head(self, head: &Head) -> Result<(), Response> {
        checks::method(head, self.methods())?;
        match self {
            Route::Authentication | Route::Registration if head.method == "POST" => {
                checks::json(head).map_err(|error| Response::error(&error))
            }
            Route::Socket => Err(upgrade_required()),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use net::testing::head;

    const JSON: (&str, &str) = ("content-type", "application/json");

    #[test]
    fn heads_are_checked_before_bodies_are_read() {
        let text = ("content-type", "text/plain");
        for (method, path, headers, status) in [
            ("GET", "/health", &[][..], None),
            ("HEAD", "/health", &[], None),
            ("POST", "/health", &[JSON], Some(405)),
            ("GET", "/", &[], None),
            ("HEAD", "/", &[], None),
            ("POST", "/", &[], Some(405)),
            ("GET", "/help", &[], None),
            ("POST", "/help", &[], Some(405)),
            ("HEAD", "/assets/1/app.js", &[], None),
            ("POST", "/assets/1/app.js", &[JSON], Some(405)),
            ("POST", "/auth", &[JSON], None),
            ("POST", "/auth", &[text], Some(415)),
            ("POST", "/auth", &[], Some(415)),
            ("DELETE", "/auth", &[], None),
            ("GET", "/auth", &[], Some(405)),
            ("OPTIONS", "/auth", &[], Some(405)),
            ("POST", "/ws/register", &[JSON], None),
            ("POST", "/ws/register", &[text], Some(415)),
            ("DELETE", "/ws/register", &[], Some(405)),
            ("GET", "/ws", &[], Some(426)),
            ("POST", "/ws", &[JSON], Some(405)),
            ("POST", "/attachments", &[text], None),
            ("GET", "/attachments", &[], Some(405)),
            ("GET", "/attachments/att_1", &[], None),
            ("DELETE", "/attachments/att_1", &[], Some(405)),
        ] {
            let head = head(method, path, headers);
            let refused = Route::of(path, Serves::Everything).check_head(&head).err();
            assert_eq!(
                refused.map(|response| response.status),
                status,
                "{method} {path}"
            );
        }
    }

    #[test]
    fn a_path_leads_to_one_route() {
        for (path, everything, webhooks_only) in [
            ("/health", Route::Health, Route::Health),
            ("/", Route::Welcome, Route::Other),
            ("/auth", Route::Authentication, Route::Other),
            ("/ws/register", Route::Registration, Route::Other),
            ("/ws", Route::Socket, Route::Other),
            ("/hooks/a", Route::Other, Route::Other),
            ("/assets/1/app.js", Route::Asset, Route::Other),
            ("/help", Route::Asset, Route::Other),
            ("/attachments", Route::Attachments, Route::Other),
            ("/attachments/", Route::Attachment, Route::Other),
            ("/attachments/a", Route::Attachment, Route::Other),
            ("/attachmentsa", Route::Other, Route::Other),
            ("/assets", Route::Other, Route::Other),
            ("/auth/", Route::Other, Route::Other),
            ("/Health", Route::Other, Route::Other),
            ("", Route::Other, Route::Other),
        ] {
            assert_eq!(Route::of(path, Serves::Everything), everything, "{path}");
            assert_eq!(
                Route::of(path, Serves::WebhooksOnly),
                webhooks_only,
                "{path}"
            );
        }
    }
}
