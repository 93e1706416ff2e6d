//! What is known about tables that many people have, given the columns that one of them has.

use super::{
    mapping::{Done, Mapping, PayloadKind, Pending, Preset},
    table::Table,
};
use std::time::Duration;

/// Headers of a Brighter message, each with its column. Older installs lack some.
const BRIGHTER_HEADERS: [(&str, &str); 16] = [
    ("content-type", "contenttype"),
    ("correlation-id", "correlationid"),
    ("reply-to", "replyto"),
    ("message-type", "messagetype"),
    ("workflow-id", "workflowid"),
    ("job-id", "jobid"),
    ("causation-id", "causationid"),
    ("ce-source", "source"),
    ("ce-type", "type"),
    ("ce-dataschema", "dataschema"),
    ("ce-subject", "subject"),
    ("ce-specversion", "specversion"),
    ("traceparent", "traceparent"),
    ("tracestate", "tracestate"),
    ("baggage", "baggage"),
    ("dataref", "dataref"),
];

/// What Brighter takes for what a row does not say. (`text/plain` it is for bytes, too.)
const BRIGHTER_DEFAULTS: &[(&str, &str)] =
    &[("content-type", "text/plain"), ("message-type", "MT_NONE")];

/// Names the producer to use, within the application.
const BRIGHTER_LOCAL: &[&str] = &["paramore.brighter.ProducerTopic"];

impl Preset {
    /// Where such a table may be, the first that exists.
    pub(super) fn tables(self) -> &'static [&'static str] {
        match self {
            Self::EntityOutbox => &["entity_outbox"],
            Self::Debezium => &["outbox", "outboxevent"],
            Self::Brighter => &["outbox"],
        }
    }

    /// The whole mapping of a table with these columns.
    pub(super) fn mapping(self, table: &Table) -> Mapping {
        match self {
            Self::EntityOutbox => entity_outbox(table),
            Self::Debezium => debezium(table),
            Self::Brighter => brighter(table),
        }
    }

    /// Whether the application chooses the names under which entities stand in the system that rows go to, so
    /// that none follows from the key of a row.
    pub(super) fn names_entities_itself(self) -> bool {
        self == Self::EntityOutbox
    }

    /// Whether a payload need not be what its content type declares: Brighter keeps bodies that are bytes as
    /// Base64 in a text column, under the content type of the bytes.
    pub(super) fn takes_any_payload(self) -> bool {
        self == Self::Brighter
    }

    /// Headers of messages that do not have them.
    pub(super) fn default_headers(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::EntityOutbox | Self::Debezium => &[],
            Self::Brighter => BRIGHTER_DEFAULTS,
        }
    }

    /// Headers that are of no meaning outside of the application.
    pub(super) fn local_headers(self) -> &'static [&'static str] {
        match self {
            Self::EntityOutbox | Self::Debezium => &[],
            Self::Brighter => BRIGHTER_LOCAL,
        }
    }

    /// What people should know before they rely on it.
    pub(super) fn remark(self, min_age: Option<Duration>) -> Option<String> {
        match self {
            Self::EntityOutbox => None,
            Self::Debezium => Some(
                "Quarkus deletes its rows right after it has inserted them, for a reader of the log: a relay \
                 sees none of them unless `quarkus.debezium-outbox.remove-after-insert` is false"
                    .to_owned(),
            ),
            Self::Brighter => Some(who_else_sends(min_age)),
        }
    }
}

/// Brighter's applications and its sweeper send the rows of an outbox, too.
fn who_else_sends(min_age: Option<Duration>) -> String {
    match min_age {
        None => "applications that call `Post` or `ClearOutbox` send their messages themselves, and Brighter's \
                 sweeper sends what is left: messages would be sent twice; let applications deposit without \
                 clearing and stop the sweeper, or set `min_age`"
            .to_owned(),
        Some(age) => format!(
            "rows of the last {} s are left to applications that call `Post` or `ClearOutbox`: there is no \
             order between what they send and what is relayed; stop Brighter's sweeper",
            age.as_secs_f64()
        ),
    }
}

fn entity_outbox(table: &Table) -> Mapping {
    let present = |name: &str| table.has(name).then(|| name.to_owned());
    let collection = present("collection_name").map(|name| ("collection".to_owned(), name));
    Mapping {
        id: columns(&["outbox_id"]),
        order: columns(&["created_at"]),
        pending: Some(Pending::Null("processed_at".to_owned())),
        done: Some(Done::Now("processed_at".to_owned())),
        topic: columns(&["target_store", "collection_name"]),
        key: columns(&["repository_id", "entity_id"]),
        payload: column("payload"),
        payload_kind: Some(PayloadKind::Json),
        operation: column("operation"),
        headers: collection.into_iter().collect(),
        attempts: present("retry_count"),
        error: present("last_error"),
        published_at: column("created_at"),
        ..Mapping::default()
    }
}

/// The basic form has no order; Quarkus adds a time stamp.
fn debezium(table: &Table) -> Mapping {
    let time = table.has("timestamp");
    let mut mapping = Mapping {
        id: columns(&["id"]),
        order: if time { columns(&["timestamp"]) } else { columns(&[]) },
        pending: Some(Pending::Row),
        done: Some(Done::Delete),
        topic: columns(&["aggregatetype"]),
        topic_prefix: column("outbox.event."),
        key: columns(&["aggregateid"]),
        payload: column("payload"),
        payload_kind: Some(PayloadKind::Json),
        published_at: time.then(|| "timestamp".to_owned()),
        ..Mapping::default()
    };
    mapping.headers.insert("ce-type".to_owned(), "type".to_owned());
    if table.has("tracingspancontext") {
        mapping.headers.insert("tracingspancontext".to_owned(), "tracingspancontext".to_owned());
    }
    mapping
}

/// Its number is drawn when a row is inserted; its time stamp is made by the application.
fn brighter(table: &Table) -> Mapping {
    let present = |name: &str| table.has(name).then(|| name.to_owned());
    let kind = match table.is_bytes("body") {
        true => PayloadKind::Bytes,
        false => PayloadKind::Text,
    };
    let headers = BRIGHTER_HEADERS.iter().filter(|(_, column)| table.has(column));
    Mapping {
        id: columns(&["messageid"]),
        order: columns(if table.has("id") { &["id"] } else { &["timestamp"] }),
        pending: Some(Pending::Null("dispatched".to_owned())),
        done: Some(Done::Now("dispatched".to_owned())),
        topic: columns(&["topic"]),
        key: Some(present("partitionkey").into_iter().collect()),
        payload: column("body"),
        payload_kind: Some(kind),
        headers: headers.map(|(name, column)| ((*name).into(), (*column).into())).collect(),
        headers_column: present("headerbag"),
        published_at: present("timestamp"),
        ..Mapping::default()
    }
}

fn columns(names: &[&str]) -> Option<Vec<String>> {
    Some(names.iter().map(|name| (*name).to_owned()).collect())
}

fn column(name: &str) -> Option<String> {
    Some(name.to_owned())
}
