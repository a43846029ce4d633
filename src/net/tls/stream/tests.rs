//! Both ends over loopback sockets.

use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;

use super::*;
use crate::tls::Acceptor;
use crate::tls::testing::{Certificates, Files};
use base::testing::MAX_WAIT;

fn soon() -> Instant {
    Instant::now() + MAX_WAIT
}

fn listener() -> (TcpListener, std::net::SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// A server's end, in its own thread.
fn serve<T: Send + 'static>(
    files: &Files,
    serve: impl FnOnce(io::Result<SecureStream>) -> T + Send + 'static,
) -> (std::net::SocketAddr, JoinHandle<T>) {
    let config = Acceptor::open(&files.certificate, &files.key)
        .unwrap()
        .config();
    let (listener, address) = listener();
    let server = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut accepted = accept(Socket::new(Arc::new(stream)), config, soon());
        if let Ok(stream) = &mut accepted {
            stream.set_read_timeout(ReadTimeout::Until(soon()));
            stream.set_write_deadline(soon());
        }
        serve(accepted)
    });
    (address, server)
}

fn echo(accepted: io::Result<SecureStream>) {
    let mut stream = accepted.unwrap();
    let mut buffer = vec![0; 50_000];
    loop {
        match stream.read(&mut buffer).unwrap() {
            0 => return,
            count => stream.write_all(&buffer[..count]).unwrap(),
        }
    }
}

fn client(address: std::net::SocketAddr, host: &str, trust: &Trust) -> io::Result<SecureStream> {
    connect(
        Socket::new(Arc::new(TcpStream::connect(address).unwrap())),
        host,
        trust,
        soon(),
    )
}

#[test]
fn bytes_of_any_number_go_both_ways() {
    let folder = Certificates::default();
    let files = folder.certificate("home", &["localhost", "127.0.0.1"]);
    for host in ["localhost", "127.0.0.1"] {
        let (address, server) = serve(&files, echo);
        let trust = Trust::new(Some(&files.certificate));
        let mut stream = client(address, host, &trust).unwrap();
        stream.set_read_timeout(ReadTimeout::Until(soon()));
        for length in [1, 100, RECORD_BYTES, RECORD_BYTES + 1] {
            let sent: Vec<u8> = (0..length).map(|byte| byte as u8).collect();
            stream.set_write_deadline(soon());
            stream.write_all(&sent).unwrap();
            let mut received = vec![0; length];
            stream.read_exact(&mut received).unwrap();
            assert_eq!(received, sent);
        }
        stream.finish().unwrap();
        assert_eq!(stream.read(&mut [0; 8]).unwrap(), 0);
        server.join().unwrap();
    }
}

#[test]
fn who_cannot_be_trusted_is_not_talked_to() {
    let folder = Certificates::default();
    let files = folder.certificate("home", &["localhost"]);
    let other = folder.certificate("other", &["localhost"]);
    let known = Trust::new(Some(&files.certificate));
    for (trust, host, says) in [
        (Trust::default(), "localhost", Some("nobody who is trusted")),
        (
            Trust::new(Some(&other.certificate)),
            "localhost",
            Some("nobody who is trusted"),
        ),
        (known.clone(), "pi.local", Some("for other names")),
        (known, "localhost", None),
        (Trust::pinned(&files.certificate), "192.0.2.1", None),
        (
            Trust::pinned(&other.certificate),
            "localhost",
            Some("not the one in"),
        ),
    ] {
        let (address, server) = serve(&files, |accepted| accepted.is_ok());
        let connected = client(address, host, &trust);
        let error = connected.as_ref().err().map(ToString::to_string);
        match says {
            None => assert_eq!(error, None),
            Some(says) => assert!(
                error.as_deref().is_some_and(|error| error.contains(says)),
                "{trust:?} {host}: {error:?}"
            ),
        }
        drop(connected);
        // In TLS 1.3 a server is done before the client has judged it.
        server.join().unwrap();
    }
    let (listener, address) = listener();
    let error = client(address, "no host", &Trust::default()).err().unwrap();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    drop(listener);
}

#[test]
fn every_read_timeout_expires() {
    let folder = Certificates::default();
    let files = folder.certificate("home", &["localhost"]);
    let (address, server) = serve(&files, |accepted| {
        let mut stream = accepted.unwrap();
        let soon_over = Instant::now() + Duration::from_millis(30);
        for (timeout, kind) in [
            (ReadTimeout::Until(soon_over), io::ErrorKind::TimedOut),
            (ReadTimeout::Until(Instant::now()), io::ErrorKind::TimedOut),
            (ReadTimeout::Never, io::ErrorKind::WouldBlock),
        ] {
            stream.set_read_timeout(timeout);
            let error = stream.read(&mut [0; 8]).unwrap_err();
            assert_eq!(error.kind(), kind, "{timeout:?}");
        }
        // Half of what is there is read; the rest waits here, not in the socket.
        stream.write_all(b"go").unwrap();
        stream.set_read_timeout(ReadTimeout::Until(soon()));
        assert!(!stream.has_buffered());
        assert_eq!(stream.read(&mut [0; 4]).unwrap(), 4);
        assert!(stream.has_buffered());
        // After its time a read fails even if there is something.
        stream.set_read_timeout(ReadTimeout::Until(Instant::now()));
        assert!(stream.read(&mut [0; 4]).is_err());
        stream.set_read_timeout(ReadTimeout::Never);
        assert_eq!(stream.read(&mut [0; 8]).unwrap(), 4);
        assert!(!stream.has_buffered());
    });
    let trust = Trust::pinned(&files.certificate);
    let mut stream = client(address, "localhost", &trust).unwrap();
    stream.set_read_timeout(ReadTimeout::Until(soon()));
    assert_eq!(stream.read(&mut [0; 8]).unwrap(), 2);
    stream.set_write_deadline(soon());
    stream.write_all(b"abcdefgh").unwrap();
    server.join().unwrap();
}

#[test]
fn a_client_that_has_left_is_noticed_behind_nothing_but_its_goodbye() {
    let folder = Certificates::default();
    let files = folder.certificate("home", &["localhost"]);
    let (address, server) = serve(&files, |accepted| {
        let mut stream = accepted.unwrap();
        assert!(!stream.has_left());
        stream.write_all(b"go").unwrap();
        let deadline = soon();
        while !stream.has_left() {
            assert!(Instant::now() < deadline);
            std::thread::yield_now();
        }
        assert_eq!(stream.read(&mut [0; 8]).unwrap(), 0);
    });
    let mut stream = client(address, "localhost", &Trust::pinned(&files.certificate)).unwrap();
    stream.set_read_timeout(ReadTimeout::Until(soon()));
    assert_eq!(stream.read(&mut [0; 8]).unwrap(), 2);
    drop(stream);
    server.join().unwrap();
}

#[test]
fn a_record_that_drips_does_not_extend_a_deadline() {
    let folder = Certificates::default();
    let files = folder.certificate("home", &["localhost"]);
    let (address, server) = serve(&files, |accepted| {
        let mut stream = accepted.unwrap();
        let deadline = Instant::now() + Duration::from_millis(200);
        stream.set_read_timeout(ReadTimeout::Until(deadline));
        stream.read(&mut [0; 8]).unwrap_err().kind()
    });
    let trust = Trust::pinned(&files.certificate);
    let stream = client(address, "localhost", &trust).unwrap();
    let raw = stream.as_fd().try_clone_to_owned().unwrap();
    let raw = TcpStream::from(raw);
    // The head of a record of 16 KiB, and then one byte after the other: whole, it
    // would be refused.
    for byte in [0x17, 3, 3, 0x40, 0].into_iter().chain([0; 16 * 1024]) {
        if (&raw).write_all(&[byte]).is_err() || server.is_finished() {
            break;
        }
        std::thread::park_timeout(Duration::from_millis(20));
    }
    assert_eq!(server.join().unwrap(), io::ErrorKind::TimedOut);
}

#[test]
fn a_client_that_does_not_read_cannot_hold_a_write() {
    let folder = Certificates::default();
    let files = folder.certificate("home", &["localhost"]);
    let (address, server) = serve(&files, |accepted| {
        let mut stream = accepted.unwrap();
        stream.set_write_deadline(Instant::now() + Duration::from_millis(50));
        let error = stream.write_all(&vec![0; 64 * 1024 * 1024]).unwrap_err();
        drop(stream);
        error.kind()
    });
    let client = client(address, "localhost", &Trust::pinned(&files.certificate)).unwrap();
    assert_eq!(server.join().unwrap(), io::ErrorKind::TimedOut);
    drop(client);
}

#[test]
fn garbage_and_silence_end_a_handshake() {
    let folder = Certificates::default();
    let files = folder.certificate("home", &["localhost"]);
    let acceptor = Acceptor::open(&files.certificate, &files.key).unwrap();
    for (sent, kind) in [
        (&b"\x16\x03\x01"[..], io::ErrorKind::TimedOut),
        (b"", io::ErrorKind::TimedOut),
        (b"GET / HTTP/1.1\r\n\r\n", io::ErrorKind::InvalidData),
        (&[0x16, 3, 1, 0xff, 0xff, 0], io::ErrorKind::InvalidData),
        (&[0x16, 3, 1, 0, 4, 9, 9, 9, 9], io::ErrorKind::InvalidData),
    ] {
        let (listener, address) = listener();
        let mut client = TcpStream::connect(address).unwrap();
        client.write_all(sent).unwrap();
        let (stream, _) = listener.accept().unwrap();
        let deadline = Instant::now() + Duration::from_millis(100);
        let socket = Socket::new(Arc::new(stream));
        let error = accept(socket, acceptor.config(), deadline).err().unwrap();
        assert_eq!(error.kind(), kind, "{sent:?}");
    }
}
