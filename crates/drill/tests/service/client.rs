//! A small client, and a service to talk to.

use axum::http::{HeaderMap, Request};
use http_body_util::{BodyExt, Full};
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::Value;
use std::time::{Duration, Instant};
use tidegate_drill::{Counters, Service, Spec};

pub const NDJSON: (&str, &str) = ("content-type", "application/x-ndjson");
pub const JSON: (&str, &str) = ("content-type", "application/json");

/// Longer than any test takes.
pub const LONG: Duration = Duration::from_secs(60);

/// A service with a client of its own.
pub struct Pair {
    pub service: Service,
    pub client: Client,
}

#[derive(Clone)]
pub struct Client {
    http: legacy::Client<HttpConnector, Full<axum::body::Bytes>>,
    base: String,
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: String,
}

pub fn start(spec: Spec) -> Pair {
    let service = Service::start(spec, "127.0.0.1:0".parse().unwrap()).unwrap();
    let client = Client::new(service.url());
    Pair { service, client }
}

impl Pair {
    /// Waits until the counters are as wanted.
    pub async fn until(&self, wanted: impl Fn(&Counters) -> bool) -> Counters {
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let counters = self.service.counters();
            if wanted(&counters) {
                return counters;
            }
            assert!(Instant::now() < deadline, "waited in vain: {counters:?}");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

impl Client {
    pub fn new(base: String) -> Self {
        let http = legacy::Client::builder(TokioExecutor::new()).build_http();
        Self { http, base }
    }

    pub async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.base));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::from(body.to_owned())).unwrap();
        let response = self.http.request(request).await.unwrap();
        let (head, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes().to_vec();
        let (status, headers) = (head.status.as_u16(), head.headers);
        Answer { status, headers, body: String::from_utf8(body).unwrap() }
    }

    /// Sends records, one per line.
    pub async fn lines(&self, body: &str) -> Answer {
        self.send("POST", "/records", &[NDJSON], body).await
    }

    /// Sends a JSON body.
    pub async fn json(&self, path: &str, body: &str) -> Answer {
        self.send("POST", path, &[JSON], body).await
    }
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// The status and the body, for comparing.
    pub fn pair(&self) -> (u16, &str) {
        (self.status, &self.body)
    }
}
