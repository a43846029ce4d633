//! A server of calendars: an account with CalDAV, and files.

use std::collections::BTreeMap;
use std::io::{BufReader, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, mpsc};

use super::MAX_WAIT;
use super::served::{Served, read_request};

/// What it asks for, unless a test changes it: the user name and password `ann` and `hidden-word`.
const AUTHORIZATION: &str = "Basic YW5uOmhpZGRlbi13b3Jk";

/// One request as it came: method, path, and the header `Authorization`.
pub type Request = (String, String, Option<String>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// By path, with their version.
    events: BTreeMap<String, (String, u64)>,
    /// Whole answers by path, with head.
    files: BTreeMap<String, Vec<u8>>,
    changes: u64,
    requests: Vec<Request>,
    refuses_password: bool,
    /// Paths whose requests are held until their end is dropped.
    held: Vec<(String, Arc<Mutex<mpsc::Receiver<()>>>)>,
}

/// The running server. Its account has the calendar `/ann/home/`.
pub struct CalendarServer {
    shared: Arc<Shared>,
    served: Served,
}

impl CalendarServer {
    pub fn start() -> CalendarServer {
        let shared = Arc::<Shared>::default();
        let served = {
            let shared = Arc::clone(&shared);
            Served::start(move |socket| serve(socket, &shared))
        };
        CalendarServer { shared, served }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.served.address)
    }

    /// Has this event from now on: lines of it between BEGIN and END.
    pub fn put(&self, name: &str, lines: &str) {
        let text = calendar(&format!("BEGIN:VEVENT\r\n{lines}\r\nEND:VEVENT\r\n"));
        let mut state = self.shared.state.lock().unwrap();
        state.changes += 1;
        let version = state.changes;
        state
            .events
            .insert(format!("/ann/home/{name}"), (text, version));
    }

    /// The text of an event, if it is there.
    pub fn event(&self, path: &str) -> Option<String> {
        let state = self.shared.state.lock().unwrap();
        state.events.get(path).map(|(text, _)| text.clone())
    }

    /// Where events are.
    pub fn paths(&self) -> Vec<String> {
        self.shared
            .state
            .lock()
            .unwrap()
            .events
            .keys()
            .cloned()
            .collect()
    }

    /// Answers a path with this, head and body.
    pub fn answer(&self, path: &str, answer: impl Into<Vec<u8>>) {
        let mut state = self.shared.state.lock().unwrap();
        state.files.insert(path.to_owned(), answer.into());
    }

    /// Answers a path with a file of this version.
    pub fn file(&self, path: &str, version: &str, text: &str) {
        let length = text.len();
        self.answer(
            path,
            format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/calendar\r\nETag: \"{version}\"\r\n\
                 Content-Length: {length}\r\n\r\n{text}"
            ),
        );
    }

    pub fn refuse_password(&self, refuses: bool) {
        self.shared.state.lock().unwrap().refuses_password = refuses;
    }

    /// Answers requests for paths that begin so only once what is returned is dropped.
    pub fn hold(&self, path: &str) -> mpsc::Sender<()> {
        let (sender, receiver) = mpsc::channel();
        let held = (path.to_owned(), Arc::new(Mutex::new(receiver)));
        self.shared.state.lock().unwrap().held.push(held);
        sender
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.state.lock().unwrap().requests.clone()
    }
}

/// A whole document with these components.
pub fn calendar(components: &str) -> String {
    format!("BEGIN:VCALENDAR\r\nVERSION:2.0\r\n{components}END:VCALENDAR\r\n")
}

fn serve(socket: TcpStream, shared: &Shared) {
    socket.set_read_timeout(Some(MAX_WAIT)).unwrap();
    let mut reader = BufReader::new(socket);
    while let Some((head, body)) = read_request(&mut reader) {
        let header = |name: &str| {
            let mut lines = head.lines().filter_map(|line| line.split_once(':'));
            let (_, value) = lines.find(|(known, _)| known.eq_ignore_ascii_case(name))?;
            Some(value.trim().to_owned())
        };
        let mut words = head.split_whitespace();
        let (method, path) = (words.next().unwrap(), words.next().unwrap());
        let held = {
            let mut state = shared.state.lock().unwrap();
            let request = (method.to_owned(), path.to_owned(), header("authorization"));
            state.requests.push(request);
            let held = state
                .held
                .iter()
                .find(|(start, _)| path.starts_with(start.as_str()));
            held.map(|(_, end)| Arc::clone(end))
        };
        if let Some(held) = held {
            let _ = held.lock().unwrap().recv_timeout(MAX_WAIT);
        }
        let body = String::from_utf8_lossy(&body).into_owned();
        let answer = shared
            .state
            .lock()
            .unwrap()
            .answer(method, path, &header, &body);
        if reader.get_mut().write_all(&answer).is_err() {
            return;
        }
    }
}

fn status(status: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").into_bytes()
}

fn places(responses: &str) -> Vec<u8> {
    let body = format!(
        "<?xml version=\"1.0\"?><D:multistatus xmlns:D=\"DAV:\" \
         xmlns:C=\"urn:ietf:params:xml:ns:caldav\">{responses}</D:multistatus>"
    );
    let length = body.len();
    format!("HTTP/1.1 207 Multi-Status\r\nContent-Length: {length}\r\n\r\n{body}").into_bytes()
}

fn place(href: &str, properties: &str) -> String {
    format!(
        "<D:response><D:href>{href}</D:href><D:propstat><D:prop>{properties}</D:prop>\
         <D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>"
    )
}

impl State {
    fn answer(
        &mut self,
        method: &str,
        path: &str,
        header: &dyn Fn(&str) -> Option<String>,
        body: &str,
    ) -> Vec<u8> {
        if let Some(file) = self.files.get(path) {
            let known = header("if-none-match").filter(|known| {
                String::from_utf8_lossy(file).contains(&format!("ETag: {known}\r\n"))
            });
            return match (method, known) {
                _ if file.starts_with(b"HTTP/1.1 30") => file.clone(),
                ("GET", Some(_)) => status("304 Not Modified"),
                ("GET", None) => file.clone(),
                _ => status("405 Method Not Allowed"),
            };
        }
        if self.refuses_password || header("authorization").as_deref() != Some(AUTHORIZATION) {
            return status("401 Unauthorized");
        }
        let user = "<D:current-user-principal><D:href>/ann/</D:href></D:current-user-principal>";
        let home = format!(
            "<D:resourcetype><D:collection/><C:calendar/></D:resourcetype>\
             <D:displayname>Home</D:displayname><D:sync-token>{}</D:sync-token>{user}",
            self.changes
        );
        match (method, path) {
            ("PROPFIND", "/.well-known/caldav") => {
                b"HTTP/1.1 301 Moved\r\nLocation: /dav/\r\nContent-Length: 0\r\n\r\n".to_vec()
            }
            ("PROPFIND", "/dav/") => places(&place("/dav/", user)),
            ("PROPFIND", "/ann/") if header("depth").as_deref() == Some("0") => places(&place(
                "/ann/",
                "<C:calendar-home-set><D:href>/ann/</D:href></C:calendar-home-set>\
                 <C:calendar-user-address-set><D:href>mailto:ann@example.org</D:href>\
                 </C:calendar-user-address-set>",
            )),
            ("PROPFIND", "/ann/") => places(&format!(
                "{}{}",
                place("/ann/", "<D:resourcetype><D:collection/></D:resourcetype>"),
                place("/ann/home/", &home)
            )),
            ("PROPFIND", "/ann/home/") => places(&place("/ann/home/", &home)),
            ("REPORT", "/ann/home/") if body.contains("calendar-query") => {
                let events = self.events.iter().map(|(path, (text, version))| {
                    let text = text.replace('&', "&amp;").replace('<', "&lt;");
                    let properties = format!(
                        "<D:getetag>\"{version}\"</D:getetag><C:calendar-data>{text}\
                         </C:calendar-data>"
                    );
                    place(path, &properties)
                });
                places(&events.collect::<String>())
            }
            ("GET", _) => match self.events.get(path) {
                Some((text, version)) => format!(
                    "HTTP/1.1 200 OK\r\nETag: \"{version}\"\r\nContent-Length: {}\r\n\r\n{text}",
                    text.len()
                )
                .into_bytes(),
                None => status("404 Not Found"),
            },
            ("PUT" | "DELETE", _) if path.starts_with("/ann/home/") => {
                let known = self
                    .events
                    .get(path)
                    .map(|(_, version)| format!("\"{version}\""));
                let fits = match header("if-match") {
                    Some(wanted) => known == Some(wanted),
                    None => header("if-none-match").as_deref() == Some("*") && known.is_none(),
                };
                if !fits {
                    return status("412 Precondition Failed");
                }
                self.changes += 1;
                match method {
                    "PUT" => drop(
                        self.events
                            .insert(path.to_owned(), (body.to_owned(), self.changes)),
                    ),
                    _ => drop(self.events.remove(path)),
                }
                status("204 No Content")
            }
            _ => status("404 Not Found"),
        }
    }
}
