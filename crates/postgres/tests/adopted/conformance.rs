//! The cases that every outbox must pass, as far as the capabilities of adopted tables go.

use super::{named::Application, *};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tidegate_conformance::FreshOutbox;
use tokio::sync::OnceCell;

/// Brighter's, with bodies that are bytes.
const BRIGHTER: &str =
    "create table outbox (id bigserial primary key, messageid varchar(255) unique not null,
    topic varchar(255), messagetype varchar(32), timestamp timestamptz, contenttype varchar(128),
    partitionkey varchar(128), dispatched timestamptz, headerbag text, body bytea)";

const INTO_BRIGHTERS: &str = "insert into outbox (messageid, topic, messagetype, timestamp, partitionkey, body,
        contenttype, headerbag)
    select name, topic, 'MT_EVENT', clock_timestamp(), key, body, type, bag
    from unnest($1::text[], $2::text[], $3::text[], $4::bytea[], $5::text[], $6::text[]) with ordinality
        as new (name, topic, key, body, type, bag, n) order by n";

/// One whose rows are deleted when they are done, and which counts attempts.
const OWN: &str = "create table messages (name text primary key, n bigserial, at timestamptz not null default now(), topic text,
    key text, body bytea, type text, bag jsonb, tries int not null default 0, problem text)";

const INTO_OWN: &str = "insert into messages (name, topic, key, body, type, bag)
    select name, topic, key, body, type, bag::jsonb
    from unnest($1::text[], $2::text[], $3::text[], $4::bytea[], $5::text[], $6::text[]) with ordinality
        as new (name, topic, key, body, type, bag, n) order by n";

/// All cases share a database, which goes with the server, and have a schema each: to migrate one takes longer than
/// most cases do.
static DATABASE: OnceCell<Arc<Database>> = OnceCell::const_new();

async fn fresh(ddl: &str, insert: &str, mapping: Mapping) -> FreshOutbox {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let empty = async || Arc::new(database("select 1").await);
    let database = DATABASE.get_or_init(empty).await.clone();
    let schema = format!("case_{}", COUNT.fetch_add(1, Relaxed));
    database.execute(&format!("create schema {schema}; set search_path = {schema}; {ddl}")).await;
    let table = mapping.table.as_deref().unwrap_or("outbox");
    let mapping = Mapping { table: Some(format!("{schema}.{table}")), ..mapping };
    let insert = insert.replacen("insert into ", &format!("insert into {schema}."), 1);
    let (last, names) = Default::default();
    let application = Arc::new(Application { database, insert, mapping, last, names });
    FreshOutbox::new(move || application.open())
}

mod brighter {
    use super::*;

    tidegate_conformance::outbox_conformance!(|| fresh(
        BRIGHTER,
        INTO_BRIGHTERS,
        Mapping::of(Preset::Brighter)
    ));
}

mod deleting {
    use super::*;

    fn mapping() -> Mapping {
        serde_json::from_str(
            r#"{"table": "messages", "id": ["name"], "order": ["n"], "topic": ["topic"], "key": ["key"],
                "payload": "body", "payload_kind": "bytes", "pending": "row", "done": "delete",
                "headers": {"content-type": "type"}, "headers_column": "bag", "published_at": "at",
                "attempts": "tries", "error": "problem"}"#,
        )
        .unwrap()
    }

    tidegate_conformance::outbox_conformance!(|| fresh(OWN, INTO_OWN, mapping()));
}
