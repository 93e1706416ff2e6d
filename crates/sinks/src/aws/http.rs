//! The SDK's requests, sent by the sinks' own client: one TLS stack, one set of rules for addresses.

use crate::{
    client::{Client, Reply},
    failure::Failure,
};
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
use reqwest::Method;
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;
use url::Url;

/// What the SDK sends with.
#[derive(Clone, Debug)]
pub struct Transport {
    client: Arc<Client>,
    /// Whether requests in the clear go only where the config names the host.
    strict: bool,
    /// The SDK's own patience with one request, if it has any.
    patience: Option<Duration>,
}

impl Transport {
    /// For a service that gets payloads and tokens.
    pub fn to_service(client: Client) -> Self {
        Self { client: Arc::new(client), strict: true, patience: None }
    }

    /// For whoever hands out credentials: a machine's metadata service speaks plain HTTP.
    pub fn to_metadata(client: Client) -> Self {
        Self { client: Arc::new(client), strict: false, patience: None }
    }

    async fn send(&self, request: HttpRequest) -> Result<Reply, Failure> {
        let url = Url::parse(request.uri())
            .map_err(|error| Failure::Broken(format!("the endpoint is no address: {error}")))?;
        if self.strict {
            let judged = self.client.judge_secure("endpoint", &url);
            judged.map_err(|error| Failure::Broken(error.to_string()))?;
        }
        let unsendable = |what: &str| Failure::Broken(format!("its {what} cannot be sent"));
        let method = Method::from_bytes(request.method().as_bytes());
        let mut sent = self.client.request(method.map_err(|_| unsendable("method"))?, url);
        for (name, value) in request.headers() {
            sent = sent.header(name, value);
        }
        let body = request.body().bytes().ok_or_else(|| unsendable("body"))?.to_vec();
        let exchange = self.client.send(sent.body(body));
        match self.patience {
            None => exchange.await,
            Some(patience) => timeout(patience, exchange).await.unwrap_or(Err(Failure::TimedOut)),
        }
    }
}

impl HttpConnector for Transport {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let transport = self.clone();
        HttpConnectorFuture::new(async move {
            let reply = transport.send(request).await.map_err(failed)?;
            response(reply).map_err(|error| ConnectorError::other(error, None))
        })
    }
}

impl HttpClient for Transport {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        _: &RuntimeComponents,
    ) -> SharedHttpConnector {
        let patience = match (settings.connect_timeout(), settings.read_timeout()) {
            (connect, Some(read)) => Some(connect.unwrap_or_default() + read),
            // Connecting has an end of its own here.
            (_, None) => None,
        };
        SharedHttpConnector::new(Self { patience, ..self.clone() })
    }
}

/// The failure stays in the error as it is: whoever judges the answer looks for it.
fn failed(failure: Failure) -> ConnectorError {
    match failure {
        Failure::TimedOut => ConnectorError::timeout(failure.into()),
        Failure::Unavailable(_) => ConnectorError::io(failure.into()),
        Failure::Broken(_) => ConnectorError::user(failure.into()),
    }
}

fn response(reply: Reply) -> Result<HttpResponse, Box<dyn std::error::Error + Send + Sync>> {
    let mut response =
        HttpResponse::new(StatusCode::try_from(reply.status)?, SdkBody::from(reply.body));
    for (name, value) in &reply.headers {
        // A header that is no text is none that the SDK reads.
        if let Ok(value) = value.to_str() {
            response.headers_mut().append(name.as_str().to_owned(), value.to_owned());
        }
    }
    Ok(response)
}
