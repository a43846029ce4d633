//! The requests that tell phones what waits, through ntfy, Gotify or a browser's push
//! service.

use super::encryption::encrypt;
use super::post::Request;
use super::push_key::PushKey;
use base::clock::Timestamp;
use base::language::Words;
use base::secret::Secret;
use base::url::Url;
use config::{Config, Notifications, PushService};
use serde_json::{Value, json};
use store::{Durable, Notification, NotificationCause};

/// Attempts before it is given up, if it does not expire before.
pub const MAX_ATTEMPTS: u32 = 10;
/// Most characters of what a notification is about.
const CONTENT_CHARACTERS: usize = 500;

/// The request that tells a phone something, by the service that its person has chosen.
///
/// # Errors
/// Why it is not to be sent any more.
pub fn to_service(
    due: &Durable<Notification>,
    settings: Option<&Notifications>,
    is_silent: bool,
) -> Result<Request, String> {
    let settings = settings.ok_or("the person has no notifications any more")?;
    let content = due.content.as_deref().filter(|_| settings.content);
    let push = Push {
        is_silent,
        ..Push::new(due.id.to_string(), due.cause, content, due.words)
    };
    let mut services = settings.services();
    let service = services.find(|service| service.as_str() == due.service);
    let request = service.and_then(|service| request(settings, service, &push));
    Ok(request.ok_or("its service is not set up any more")?)
}

/// The request that tells a browser something (RFC 8030 section 5).
///
/// # Errors
/// Why it is not to be sent any more.
pub fn to_browser(
    due: &Durable<Notification>,
    key: &PushKey,
    config: &Config,
    is_silent: bool,
    now: Timestamp,
) -> Result<Request, String> {
    let (_, browser) = due.browser.as_ref().ok_or("its session has ended")?;
    let push = Push::new(
        due.id.to_string(),
        due.cause,
        due.content.as_deref(),
        due.words,
    );
    let settings = &config.notifications;
    let endpoint = Url::parse(browser.endpoint.expose())
        .ok()
        .filter(|url| settings.allows(url))
        .ok_or("its push service is not one of notifications.push_hosts any more")?;
    let mut message = json!({
        "title": push.title,
        "body": push.text,
        "tag": push.id,
        "conversation_id": due.conversation_id,
        "silent": is_silent,
    });
    if let Some(id) = due.reminder {
        let button = |choice: &str| json!({ "action": choice, "title": due.words.word(&format!("reminder.{choice}")) });
        message["schedule_id"] = json!(id);
        message["actions"] = json!([button("done"), button("again")]);
    }
    let bytes = |text: &str| protocol::push::decode(text).unwrap_or_default();
    let public_key = bytes(&browser.public_key);
    let secret = bytes(browser.secret.expose());
    let body = encrypt(&public_key, &secret, message.to_string().as_bytes());
    let authorization = key.authorization(&endpoint.origin(), &settings.push_contact, now);
    let (Some(body), Some(authorization)) = (body, authorization) else {
        return Err("the message to its browser cannot be encrypted".to_owned());
    };
    let urgency = if push.is_urgent { "high" } else { "normal" };
    Ok(Request {
        setting: "the url",
        url: endpoint.text(),
        media_type: "application/octet-stream".to_owned(),
        headers: vec![
            ("content-encoding", "aes128gcm".to_owned()),
            ("ttl", due.expires_at.since(now).as_secs().to_string()),
            ("urgency", urgency.to_owned()),
            ("topic", push.id),
            ("authorization", authorization),
        ],
        body,
    })
}

/// What a phone shows.
pub struct Push {
    /// The same on every attempt: ntfy shows a repeated one in place of the first.
    id: String,
    title: String,
    text: String,
    is_urgent: bool,
    /// Without a sound.
    is_silent: bool,
}

impl Push {
    fn new(id: String, cause: NotificationCause, content: Option<&str>, words: Words) -> Push {
        let what = words.word(match cause {
            NotificationCause::Approval => "notification.approval",
            NotificationCause::Reminder | NotificationCause::Told => "notification.reminder",
            NotificationCause::Reply => "notification.reply",
            NotificationCause::Message => "notification.message",
        });
        let (title, text) = match content {
            Some(content) => (what, shortened(content)),
            None => ("Hearth".to_owned(), what),
        };
        Push {
            id,
            title,
            text,
            is_urgent: cause == NotificationCause::Approval,
            is_silent: false,
        }
    }

    /// Its priority, of those for what is silent, usual and urgent.
    fn priority(&self, [silent, usual, urgent]: [u8; 3]) -> u8 {
        match (self.is_silent, self.is_urgent) {
            (true, _) => silent,
            (false, false) => usual,
            (false, true) => urgent,
        }
    }

    /// The one that a person sends to see whether they come.
    pub fn test(words: Words) -> Push {
        Push {
            id: "test".to_owned(),
            title: "Hearth".to_owned(),
            text: words.word("notification.test"),
            is_urgent: false,
            is_silent: false,
        }
    }
}

fn shortened(content: &str) -> String {
    let content = content.trim();
    match content.char_indices().nth(CONTENT_CHARACTERS) {
        Some((end, _)) => format!("{}…", content[..end].trim_end()),
        None => content.to_owned(),
    }
}

fn json_request(url: String, body: &Value, token: Option<(&'static str, String)>) -> Request {
    Request {
        setting: "the url",
        url,
        media_type: "application/json".to_owned(),
        headers: token.into_iter().collect(),
        body: body.to_string().into_bytes(),
    }
}

/// The request to a service, if it is set up.
pub fn request(settings: &Notifications, service: PushService, push: &Push) -> Option<Request> {
    let expose = |token: &Secret| token.expose().to_owned();
    Some(match service {
        // <https://docs.ntfy.sh/publish/#publish-as-json>
        PushService::Ntfy => {
            let ntfy = settings.ntfy.as_ref()?;
            let token = ntfy.token.as_ref();
            let token = token.map(|token| ("authorization", format!("Bearer {}", token.expose())));
            let body = json!({
                "topic": ntfy.topic.expose(),
                "title": push.title,
                "message": push.text,
                "priority": push.priority([2, 3, 4]),
                "sequence_id": push.id,
            });
            json_request(ntfy.url.clone(), &body, token)
        }
        // <https://gotify.net/docs/pushmsg>
        PushService::Gotify => {
            let gotify = settings.gotify.as_ref()?;
            let url = format!("{}/message", gotify.url.trim_end_matches('/'));
            let body = json!({
                "title": push.title,
                "message": push.text,
                "priority": push.priority([2, 5, 8]),
            });
            json_request(url, &body, Some(("x-gotify-key", expose(&gotify.token))))
        }
    })
}
