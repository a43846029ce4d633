//! CalDAV (RFC 4791): where an account has its calendars, and what is in one.

use serde_json::{Map, Value};

use super::reading::{Reading, View, address, utc};
use super::remote::{Answer, Remote};
use crate::tools::web_fetch::join;
use crate::tools::xml::{self, list};
use base::language::Said;

/// What is asked of a place.
const WANTED: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\
    <d:propfind xmlns:d=\"DAV:\" xmlns:c=\"urn:ietf:params:xml:ns:caldav\" \
    xmlns:s=\"http://calendarserver.org/ns/\"><d:prop><d:resourcetype/><d:displayname/>\
    <d:current-user-principal/><d:current-user-privilege-set/><d:sync-token/><s:getctag/>\
    <c:calendar-home-set/><c:calendar-user-address-set/><c:supported-calendar-component-set/>\
    </d:prop></d:propfind>";

/// A calendar at its server.
#[derive(Clone, Debug, Default)]
pub(super) struct Collection {
    pub url: String,
    pub name: String,
    /// Changes with what is in it.
    pub version: Option<String>,
    pub can_write: bool,
    /// Under which addresses its owner is invited.
    pub addresses: Vec<String>,
}

/// A place of a server: its address, and what the server says of it.
struct Place {
    url: String,
    /// An object.
    properties: Value,
}

/// Finds the calendar of an account: the one at this address, or else the only one or the one of
/// this name. None where the address is of no such server.
///
/// # Errors
/// Why there is none, for a person.
pub(super) fn discover(
    remote: &Remote<'_>,
    url: &str,
    name: &str,
) -> Result<Option<Collection>, Said> {
    let mut first = ask(remote, url, "0")?;
    if !matches!(first.0.status, 207 | 401 | 403) {
        // RFC 6764, section 5.
        let well_known = ask(remote, &join(url, "/.well-known/caldav"), "0")?;
        if well_known.0.status == 207 {
            first = well_known;
        }
    }
    let (answer, places) = first;
    match answer.status {
        207 => {}
        401 | 403 => return Err(answer.problem()),
        _ => return Ok(None),
    }
    let Some(place) = places.into_iter().next() else {
        return Ok(None);
    };
    let principal = href(&place.properties, "current-user-principal");
    let principal = match principal {
        Some(principal) => ask(remote, &join(&place.url, &principal), "0")?
            .1
            .into_iter()
            .next(),
        None => None,
    };
    let addresses = principal
        .iter()
        .flat_map(|one| addresses(&one.properties))
        .collect::<Vec<_>>();
    if is_calendar(&place.properties) {
        return Ok(Some(collection(&place, addresses)));
    }
    let mut homes = principal.iter().chain([&place]);
    let home =
        homes.find_map(|one| Some(join(&one.url, &href(&one.properties, "calendar-home-set")?)));
    let home = home.unwrap_or_else(|| place.url.clone());
    let (answer, places) = ask(remote, &home, "1")?;
    if answer.status != 207 {
        return Err(answer.problem());
    }
    let calendars = places.iter().filter(|one| is_calendar(&one.properties));
    let calendars: Vec<Collection> = calendars
        .map(|one| collection(one, addresses.clone()))
        .collect();
    let named = calendars
        .iter()
        .find(|one| one.name.to_lowercase() == name.to_lowercase());
    match (named, &calendars[..]) {
        (Some(one), _) | (None, [one]) => Ok(Some(one.clone())),
        (None, []) => Err(Said::of("calendar.none", &[])),
        (None, all) => {
            let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).take(20).collect();
            let names = names.join(", ");
            Err(Said::of("calendar.several", &[("names", &names)]))
        }
    }
}

/// The calendar at an address, as it is now.
///
/// # Errors
/// Why it cannot be read, for a person.
pub(super) fn look(remote: &Remote<'_>, url: &str) -> Result<Collection, Said> {
    let (answer, places) = ask(remote, url, "0")?;
    match places.into_iter().next() {
        Some(place) if answer.status == 207 => Ok(collection(&place, Vec::new())),
        _ => Err(answer.problem()),
    }
}

/// All times of the events of a calendar, and what was left out.
///
/// # Errors
/// Why it cannot be read, for a person.
pub(super) fn events(
    remote: &Remote<'_>,
    url: &str,
    view: View,
) -> Result<(Vec<store::EventTime>, Option<Said>), Said> {
    let (from, until) = view.window();
    let query = format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\
         <c:calendar-query xmlns:d=\"DAV:\" xmlns:c=\"urn:ietf:params:xml:ns:caldav\"><d:prop>\
         <d:getetag/><c:calendar-data/></d:prop><c:filter><c:comp-filter name=\"VCALENDAR\">\
         <c:comp-filter name=\"VEVENT\"><c:time-range start=\"{}\" end=\"{}\"/></c:comp-filter>\
         </c:comp-filter></c:filter></c:calendar-query>",
        utc(from),
        utc(until),
    );
    let answer = remote.send("REPORT", url, &headers("1"), Some(query.as_bytes()))?;
    if answer.status != 207 {
        return Err(answer.problem());
    }
    let mut reading = Reading::new(view);
    for place in places(&answer)? {
        if let Some(text) = place.properties["calendar-data"].as_str() {
            reading.add(text.as_bytes(), Some(&place.url));
        }
    }
    Ok(reading.finish())
}

fn headers(depth: &str) -> [(&str, &str); 2] {
    [
        ("depth", depth),
        ("content-type", "application/xml; charset=utf-8"),
    ]
}

fn ask(remote: &Remote<'_>, url: &str, depth: &str) -> Result<(Answer, Vec<Place>), Said> {
    let answer = remote.send("PROPFIND", url, &headers(depth), Some(WANTED.as_bytes()))?;
    let places = match answer.status {
        207 => places(&answer)?,
        _ => Vec::new(),
    };
    Ok((answer, places))
}

/// The places of an answer, with the properties that they have.
fn places(answer: &Answer) -> Result<Vec<Place>, Said> {
    let text = String::from_utf8_lossy(&answer.body);
    let document = xml::data(&text).ok_or_else(|| Said::of("calendar.no_xml", &[]))?;
    let responses = &document["multistatus"]["response"];
    let places = list(responses).iter().filter_map(|response| {
        let href = response["href"].as_str()?;
        let mut properties = Map::new();
        for one in list(&response["propstat"]) {
            let is_found = one["status"]
                .as_str()
                .is_some_and(|status| status.contains(" 200"));
            if let (true, Value::Object(found)) = (is_found, &one["prop"]) {
                properties.extend(found.clone());
            }
        }
        let url = join(&answer.url, href);
        let properties = properties.into();
        Some(Place { url, properties })
    });
    Ok(places.collect())
}

fn href(properties: &Value, name: &str) -> Option<String> {
    let first = list(&properties[name]["href"]).first()?;
    first.as_str().map(str::to_owned)
}

fn addresses(properties: &Value) -> Vec<String> {
    let all = list(&properties["calendar-user-address-set"]["href"]).iter();
    all.filter_map(|one| one.as_str().map(address)).collect()
}

fn is_calendar(properties: &Value) -> bool {
    let parts = list(&properties["supported-calendar-component-set"]["comp"]);
    let is_of_events = |part: &Value| part["@name"] == "VEVENT";
    properties["resourcetype"].get("calendar").is_some()
        && (parts.is_empty() || parts.iter().any(is_of_events))
}

fn collection(place: &Place, addresses: Vec<String>) -> Collection {
    let properties = &place.properties;
    let property = |name: &str| properties[name].as_str().map(str::to_owned);
    let rights = properties.get("current-user-privilege-set");
    let may = |one: &Value| {
        ["all", "write", "write-content"]
            .iter()
            .any(|name| one.get(name).is_some())
    };
    Collection {
        url: place.url.clone(),
        name: property("displayname")
            .filter(|name| !name.is_empty())
            .unwrap_or_else(|| {
                let last = place.url.trim_end_matches('/').rsplit('/').next();
                last.unwrap_or_default().to_owned()
            }),
        version: property("getctag").or_else(|| property("sync-token")),
        can_write: rights.is_none_or(|set| list(&set["privilege"]).iter().any(may)),
        addresses,
    }
}
