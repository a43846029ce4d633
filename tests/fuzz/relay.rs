//! What a machine that means ill sends to a relay over a link that stands.

use std::sync::atomic::{AtomicUsize, Ordering};

use protocol::relay::{ClientNumber, Frame, FrameKind};
use serde_json::json;
use tungstenite::Message;

use super::mutation::mutate;
use super::{Effort, Home, LISTEN};
use support::model::Model;
use support::random::Random;
use support::relay_peers::{Line, Machine, TOKEN};

/// Changed frames after a good greeting, with a client on the link; and the
/// client's own changed messages. Links may end; the relay goes on.
pub fn relayed_frames(effort: Effort) {
    // A greeting has the time that it has in life, however busy the machine is.
    let settings = json!({
        "relay": { "enabled": true, "auth_token": TOKEN },
        "limits": {
            "connections_per_address": 512,
            "unauthenticated_per_address": 512,
        },
    });
    let home = Home::start(Model::saying("Fine."), settings);
    let frames = frames();
    let seeds = AtomicUsize::new(effort.seed as usize);
    let sent = home.attack(effort, 4, &frames, |home, bytes| {
        let mut random = Random::new(seeds.fetch_add(1, Ordering::Relaxed) as u64);
        let mut machine = Machine::link(home.address());
        let mut client = Line::client(home.address(), &machine.id);
        client.send(r#"{"type":"ping"}"#);
        machine.meet(r#"{"type":"ping"}"#);
        let mut next = bytes.to_vec();
        for _ in 0..8 {
            // Either line may be closed by now, and that is good.
            let _ = machine.line.0.send(Message::binary(next.clone()));
            let _ = client.0.send(Message::binary(next));
            let sample = &frames[random.below(frames.len())];
            next = mutate(&mut random, sample, &frames);
        }
        for line in [&mut client, &mut machine.line] {
            line.0.get_ref().set_read_timeout(Some(LISTEN)).unwrap();
            while line.0.read().is_ok() {}
        }
    });
    println!("{sent} links with broken frames");
}

fn frames() -> Vec<Vec<u8>> {
    // The first client of a link has the number 1 or 0; either is in use at times.
    [0, 1, 2, u32::MAX]
        .into_iter()
        .flat_map(|number| {
            [
                FrameKind::Text(r#"{"status":"ok","data":{}}"#),
                FrameKind::Binary(b"\x00\x01\x02"),
                FrameKind::Close {
                    code: 1000,
                    reason: "enough",
                },
            ]
            .map(|kind| Frame::new(ClientNumber(number), kind).encode())
        })
        .collect()
}
