//! Static files below a path, as a web host serves them.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// A plain web server of somebody else's, which answers one request after the
/// other.
pub struct Files {
    pub address: SocketAddr,
    stops: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Files {
    /// Serves what is in this folder.
    pub fn serve(folder: PathBuf) -> Files {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stops = Arc::new(AtomicBool::new(false));
        let shared = Arc::clone(&stops);
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if shared.load(Ordering::SeqCst) {
                    return;
                }
                let _ = send_file(stream.unwrap(), &folder);
            }
        });
        Files {
            address,
            stops,
            thread: Some(thread),
        }
    }

    /// The page stands below a folder, as on a site with other things.
    pub fn page(&self) -> String {
        format!("http://{}/hearth/", self.address)
    }
}

fn send_file(mut stream: TcpStream, folder: &Path) -> io::Result<()> {
    // A browser may open connections that it does not use.
    stream.set_read_timeout(Some(Duration::from_millis(200)))?;
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line)?;
    let path = line.split(' ').nth(1).unwrap_or_default();
    let path = match path.trim_start_matches("/hearth/") {
        "" => "index.html",
        path => path,
    };
    let media_type = match path.rsplit('.').next().unwrap() {
        "html" => "text/html",
        "js" => "text/javascript",
        "css" => "text/css",
        "svg" => "image/svg+xml",
        _ => "application/octet-stream",
    };
    let (status, body) = match fs::read(folder.join(path)) {
        Ok(body) => ("200 OK", body),
        Err(_) => ("404 Not Found", Vec::new()),
    };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    )?;
    stream.write_all(&body)?;
    // What of the request was not read must not reset the connection.
    stream.shutdown(Shutdown::Write)?;
    while matches!(stream.read(&mut [0; 1024]), Ok(1..)) {}
    Ok(())
}

impl Drop for Files {
    fn drop(&mut self) {
        self.stops.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        let _ = self.thread.take().unwrap().join();
    }
}
