//! Against a scripted server on loopback.

use super::*;
use crate::agent::provider::test_server::{Act, TestServer, stream_head, whole};

fn get(outbound: &Outbound, url: &str) -> Result<(u16, Vec<u8>), OutboundError> {
    let outgoing = Outgoing {
        method: "GET",
        url,
        headers: &[],
        body: None,
        deadline: Instant::now() + Duration::from_secs(10),
        cancel: &Cancel::default(),
    };
    outbound.exchange(&outgoing, |answer| {
        Ok((answer.status(), answer.read_all(10)?))
    })
}

#[test]
fn connections_are_kept_and_bodies_are_bounded() {
    let server = TestServer::new(vec![
        whole(200, "", "0123456789"),
        whole(404, "", "none"),
        whole(200, "", "0123456789x"),
        whole(204, "", ""),
    ]);
    let outbound = Outbound::new();
    let url = server.url();
    assert_eq!(get(&outbound, &url).unwrap().1, b"0123456789");
    assert_eq!(get(&outbound, &url).unwrap(), (404, b"none".to_vec()));
    assert_eq!(get(&outbound, &url), Err(OutboundError::TooLarge(10)));
    assert_eq!(get(&outbound, &url).unwrap().0, 204);
    let connections: Vec<usize> = server
        .heard()
        .iter()
        .map(|heard| heard.connection)
        .collect();
    assert_eq!(connections, [0, 0, 0, 1], "a failure ends its connection");
}

#[test]
fn addresses_that_cannot_be_used_are_named() {
    let outbound = Outbound::new();
    for url in ["", "nowhere", "/path", "ftp://127.0.0.1/x", "http://"] {
        assert!(
            matches!(get(&outbound, url), Err(OutboundError::Address(_))),
            "{url:?}"
        );
    }
    let unknown = get(&outbound, "http://no-such-host.invalid/");
    assert!(
        matches!(unknown, Err(OutboundError::Unreachable(_))),
        "{unknown:?}"
    );
}

#[test]
fn names_are_resolved() {
    let server = TestServer::new(vec![whole(200, "", "one"), whole(200, "", "two")]);
    let port = server.address.rsplit(':').next().unwrap();
    let url = format!("http://localhost:{port}/");
    let outbound = Outbound::new();
    assert_eq!(get(&outbound, &url).unwrap().1, b"one");
    assert_eq!(get(&outbound, &url).unwrap().1, b"two");
}

#[test]
fn silence_is_told_from_the_deadline() {
    let server = TestServer::new(vec![vec![stream_head(), Act::Hang]]);
    let outgoing = Outgoing {
        method: "POST",
        url: &server.url(),
        headers: &[("x-test", "1")],
        body: Some(b"{}"),
        deadline: Instant::now() + Duration::from_secs(10),
        cancel: &Cancel::default(),
    };
    let limit = Duration::from_millis(30);
    let result = Outbound::new().exchange(&outgoing, |answer| {
        answer.limit_silence(limit);
        answer.read_all(10)
    });
    assert_eq!(result, Err(OutboundError::Silent(limit)));
    assert!(server.heard()[0].head.contains("x-test: 1\r\n"));
}

#[test]
fn only_so_many_agents_are_kept() {
    let outbound = Outbound::new();
    for port in 0..2 * IDLE_AGENTS {
        let uri: Uri = format!("http://127.0.0.1:{}/", port + 1).parse().unwrap();
        let slot = outbound.take(&uri).unwrap();
        outbound.put_back(slot);
    }
    let idle = outbound.idle.lock().unwrap();
    assert_eq!(idle.len(), IDLE_AGENTS);
    assert!(idle.iter().all(|slot| slot.used));
    assert!(idle.iter().any(|slot| slot.origin.ends_with(":32")));
}
