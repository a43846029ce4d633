//! Against a scripted server on loopback, which the tests open to the tool.

use std::time::Duration;

use super::super::pdf::pdf_obstacle;
use super::super::pdf::samples::{endless, letter};
use super::super::testing::Household;
use super::*;
use base::testing::{rows, skipped};
use config::AddressPatterns;
use net::http_client::test_server::{Act, TestServer, whole};
use store::Viewer;

fn tool(addresses: &[&str], hosts: &[&str]) -> WebFetch {
    let settings = config::WebFetch {
        enabled: true,
        allow: Reachable {
            addresses: AddressPatterns::parse(addresses).unwrap(),
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
        },
        timeout_seconds: 2,
        trusted_hosts: Vec::new(),
        addresses_per_turn: 20,
        max_bytes: 2_000,
    };
    WebFetch::new(&settings, Trust::default())
}

fn fetch(url: &str) -> Result<String, String> {
    let tool = tool(&["127.0.0.0/8"], &[]);
    Household::new().run_tool(&tool, json!({"url": url}))
}

/// Serves one answer and returns what the tool makes of it, with `URL` for the
/// server's address.
fn fetched(status: u16, headers: &str, body: &str) -> Result<String, String> {
    let server = TestServer::new(vec![whole(status, headers, body)]);
    let hide = |text: String| text.replace(&server.url(), "URL");
    fetch(&server.url()).map(hide).map_err(hide)
}

/// The header with this type, if there is one.
fn content_type(media_type: &str) -> String {
    match media_type {
        "" => String::new(),
        media_type => format!("Content-Type: {media_type}\r\n"),
    }
}

#[test]
fn a_page_becomes_text() {
    let table = "
        text/html; charset=utf-8 | HTML    | URL¶Title: News¶¶# Today¶¶It rains.
                                 | HTML    | URL¶Title: News¶¶# Today¶¶It rains.
        text/plain               | <b>¶x   | URL¶¶<b>¶x
        application/json         | {\"a\":1} | URL¶¶{\"a\":1}
        application/feed+xml     | <rss/>  | URL¶¶<rss/>
        application/rss+xml      | RSS     | URL¶Title: Village¶¶## Fair & market¶Sat, 14 Mar 2026¶https://a.example/1¶Cakes & tea.¶¶## Bins
        text/xml                 | ATOM    | URL¶Title: Lake¶¶## Ice¶2026-01-02T03:04:05Z¶https://a.example/2¶No skating.
        application/rdf+xml      | RDF     | URL¶Title: Coast¶¶## Tide¶2026-01-03¶https://a.example/3¶High at noon.
        application/xml          | <?xml?><rss><channel><title>Empty</title></channel></rss> | URL¶Title: Empty¶¶[the feed has no entries]
        text/html                |         | URL¶¶[the page holds no readable text]
    ";
    let html = "<title>News</title><nav>menu</nav><h1>Today</h1><p>It <b>rains</b>.";
    // Cut off, as a long one is.
    let rss = "<?xml version='1.0'?><rss><channel><title>Village</title><item>\
               <title>Fair &amp; market</title><link>https://a.example/1</link>\
               <description><![CDATA[<p>Cakes &amp; <b>tea</b>.<p hidden>SECRET]]></description>\
               <pubDate>Sat, 14 Mar 2026</pubDate></item><item><title>Bins</title><desc";
    let atom = "<feed><title type='text'>Lake</title><entry><title>Ice</title>\
                <link rel='self' href='https://a.example/self'/><link href='https://a.example/2'/>\
                <updated>2026-01-02T03:04:05Z</updated>\
                <content type='html'>No &lt;b>skating&lt;/b>.</content></entry></feed>";
    let rdf = "<rdf:RDF><channel><title>Coast</title></channel>\
               <item rdf:about='https://a.example/3'><title>Tide</title>\
               <link>https://a.example/3</link><description>High at noon.</description>\
               <dc:date>2026-01-03</dc:date></item></rdf:RDF>";
    for [media_type, body, expected] in rows(table) {
        let body = body
            .replace("RDF", rdf)
            .replace("HTML", html)
            .replace("RSS", rss)
            .replace("ATOM", atom);
        let body = body.replace('¶', "\n");
        let expected = expected.replace('¶', "\n");
        let found = fetched(200, &content_type(media_type), &body);
        assert_eq!(found, Ok(expected), "{media_type}");
    }
    let long = fetched(200, "Content-Type: text/plain\r\n", &"x".repeat(3_000)).unwrap();
    assert!(
        long.ends_with("[only the first 2000 bytes of the page were read]"),
        "{long}"
    );
}

#[test]
fn what_is_no_text_is_refused_with_a_sentence() {
    let table = "
        200 | image/png     | x              | URL is not text but image/png, which cannot be read
        200 | image/svg+xml | x              | URL is not text but image/svg+xml, which cannot be read
        200 | text/html     | a0b            | URL is binary, 3 bytes
        404 | text/html     | <h1>Gone</h1>  | URL was answered with status 404: # Gone
        500 | image/png     | x              | URL was answered with status 500
    ";
    for [status, media_type, body, why] in rows(table) {
        let (status, headers) = (status.parse().unwrap(), &content_type(media_type));
        let body = &body.replace('0', "\0");
        assert_eq!(fetched(status, headers, body), Err(why.to_owned()));
    }
    let unchanged = fetched(304, "", "").unwrap_err();
    assert_eq!(unchanged, "URL was answered with status 304: ");
}

#[test]
fn a_pdf_is_read_or_refused_in_time() {
    let fetch_pdf = |pdf: Vec<u8>| {
        let length = pdf.len();
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\nContent-Length: {length}\r\n\r\n"
        );
        let script = vec![Act::Send([head.into_bytes(), pdf].concat())];
        let server = TestServer::new(vec![script]);
        fetch(&server.url()).map_err(|why| why.replace(&server.url(), "URL"))
    };
    if let Some(obstacle) = pdf_obstacle() {
        let why = format!("URL is a PDF, which cannot be read here: {obstacle}");
        assert_eq!(fetch_pdf(letter(&["Hi"])), Err(why));
        return skipped(obstacle);
    }
    let text = fetch_pdf(letter(&["The boiler", "costs 62 EUR"])).unwrap();
    assert!(
        text.ends_with("\n\n[page 1]\nThe boiler\ncosts 62 EUR"),
        "{text}"
    );
    let problem = fetch_pdf(b"%PDF-1.4".to_vec()).unwrap_err();
    assert_eq!(problem, "URL is a PDF that is damaged or protected");
    // Whoever else waits for a tool meanwhile is served.
    std::thread::scope(|scope| {
        let hostile = scope.spawn(|| fetch_pdf(endless()));
        let server = TestServer::new(vec![whole(200, "", "there")]);
        assert!(fetch(&server.url()).unwrap().ends_with("there"));
        let problem = hostile.join().unwrap().unwrap_err();
        assert_eq!(problem, "URL is a PDF that takes too long to read");
    });
}

#[test]
fn redirects_are_followed_one_by_one_and_counted() {
    let to = |target: &str| whole(302, &format!("Location: {target}\r\n"), "");
    let server = TestServer::new(vec![to("/a/b?x=1"), to("../c"), whole(200, "", "there")]);
    let origin = server.url().replace("/v1", "");
    assert_eq!(fetch(&server.url()), Ok(format!("{origin}/c\n\nthere")));
    let lines: Vec<String> = server
        .heard()
        .iter()
        .map(|heard| heard.head.lines().next().unwrap().to_owned())
        .collect();
    assert_eq!(
        lines,
        [
            "GET /v1 HTTP/1.1",
            "GET /a/b?x=1 HTTP/1.1",
            "GET /c HTTP/1.1"
        ]
    );

    let server = TestServer::new(vec![to("/again"); 7]);
    let endless = fetch(&server.url()).unwrap_err();
    assert!(endless.contains("over 5 redirects"), "{endless}");
    assert_eq!(server.heard().len(), 6);
    for (target, why) in [
        ("ftp://127.0.0.1/x", "only https"),
        ("http://me:pw@127.0.0.1/", "user name"),
        ("http://10.255.255.1/", "10.255.255.1 is a private address"),
        ("http://[::1]:9/", "is this machine"),
        ("http://169.254.169.254/latest/meta-data", "link-local"),
    ] {
        let server = TestServer::new(vec![to(target)]);
        let problem = fetch(&server.url()).unwrap_err();
        assert!(problem.contains(why), "{target}: {problem}");
    }
}

#[test]
fn what_the_model_is_shown_leads_to_no_other_host_that_nobody_was_asked_about() {
    let to = |target: String| whole(302, &format!("Location: {target}\r\n"), "");
    let other = TestServer::new(vec![whole(200, "", "there"); 2]);
    let other_url = other.url().replace("127.0.0.1", "localhost");
    let fetch_from = |household: &Household| {
        let server = TestServer::new(vec![to("/a".to_owned()), to(other_url.clone())]);
        let tool = tool(&["127.0.0.0/8", "::1"], &["localhost"]);
        household.run_tool(&tool, json!({ "url": server.url() }))
    };
    let mut household = Household::new();
    household.stays_on_host = true;
    let problem = fetch_from(&household).unwrap_err();
    let told = format!("redirects to another host: if you need what is there, fetch {other_url}");
    assert!(problem.ends_with(&told), "{problem}");
    household.config.tools.web_fetch.trusted_hosts = vec!["localhost".to_owned()];
    assert!(fetch_from(&household).is_ok());
    assert!(fetch_from(&Household::new()).is_ok());
    assert_eq!(other.heard().len(), 2);
}

#[test]
fn the_house_is_closed_unless_the_owner_opens_it() {
    // Would answer, if it was asked.
    let server = TestServer::new(vec![whole(200, "", "inside"); 3]);
    let port = server.address.rsplit_once(':').unwrap().1;
    let household = Household::new();
    let run = |tool: &WebFetch, host: &str| {
        household.run_tool(tool, json!({"url": format!("http://{host}:{port}/")}))
    };
    let closed = tool(&[], &[]);
    for host in [
        "127.0.0.1",
        "localhost",
        "127.1",
        "2130706433",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "0.0.0.0",
        "[::]",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
    ] {
        let problem = run(&closed, host).unwrap_err();
        assert!(
            problem.contains("tools.web_fetch.allow"),
            "{host}: {problem}"
        );
    }
    assert!(server.heard().is_empty(), "nothing was sent");
    assert!(run(&tool(&["127.0.0.1"], &[]), "127.0.0.1").is_ok());
    assert!(run(&tool(&["127.0.0.1"], &[]), "localhost").is_ok());
    assert!(run(&tool(&[], &["localhost"]), "LocalHost").is_ok());
    assert!(run(&tool(&["10.0.0.0/8"], &["nas.lan"]), "127.0.0.1").is_err());
    assert_eq!(server.heard().len(), 3);
}

#[test]
fn links_are_listed_with_their_whole_address() {
    let page = "<base href='/sub/'><a href='one'>One</a><a href='https://b.example/'>Two</a>\
                <a href='one'>One</a>";
    let server = TestServer::new(vec![whole(200, "Content-Type: text/html\r\n", page)]);
    let tool = tool(&["127.0.0.1"], &[]);
    let listed = Household::new().run_tool(&tool, json!({"url": server.url(), "links": true}));
    let origin = server.url().replace("/v1", "");
    assert_eq!(
        listed.unwrap(),
        format!("{origin}/v1\n\n- One: {origin}/sub/one\n- Two: https://b.example/")
    );
    let feed = "<feed><entry><title>Ice</title><link href='/ice'/></entry></feed>";
    let server = TestServer::new(vec![whole(200, "Content-Type: text/xml\r\n", feed)]);
    let listed = Household::new().run_tool(&tool, json!({"url": server.url(), "links": true}));
    let origin = server.url().replace("/v1", "");
    assert_eq!(
        listed.unwrap(),
        format!("{origin}/v1\n\n- Ice: {origin}/ice")
    );
}

#[test]
fn a_server_that_hangs_or_trickles_is_left_in_time() {
    let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n".to_vec();
    let mut trickle = vec![Act::Send(head)];
    for _ in 0..100 {
        trickle.extend([
            Act::Send(b"x".to_vec()),
            Act::Pause(Duration::from_millis(100)),
        ]);
    }
    for script in [vec![Act::Hang], trickle] {
        let server = TestServer::new(vec![script]);
        let problem = fetch(&server.url()).unwrap_err();
        assert!(problem.contains("within 2 seconds"), "{problem}");
    }
    let server = TestServer::new(vec![vec![Act::Close]]);
    assert!(fetch(&server.url()).unwrap_err().contains("gave no answer"));
}

#[test]
fn a_person_is_told_the_address() {
    let household = Household::new();
    let tool = tool(&[], &[]);
    for (url, intent) in [
        ("https://a.example#x", "read the page https://a.example/"),
        ("nonsense", "read the page nonsense"),
    ] {
        let arguments = json!({"url": url});
        assert_eq!(
            tool.intent(
                arguments.as_object().unwrap(),
                &household.approver(&Viewer::server())
            )
            .unwrap()
            .action,
            intent
        );
    }
}
