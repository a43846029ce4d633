//! What a connection costs that has signed in and then says nothing.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::json;

use crate::floor::{self, Floor};
use crate::home::{Home, unlimited};
use crate::table::{Figure, Table, number};
use crate::websocket::WebSocket;

const COUNTS: [usize; 2] = [1_000, 5_000];

pub fn measure(table: &mut Table) {
    let home = Home::new(json!({ "limits": unlimited() }));
    for count in COUNTS {
        let server = home.start();
        // What the first connection brings with it is not the connections'.
        drop(WebSocket::signed_in(server.address, &home.token));
        let before = server.resident_kib();
        let held: Vec<TcpStream> = (0..count)
            .map(|_| WebSocket::signed_in(server.address, &home.token).into_socket())
            .collect();
        settle();
        let ours = (server.resident_kib() - before) / count as f64;
        drop(held);
        table.add(
            Figure::new(
                format!("memory of each of {}", number(count as f64)),
                ours,
                "KiB",
            )
            .floor(bare(count))
            .rival("420")
            .at_most(28.0)
            .how("resident memory; another rival ends at 64 connections"),
        );
    }
}

fn bare(count: usize) -> f64 {
    let floor = Floor::start(floor::ECHO);
    let before = floor.resident_kib();
    let held: Vec<TcpStream> = (0..count)
        .map(|_| {
            let mut socket = TcpStream::connect(floor.address).unwrap();
            socket.write_all(b"hello").unwrap();
            socket.read_exact(&mut [0; 5]).unwrap();
            socket
        })
        .collect();
    settle();
    let each = (floor.resident_kib() - before) / count as f64;
    drop(held);
    each
}

fn settle() {
    std::thread::sleep(Duration::from_secs(1));
}
