//! A stand-in for SQS and SNS that answers as a test wants: servers that play AWS throttle nothing,
//! fail at no single message and lose no answer.

use crate::{
    brokers::{declared, secrets},
    sqs::KEYS,
};
use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use futures_util::stream;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex},
};
use tidegate_core::Sink;
use tidegate_sinks::{sns::Sns, sqs::Sqs};
use tokio::{net::TcpListener, task::JoinHandle};

/// The bodies of a call's messages.
pub type Bodies = Vec<String>;

/// What to answer to a call.
pub enum Say {
    /// For each message, that it is done, or a code and whether the sender is at fault.
    Each(Vec<Option<(&'static str, bool)>>),
    /// A status and a code for the whole call.
    All(u16, &'static str),
    /// The same, with a Retry-After in seconds.
    Later(u16, &'static str, u32),
    /// A success that says nothing.
    Nothing,
    /// An answer that breaks off.
    Lost,
    /// Nothing, ever.
    Hang,
}

type Script = Box<dyn FnMut(&Bodies) -> Say + Send>;

pub struct Stub {
    url: String,
    shared: Arc<Mutex<Shared>>,
    task: JoinHandle<()>,
}

struct Shared {
    script: Script,
    calls: Vec<Bodies>,
    signers: Vec<String>,
}

impl Stub {
    pub async fn start(script: impl FnMut(&Bodies) -> Say + Send + 'static) -> Self {
        let shared = Shared { script: Box::new(script), calls: Vec::new(), signers: Vec::new() };
        let shared = Arc::new(Mutex::new(shared));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(answer).with_state(shared.clone());
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, shared, task }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn calls(&self) -> Vec<Bodies> {
        self.shared.lock().unwrap().calls.clone()
    }

    /// Whose access key signed each call.
    pub fn signers(&self) -> Vec<String> {
        self.shared.lock().unwrap().signers.clone()
    }

    pub fn sqs(&self, rest: &str) -> Sqs {
        let queue = "queue = 'http://127.0.0.1/123456789012/q.fifo'";
        let config = declared(&format!("endpoint = '{}'\n{queue}\n{KEYS}\n{rest}", self.url));
        Sqs::new(&config, &secrets).unwrap()
    }

    pub fn sns(&self, rest: &str) -> Sns {
        let topic = "topic = 'arn:aws:sns:eu-west-1:123456789012:t.fifo'";
        let config = declared(&format!("endpoint = '{}'\n{topic}\n{KEYS}\n{rest}", self.url));
        Sns::new(&config, &secrets).unwrap()
    }

    /// A sink of each kind.
    pub fn both(&self, rest: &str) -> [Box<dyn Sink>; 2] {
        [Box::new(self.sqs(rest)), Box::new(self.sns(rest))]
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(
    State(shared): State<Arc<Mutex<Shared>>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let is_sqs = headers.contains_key("x-amz-target");
    let bodies = if is_sqs { of_sqs(&body) } else { of_sns(&body) };
    let said = {
        let mut shared = shared.lock().unwrap();
        shared.calls.push(bodies.clone());
        shared.signers.push(signer(&headers));
        (shared.script)(&bodies)
    };
    match said {
        Say::Each(fates) if is_sqs => each_of_sqs(&fates),
        Say::Each(fates) => each_of_sns(&fates),
        Say::All(status, code) => all(is_sqs, status, code),
        Say::Later(status, code, seconds) => {
            ([("retry-after", seconds.to_string())], all(is_sqs, status, code)).into_response()
        }
        Say::Nothing => StatusCode::OK.into_response(),
        Say::Lost => {
            let broken = io::Error::other("lost");
            Body::from_stream(stream::iter([Err::<Bytes, _>(broken)])).into_response()
        }
        Say::Hang => std::future::pending().await,
    }
}

/// `AWS4-HMAC-SHA256 Credential=ID/20260101/…`.
fn signer(headers: &HeaderMap) -> String {
    let signed = headers["authorization"].to_str().unwrap();
    signed.split_once("Credential=").unwrap().1.split('/').next().unwrap().to_owned()
}

fn of_sqs(body: &[u8]) -> Bodies {
    let asked: Value = serde_json::from_slice(body).unwrap();
    let entries = asked["Entries"].as_array().cloned().unwrap_or_default();
    for entry in &entries {
        assert!(entry["MessageGroupId"].is_string() && entry["MessageDeduplicationId"].is_string());
    }
    entries.iter().map(|entry| entry["MessageBody"].as_str().unwrap().to_owned()).collect()
}

fn of_sns(body: &[u8]) -> Bodies {
    let pairs: BTreeMap<String, String> = url::form_urlencoded::parse(body).into_owned().collect();
    let name = |number: usize| format!("PublishBatchRequestEntries.member.{number}.Message");
    (1..).map_while(|number| pairs.get(&name(number)).cloned()).collect()
}

fn each_of_sqs(fates: &[Option<(&str, bool)>]) -> Response {
    let (mut done, mut failed) = (Vec::new(), Vec::new());
    for (at, fate) in fates.iter().enumerate() {
        let id = at.to_string();
        match fate {
            None => done.push(json!({ "Id": id, "MessageId": "m", "MD5OfMessageBody": "" })),
            Some((code, sender)) => failed.push(
                json!({ "Id": id, "Code": code, "Message": "said so", "SenderFault": sender }),
            ),
        }
    }
    json!({ "Successful": done, "Failed": failed }).to_string().into_response()
}

fn each_of_sns(fates: &[Option<(&str, bool)>]) -> Response {
    let (mut done, mut failed) = (String::new(), String::new());
    for (id, fate) in fates.iter().enumerate() {
        match fate {
            None => done += &format!("<member><Id>{id}</Id><MessageId>m</MessageId></member>"),
            Some((code, sender)) => {
                failed += &format!(
                    "<member><Id>{id}</Id><Code>{code}</Code><Message>said so</Message>\
                     <SenderFault>{sender}</SenderFault></member>"
                );
            }
        }
    }
    let text = format!(
        "<PublishBatchResponse><PublishBatchResult><Successful>{done}</Successful>\
         <Failed>{failed}</Failed></PublishBatchResult></PublishBatchResponse>"
    );
    text.into_response()
}

fn all(is_sqs: bool, status: u16, code: &str) -> Response {
    let status = StatusCode::from_u16(status).unwrap();
    let text = if is_sqs {
        json!({ "__type": format!("com.amazonaws.sqs#{code}"), "message": "said so" }).to_string()
    } else {
        format!(
            "<ErrorResponse><Error><Code>{code}</Code><Message>said so</Message></Error></ErrorResponse>"
        )
    };
    (status, text).into_response()
}
