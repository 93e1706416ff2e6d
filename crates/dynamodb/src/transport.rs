//! The SDK's requests, sent over TLS with *ring* and the system's verifier, as everywhere in Tidegate.

use aws_smithy_runtime_api::{
    client::{
        http::{
            HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings,
            SharedHttpConnector,
        },
        orchestrator::{HttpRequest, HttpResponse},
        result::ConnectorError,
        runtime_components::RuntimeComponents,
    },
    http::StatusCode,
};
use aws_smithy_types::body::SdkBody;
use reqwest::{Method, redirect, retry};
use rustls::{ClientConfig, crypto::ring};
use rustls_platform_verifier::BuilderVerifierExt;
use std::{error::Error, sync::Arc, time::Duration};

/// Until a connection stands.
const CONNECT: Duration = Duration::from_secs(5);
/// Until there is an answer: DynamoDB answers within milliseconds, or not at all.
const ANSWER: Duration = Duration::from_secs(10);
/// Connections kept for the next request: more than there are requests at a time.
const IDLE_CONNECTIONS: usize = 128;

/// What the SDK sends with.
#[derive(Clone, Debug)]
pub struct Transport(reqwest::Client);

type BoxError = Box<dyn Error + Send + Sync>;

impl Transport {
    /// A client of its own.
    pub fn new() -> Result<Self, BoxError> {
        let provider = Arc::new(ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_platform_verifier()?
            .with_no_client_auth();
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .redirect(redirect::Policy::none())
            .retry(retry::never())
            .referer(false)
            .no_proxy()
            .tcp_nodelay(true)
            .connect_timeout(CONNECT)
            .timeout(ANSWER)
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            .build()?;
        Ok(Self(client))
    }

    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, ConnectorError> {
        let method = Method::from_bytes(request.method().as_bytes())
            .map_err(|error| ConnectorError::user(error.into()))?;
        let mut sent = self.0.request(method, request.uri());
        for (name, value) in request.headers() {
            sent = sent.header(name, value);
        }
        let body = request.body().bytes().map(<[u8]>::to_vec).unwrap_or_default();
        let answer = sent.body(body).send().await.map_err(failed)?;
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        let body = answer.bytes().await.map_err(failed)?;
        let status = StatusCode::try_from(status)
            .map_err(|error| ConnectorError::other(error.into(), None))?;
        let mut response = HttpResponse::new(status, SdkBody::from(body.to_vec()));
        for (name, value) in &headers {
            // A header that is no text is none that the SDK reads.
            if let Ok(value) = value.to_str() {
                response.headers_mut().append(name.as_str().to_owned(), value.to_owned());
            }
        }
        Ok(response)
    }
}

fn failed(error: reqwest::Error) -> ConnectorError {
    match error {
        error if error.is_timeout() => ConnectorError::timeout(error.into()),
        error if error.is_builder() => ConnectorError::user(error.into()),
        error => ConnectorError::io(error.into()),
    }
}

impl HttpConnector for Transport {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let transport = self.clone();
        HttpConnectorFuture::new(async move { transport.send(request).await })
    }
}

impl HttpClient for Transport {
    fn http_connector(
        &self,
        _: &HttpConnectorSettings,
        _: &RuntimeComponents,
    ) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}
