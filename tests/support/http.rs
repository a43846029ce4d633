//! A small HTTP client over ureq.

use std::net::SocketAddr;

use serde_json::Value;

use super::MAX_WAIT;

/// A response, read whole.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }
}

fn agent() -> ureq::Agent {
    ureq::Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .proxy(None)
        .timeout_global(Some(MAX_WAIT))
        .build()
        .into()
}

fn read(mut response: ureq::http::Response<ureq::Body>) -> Answer {
    Answer {
        status: response.status().as_u16(),
        headers: response
            .headers()
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
            .collect(),
        body: response.body_mut().read_to_string().unwrap(),
    }
}

pub fn get(address: SocketAddr, path: &str) -> Answer {
    read(
        agent()
            .get(format!("http://{address}{path}"))
            .call()
            .unwrap(),
    )
}

/// POSTs JSON with extra headers.
pub fn post(address: SocketAddr, path: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
    let mut request = agent()
        .post(format!("http://{address}{path}"))
        .header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    read(request.send(body.to_string()).unwrap())
}

pub fn delete(address: SocketAddr, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut request = agent().delete(format!("http://{address}{path}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    read(request.call().unwrap())
}

/// A response whose body may be anything.
pub struct FileAnswer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl FileAnswer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// Sends a request with these headers, and with this body if it is a POST.
pub fn exchange(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> FileAnswer {
    let mut request = ureq::http::Request::builder()
        .method(method)
        .uri(format!("http://{address}{path}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = match method {
        "POST" => agent().run(request.body(body).unwrap()),
        _ => agent().run(request.body(()).unwrap()),
    };
    let mut response = response.unwrap();
    FileAnswer {
        status: response.status().as_u16(),
        headers: response
            .headers()
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
            .collect(),
        body: response
            .body_mut()
            .with_config()
            .limit(64 * 1024 * 1024)
            .read_to_vec()
            .unwrap(),
    }
}
