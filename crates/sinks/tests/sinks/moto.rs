//! What a server that plays AWS holds: queues and topics to send to, and what arrived in them.

use crate::brokers::{server, unique};
use serde_json::{Value, json};
use std::{collections::BTreeMap, net::SocketAddr};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

pub const REGION: &str = "eu-west-1";

/// A message that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrived {
    pub body: String,
    pub attributes: BTreeMap<String, String>,
    pub group: Option<String>,
    pub deduplication: Option<String>,
}

pub fn moto() -> SocketAddr {
    server("TIDEGATE_TEST_MOTO")
}

/// A new queue, by its URL. FIFO queues have names that say so.
pub async fn queue(name: &str) -> String {
    let (name, attributes) = named(name);
    let asked = json!({ "QueueName": name, "Attributes": attributes });
    sqs("CreateQueue", &asked).await["QueueUrl"].as_str().unwrap().to_owned()
}

/// A new topic, by its ARN.
pub async fn topic(name: &str) -> String {
    let (name, attributes) = named(name);
    let mut form = vec![("Name".to_owned(), name)];
    let attributes = attributes.as_object().unwrap().clone();
    for (at, (name, value)) in attributes.iter().enumerate() {
        form.push((format!("Attributes.entry.{}.key", at + 1), name.clone()));
        form.push((
            format!("Attributes.entry.{}.value", at + 1),
            value.as_str().unwrap().to_owned(),
        ));
    }
    tagged(&sns("CreateTopic", &form).await, "TopicArn")
}

/// A new queue that gets all of a topic, as it was published.
pub async fn subscribed(topic: &str, name: &str) -> String {
    subscribe(topic, name, true).await
}

/// The same; if not `raw`, what the queue gets is a JSON object that tells of the notification.
pub async fn subscribe(topic: &str, name: &str, raw: bool) -> String {
    let queue = queue(name).await;
    let asked = json!({ "QueueUrl": queue, "AttributeNames": ["QueueArn"] });
    let found = sqs("GetQueueAttributes", &asked).await;
    let arn = found["Attributes"]["QueueArn"].as_str().unwrap();
    let form = [
        ("TopicArn", topic),
        ("Protocol", "sqs"),
        ("Endpoint", arn),
        ("Attributes.entry.1.key", "RawMessageDelivery"),
        ("Attributes.entry.1.value", if raw { "true" } else { "false" }),
    ];
    sns("Subscribe", &form.map(|(name, value)| (name.to_owned(), value.to_owned()))).await;
    queue
}

/// Takes all messages out of a queue, in its order.
pub async fn arrived(queue: &str) -> Vec<Arrived> {
    let mut all = Vec::new();
    loop {
        let asked = json!({
            "QueueUrl": queue,
            "MaxNumberOfMessages": 10,
            "MessageAttributeNames": ["All"],
            "AttributeNames": ["All"],
        });
        let found = sqs("ReceiveMessage", &asked).await;
        let Some(messages) = found["Messages"].as_array().filter(|it| !it.is_empty()) else {
            return all;
        };
        for message in messages {
            all.push(read(message));
            // Of a group of a FIFO queue, the next is given out when those before are gone.
            let asked = json!({ "QueueUrl": queue, "ReceiptHandle": message["ReceiptHandle"] });
            sqs("DeleteMessage", &asked).await;
        }
    }
}

fn read(message: &Value) -> Arrived {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let attributes = message["MessageAttributes"].as_object().cloned().unwrap_or_default();
    let value = |value: Value| text(&value["StringValue"]).unwrap();
    Arrived {
        body: text(&message["Body"]).unwrap(),
        attributes: attributes.into_iter().map(|(name, it)| (name, value(it))).collect(),
        group: text(&message["Attributes"]["MessageGroupId"]),
        deduplication: text(&message["Attributes"]["MessageDeduplicationId"]),
    }
}

/// A name that no other test has, and what makes a FIFO queue or topic.
fn named(name: &str) -> (String, Value) {
    match name.strip_suffix(".fifo") {
        Some(name) => {
            (format!("{}.fifo", unique(name)), json!({ "FifoQueue": "true", "FifoTopic": "true" }))
        }
        None => (unique(name), json!({})),
    }
}

async fn sqs(action: &str, asked: &Value) -> Value {
    let head = format!(
        "X-Amz-Target: AmazonSQS.{action}\r\nContent-Type: application/x-amz-json-1.0\r\n{}",
        signed("sqs")
    );
    let answer = post(&head, &asked.to_string()).await;
    if answer.is_empty() { Value::Null } else { serde_json::from_str(&answer).unwrap() }
}

async fn sns(action: &str, form: &[(String, String)]) -> String {
    let mut encoded = url::form_urlencoded::Serializer::new(String::new());
    encoded.append_pair("Action", action).append_pair("Version", "2010-03-31");
    let encoded = encoded.extend_pairs(form).finish();
    let head = format!("Content-Type: application/x-www-form-urlencoded\r\n{}", signed("sns"));
    post(&head, &encoded).await
}

/// It says which service and which region; nobody looks at the signature.
fn signed(service: &str) -> String {
    format!(
        "Authorization: AWS4-HMAC-SHA256 Credential=tests/20260101/{REGION}/{service}/aws4_request, \
         SignedHeaders=host, Signature=0\r\n"
    )
}

async fn post(head: &str, body: &str) -> String {
    let (server, length) = (moto(), body.len());
    let mut stream = TcpStream::connect(server).await.unwrap();
    let request = format!(
        "POST / HTTP/1.0\r\nHost: {server}\r\nContent-Length: {length}\r\n{head}\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.lines().next().unwrap().contains(" 200 "), "{answer}");
    body.to_owned()
}

/// What stands in an element of an answer.
fn tagged(answer: &str, tag: &str) -> String {
    let rest = answer.split_once(&format!("<{tag}>")).unwrap().1;
    rest.split('<').next().unwrap().to_owned()
}
