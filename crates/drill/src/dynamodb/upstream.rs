//! The server behind the proxy.

use super::call::TARGET;
use axum::body::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{
    HeaderMap, Method, Request, StatusCode, Uri,
    header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HOST, TRANSFER_ENCODING},
};
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::Value;
use std::io::{self, ErrorKind};
use thiserror::Error;

/// Of the form that servers ask for which check no signatures.
const CREDENTIALS: &str = "AWS4-HMAC-SHA256 Credential=drill/20260101/us-east-1/dynamodb/aws4_request, \
     SignedHeaders=host, Signature=0";

/// The checksum of a body that the proxy writes anew. Clients check it only if it is there.
const CHECKSUM: &str = "x-amz-crc32";

/// Why the proxy could not do its work.
#[derive(Debug, Error)]
pub enum Problem {
    #[error("the server behind the proxy did not answer: {0}")]
    Unreachable(String),
    #[error("the server behind the proxy refused {operation}: {answer}")]
    Refused { operation: &'static str, answer: String },
}

/// What the server answered.
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

pub struct Upstream {
    http: legacy::Client<HttpConnector, Full<Bytes>>,
    url: Uri,
}

impl Upstream {
    pub fn new(url: &str) -> io::Result<Self> {
        let problem = |problem| io::Error::new(ErrorKind::InvalidInput, problem);
        let url: Uri = url.parse().map_err(|error| problem(format!("{url}: {error}")))?;
        if url.scheme_str() != Some("http") || url.host().is_none() {
            return Err(problem(format!("{url} is not of the form http://HOST:PORT")));
        }
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let http = legacy::Client::builder(TokioExecutor::new()).build(connector);
        Ok(Self { http, url })
    }

    /// Sends a client's request on.
    pub async fn pass(&self, headers: &HeaderMap, body: Bytes) -> Result<Answer, Problem> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.url.clone();
        *request.headers_mut() = headers.clone();
        for own in [HOST, CONTENT_LENGTH, TRANSFER_ENCODING] {
            request.headers_mut().remove(own);
        }
        let unreachable = |error: String| Problem::Unreachable(error);
        let response =
            self.http.request(request).await.map_err(|error| unreachable(format!("{error:?}")))?;
        let (mut head, body) = response.into_parts();
        let body = body.collect().await.map_err(|error| unreachable(error.to_string()))?;
        for own in [CONTENT_LENGTH.as_str(), TRANSFER_ENCODING.as_str(), CHECKSUM] {
            head.headers.remove(own);
        }
        Ok(Answer { status: head.status, headers: head.headers, body: body.to_bytes() })
    }

    /// Sends a request of the proxy's own, which must succeed.
    pub async fn ask(&self, operation: &'static str, body: &Value) -> Result<Value, Problem> {
        let mut headers = HeaderMap::new();
        let target = format!("DynamoDB_20120810.{operation}");
        for (name, value) in [
            (TARGET, target.as_str()),
            (CONTENT_TYPE.as_str(), "application/x-amz-json-1.0"),
            (AUTHORIZATION.as_str(), CREDENTIALS),
            ("x-amz-date", "20260101T000000Z"),
        ] {
            let name: hyper::header::HeaderName = name.parse().expect("the names are literals");
            headers.insert(name, value.parse().expect("the values are plain ASCII"));
        }
        let answer = self.pass(&headers, body.to_string().into()).await?;
        match serde_json::from_slice(&answer.body) {
            Ok(body) if answer.status.is_success() => Ok(body),
            _ => {
                let answer = String::from_utf8_lossy(&answer.body).into_owned();
                Err(Problem::Refused { operation, answer })
            }
        }
    }
}
