//! `notifications` and `people.NAME.notifications`: how people are notified.

use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::collections::{list, object};
use super::declaration::{Rule, default_is_absent, section};
use super::key_path::KeyPath;
use super::readable::{is_set, is_there, masked_url};
use super::reader::Reader;
use super::rules::{Flag, Parsed, SecretText, UrlText};
use base::calendar::Zone;
use base::clock::Timestamp;
use base::language::Said;
use base::secret::Secret;
use base::url::{Authority, Host, Url};

/// The push services of the usual browsers: Chrome's, Firefox's, Safari's and Edge's.
const PUSH_SERVICES: [&str; 4] = [
    "fcm.googleapis.com",
    "*.push.services.mozilla.com",
    "*.push.apple.com",
    "*.notify.windows.com",
];

section! {
    /// The section `notifications`: how browsers are notified.
    #[derive(Clone, Debug, Serialize)]
    pub struct WebPush {
        /// The push services to which browsers may have messages posted: host names, `*.` before one
        /// for all names below it, perhaps with a port.
        pub push_hosts: Vec<String> = list(PUSH_HOST)
            .or(PUSH_SERVICES.map(str::to_owned).to_vec());
        /// How a push service can reach you if your messages cause it trouble. Each message carries
        /// this; Apple's service wants an address that exists.
        pub push_contact: String = CONTACT.or("mailto:hearth@example.com".to_owned()), writable;
    }
}

const PUSH_HOST: Parsed<String> = Parsed {
    expected: "a host such as push.example, *.push.example or 127.0.0.1:8080",
    parse: |text| {
        let name = text.strip_prefix("*.").unwrap_or(text);
        let authority = Authority::parse(name)?;
        let is_name = matches!(authority.host, Host::Name(_));
        (is_name || name == text).then(|| text.to_ascii_lowercase())
    },
};

const CONTACT: Parsed<String> = Parsed {
    expected: "\"mailto:\" and an e-mail address, or an https URL",
    parse: |text| {
        let is_mail = |address: &str| {
            address.contains('@') && address.bytes().all(|byte| byte.is_ascii_graphic())
        };
        let is_page = || Url::parse(text).is_ok_and(|url| url.scheme == "https");
        let fits = text.strip_prefix("mailto:").map_or_else(is_page, is_mail);
        (fits && text.len() <= 200).then(|| text.to_owned())
    },
};

impl WebPush {
    /// Whether messages may be posted to this address: over TLS, or to this machine itself.
    pub fn allows(&self, endpoint: &Url) -> bool {
        let Authority { host, .. } = &endpoint.authority;
        let is_own = match host {
            Host::Address(address) => address.is_loopback(),
            Host::Name(name) => name == "localhost",
        };
        let is_listed = self.push_hosts.iter().any(|listed| {
            let name = listed.strip_prefix("*.").unwrap_or(listed);
            let Some(allowed) = Authority::parse(name) else {
                return false;
            };
            let is_host = match (host, &allowed.host) {
                (Host::Name(name), Host::Name(above)) if listed.starts_with("*.") => name
                    .strip_suffix(above.as_str())
                    .is_some_and(|below| below.len() > 1 && below.ends_with('.')),
                (host, allowed) => host == allowed,
            };
            is_host && allowed.port.is_none_or(|port| port == endpoint.port())
        });
        let is_safe = endpoint.scheme == "https" || (endpoint.scheme == "http" && is_own);
        is_listed && is_safe && endpoint.user.is_none()
    }
}

section! {
    /// Where one person is notified.
    #[derive(Clone, Debug, Serialize)]
    pub struct Notifications {
        /// The person's topic at an ntfy server.
        pub ntfy: Option<Ntfy> = object::<Ntfy>().optional("none");
        /// The person's application at a Gotify server.
        pub gotify: Option<Gotify> = object::<Gotify>().optional("none");
        /// When nothing is sent, in the household's time zone. What comes then is sent at the end.
        pub quiet_hours: Option<QuietHours> = QUIET_HOURS.optional("never");
        /// Whether notifications through ntfy and Gotify carry the question, the beginning of the
        /// reply or the message. Those to browsers do, encrypted.
        pub content: bool = Flag.or(false);
    }
}

section! {
    /// A topic of ntfy (<https://docs.ntfy.sh/publish/>).
    #[derive(Clone, Debug, PartialEq, Serialize)]
    pub struct Ntfy {
        /// The server's address, without the topic.
        #[serde(serialize_with = "masked_url")]
        pub url: String = UrlText(&["https", "http"]).or("https://ntfy.sh".to_owned());
        /// The topic. At a public server, whoever knows it reads along.
        #[serde(rename = "topic_set", serialize_with = "is_there")]
        pub topic: Secret = TopicText.required();
        /// An access token of the server.
        #[serde(rename = "token_set", serialize_with = "is_set")]
        pub token: Option<Secret> = SecretText.optional("none");
    }
}

section! {
    /// An application of Gotify (<https://gotify.net/docs/pushmsg>).
    #[derive(Clone, Debug, PartialEq, Serialize)]
    pub struct Gotify {
        /// The server's address.
        #[serde(serialize_with = "masked_url")]
        pub url: String = UrlText(&["https", "http"]).required();
        /// The application's token.
        #[serde(rename = "token_set", serialize_with = "is_there")]
        pub token: Secret = SecretText.required();
    }
}

default_is_absent!(Notifications, WebPush);

/// A topic, as ntfy allows it.
struct TopicText;

impl Rule for TopicText {
    type Output = Secret;

    fn expected(&self) -> Said {
        "a topic: 1 to 64 of A-Z a-z 0-9 _ -".into()
    }

    fn read(&self, reader: &mut Reader<'_>, path: &KeyPath, value: &Value) -> Option<Secret> {
        let topic = SecretText.read(reader, path, value)?;
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        let text = topic.expose();
        if (1..=64).contains(&text.len()) && text.bytes().all(letter) {
            return Some(topic);
        }
        reader.refuse(path, format_args!("must be {}", self.expected()));
        None
    }
}

/// A service that notifies a phone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushService {
    /// ntfy.
    Ntfy,
    /// Gotify.
    Gotify,
}

base::words! { PushService {
    Ntfy: "ntfy",
    Gotify: "gotify",
} }

impl Notifications {
    /// The addresses of the servers through which it goes.
    pub fn addresses(&self) -> impl Iterator<Item = &str> {
        let ntfy = self.ntfy.as_ref().map(|one| one.url.as_str());
        let gotify = self.gotify.as_ref().map(|one| one.url.as_str());
        ntfy.into_iter().chain(gotify)
    }

    /// Whether the same people read it as another one: those who have the same topics and
    /// applications, and get no more of a text.
    pub fn has_readers_of(&self, other: &Notifications) -> bool {
        (&self.ntfy, &self.gotify) == (&other.ntfy, &other.gotify)
            && (other.content || !self.content)
    }

    /// The services that are set up.
    pub fn services(&self) -> impl Iterator<Item = PushService> {
        let ntfy = self.ntfy.as_ref().map(|_| PushService::Ntfy);
        let gotify = self.gotify.as_ref().map(|_| PushService::Gotify);
        ntfy.into_iter().chain(gotify)
    }

    /// The address of the service that is called this, if it is set up.
    pub fn url_of(&self, service: &str) -> Option<&str> {
        let is_it = |one: &PushService| one.as_str() == service;
        Some(match self.services().find(is_it)? {
            PushService::Ntfy => &self.ntfy.as_ref()?.url,
            PushService::Gotify => &self.gotify.as_ref()?.url,
        })
    }
}

/// Until when a person's phones and browsers are quiet, if they are now: by what the person has
/// chosen, or else by the configuration.
pub fn quiet_until(
    own: Option<&str>,
    settings: Option<&Notifications>,
    now: Timestamp,
    zone: &Zone,
) -> Option<Timestamp> {
    let own = own.and_then(QuietHours::parse);
    let hours = own.or_else(|| settings?.quiet_hours)?;
    zone.end_of_daily(now, hours.from, hours.until)
}

/// A part of every day, which may last over midnight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuietHours {
    /// Its first minute after midnight.
    pub from: u16,
    /// The first minute after it.
    pub until: u16,
}

impl QuietHours {
    /// Reads a text such as `22:00-07:00`.
    pub fn parse(text: &str) -> Option<QuietHours> {
        (QUIET_HOURS.parse)(text)
    }
}

impl fmt::Display for QuietHours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, until) = (self.from, self.until);
        write!(
            f,
            "{:02}:{:02}-{:02}:{:02}",
            from / 60,
            from % 60,
            until / 60,
            until % 60
        )
    }
}

impl Serialize for QuietHours {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

const QUIET_HOURS: Parsed<QuietHours> = Parsed {
    expected: "two times of day, such as 22:00-07:00",
    parse: |text| {
        let (from, until) = text.split_once('-')?;
        let (from, until) = (minute_of_day(from)?, minute_of_day(until)?);
        (from != until).then_some(QuietHours { from, until })
    },
};

/// The minute of a time such as 07:30.
fn minute_of_day(text: &str) -> Option<u16> {
    let (hours, minutes) = text.trim().split_once(':')?;
    let number = |text: &str| {
        let is_number =
            (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| text.parse::<u16>().ok())?
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    (hours < 24 && minutes < 60).then_some(hours * 60 + minutes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_posted_to_push_services_alone() {
        let listed = |hosts: &[&str]| WebPush {
            push_hosts: hosts.iter().map(|&host| host.to_owned()).collect(),
            ..WebPush::default()
        };
        let usual = WebPush::default();
        let own = listed(&["127.0.0.1:81", "localhost", "push.lan"]);
        for (settings, endpoint, is_allowed) in [
            (&usual, "https://fcm.googleapis.com/fcm/send/a", true),
            (&usual, "https://FCM.googleapis.com:443/fcm/send/a", true),
            (
                &usual,
                "https://updates.push.services.mozilla.com/wpush/v2/a",
                true,
            ),
            (&usual, "https://web.push.apple.com/a", true),
            (
                &usual,
                "https://wns2-by3p.notify.windows.com/w/?token=a",
                true,
            ),
            (&usual, "http://fcm.googleapis.com/a", false),
            (&usual, "https://me@fcm.googleapis.com/a", false),
            (&usual, "https://fcm.googleapis.com.evil.example/a", false),
            (&usual, "https://evilpush.apple.com/a", false),
            (&usual, "https://push.apple.com/a", false),
            (&usual, "https://192.168.1.1/a", false),
            (&usual, "http://127.0.0.1:81/a", false),
            (&own, "http://127.0.0.1:81/a", true),
            (&own, "https://127.0.0.1:81/a", true),
            (&own, "http://127.0.0.1:82/a", false),
            (&own, "http://localhost:82/a", true),
            (&own, "https://push.lan/a", true),
            (&own, "http://push.lan/a", false),
            (&own, "ftp://localhost/a", false),
            (&own, "https://fcm.googleapis.com/a", false),
        ] {
            let url = Url::parse(endpoint).unwrap();
            assert_eq!(settings.allows(&url), is_allowed, "{endpoint}");
        }
        for (text, fits) in [
            ("push.example", true),
            ("*.push.example:8443", true),
            ("[::1]:81", true),
            ("*", false),
            ("*.127.0.0.1", false),
            ("https://push.example", false),
            ("", false),
        ] {
            assert_eq!((PUSH_HOST.parse)(text).is_some(), fits, "{text}");
        }
        for (text, fits) in [
            ("mailto:ada@example.org", true),
            ("https://example.org/contact", true),
            ("ada@example.org", false),
            ("mailto:ada", false),
            ("http://example.org", false),
        ] {
            assert_eq!((CONTACT.parse)(text).is_some(), fits, "{text}");
        }
    }
}
