//! What is refused, what is advised, and what a shadow sees.

use crate::{
    ENTITY_OUTBOX, adopt, adopt_entities, database, entities,
    support::{Database, POSTGRES},
    write,
};
use tidegate_core::{Kind, NewMessage, Publish, Retain};
use tidegate_postgres::{
    Adopted,
    adopted::{Done, Mapping, Pending, Preset, TopicCount},
};

async fn refusal(database: &Database, mapping: Mapping) -> String {
    let error = Adopted::open(database.url().as_str(), mapping).await.err().unwrap();
    assert_eq!(error.kind(), Kind::Refused, "{error}");
    error.to_string()
}

#[tokio::test]
async fn a_column_that_is_missing_is_named_with_what_to_do() {
    let database = entities().await;
    database.execute("alter table entity_outbox rename column created_at to made_at").await;
    let text = refusal(&database, Mapping::of(Preset::EntityOutbox)).await;
    let start = "adopt table: public.entity_outbox has no column `created_at`, which is to be its order; \
                 say which column that is with `order` in the mapping; it has outbox_id, repository_id,";
    assert!(text.starts_with(start), "{text}");

    let made_at = || "made_at".to_owned();
    let mapping = Mapping {
        order: Some(vec![made_at()]),
        published_at: Some(made_at()),
        ..Mapping::of(Preset::EntityOutbox)
    };
    adopt(&database, mapping.clone()).await;
    let text = refusal(&database, Mapping { payload: Some("Payload".to_owned()), ..mapping }).await;
    assert!(text.contains("there is `payload`: names are taken in their own case"), "{text}");
}

#[tokio::test]
async fn what_would_lose_messages_or_repeat_them_is_refused() {
    let database = entities().await;
    let text = refusal(&database, Mapping::of(Preset::Debezium)).await;
    assert!(text.contains("there is no table `outbox` or `outboxevent`"), "{text}");
    let preset = || Mapping::of(Preset::EntityOutbox);
    let text =
        refusal(&database, Mapping { id: Some(vec!["entity_id".to_owned()]), ..preset() }).await;
    assert!(text.contains("(entity_id) does not identify a row of public.entity_outbox"), "{text}");
    let done = Some(Done::Now("created_at".to_owned()));
    let text = refusal(&database, Mapping { done, ..preset() }).await;
    assert!(text.contains("would still be pending"), "{text}");
    let pending = Some(Pending::Row);
    let text = refusal(&database, Mapping { pending, ..preset() }).await;
    assert!(text.contains("would still be pending"), "{text}");
    let text = refusal(&database, Mapping { topic: Some(Vec::new()), ..preset() }).await;
    assert!(text.contains("have no topic"), "{text}");
    let text = refusal(&database, Mapping::default()).await;
    assert!(text.contains("name the table in `table`, or a `preset`"), "{text}");
}

#[tokio::test]
async fn its_application_writes_to_it_and_nobody_else() {
    let database = entities().await;
    let adopted = adopt_entities(&database).await;
    let error = adopted.publish(vec![NewMessage::default()]).await.unwrap_err();
    assert!(error.to_string().contains("its application writes to it"), "{error}");
    assert!(adopted.limit_outstanding(Some(1)).await.is_err());
    assert_eq!(adopted.seal(std::time::Duration::ZERO).await.unwrap(), None);
}

#[tokio::test]
async fn a_shadow_reports_and_writes_nothing() {
    // Without the schema of Tidegate: nothing is needed but the table.
    let database = Database::create(POSTGRES).await;
    database.execute(ENTITY_OUTBOX).await;
    write(&database, "a", &[("INSERT", "1"), ("UPDATE", "2")]).await;
    write(&database, "b", &[("INSERT", "3")]).await;
    database
        .execute(
            "update entity_outbox set target_store = '', collection_name = null
            where entity_id = 'b'; update entity_outbox set created_at = now() - interval '1 h';
            insert into entity_outbox (repository_id, entity_id, operation, target_store, processed_at)
            values (gen_random_uuid(), 'c', 'INSERT', 'qdrant', now())",
        )
        .await;
    let rows = "select xmin, * from entity_outbox order by outbox_id";
    let before = database.rows(rows).await;
    let report = adopt_entities(&database).await.shadow().await.unwrap();
    assert_eq!((report.pending, report.ties, report.without_key), (3, 2, 0));
    let topic =
        |topic: Option<&str>, messages| TopicCount { topic: topic.map(str::to_owned), messages };
    assert_eq!(report.topics, [topic(Some("qdrant.people"), 2), topic(None, 1)]);
    assert!(report.oldest_seconds.is_some_and(|age| (3_600.0..3_700.0).contains(&age)));
    assert_eq!((report.examined, report.poison), (3, 1));
    assert_eq!(report.poison_rows[0].problem, "its topic is null");
    assert_eq!(report.advice.len(), 1);
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["table"], "public.entity_outbox");

    assert_eq!(database.rows(rows).await, before);
    assert_eq!(
        database.rows("select 1 from pg_namespace where nspname = 'tidegate'").await.len(),
        0
    );
}

#[tokio::test]
async fn a_missing_index_is_named_with_its_ddl_until_it_is_there() {
    let database = entities().await;
    // Of no use: what is done would be gone through every time.
    database.execute("create index on entity_outbox (created_at)").await;
    let advice = adopt_entities(&database).await.advice();
    let ddl = "create index concurrently on public.entity_outbox (created_at) where processed_at is null;";
    assert_eq!((advice.len(), &*advice[0].ddl), (1, ddl));
    assert!(advice[0].problem.contains("has no index on (created_at)"), "{advice:?}");
    database.execute(ddl).await;
    assert_eq!(adopt_entities(&database).await.advice(), []);
}

#[tokio::test]
async fn an_index_is_advised_as_the_table_needs_it() {
    let database = database(
        "create table outbox (id bigserial primary key, messageid varchar unique not null,
            topic varchar, timestamp timestamptz, dispatched timestamptz, body text);
        create table basic (id uuid primary key, aggregatetype text, aggregateid text, type text,
            payload jsonb);
        create table quarkus (like basic including all, timestamp timestamp);
        create table flags (id int primary key, n int, state varchar(9), body text)",
    )
    .await;
    let ddl = async |mapping: Mapping| {
        let advice = adopt(&database, mapping).await.advice();
        advice.into_iter().map(|it| it.ddl).collect::<Vec<_>>()
    };
    let brighter = "create index concurrently on public.outbox (id) where dispatched is null;";
    assert_eq!(ddl(Mapping::of(Preset::Brighter)).await, [brighter]);
    let debezium =
        |table: &str| Mapping { table: Some(table.to_owned()), ..Mapping::of(Preset::Debezium) };
    assert!(ddl(debezium("basic")).await.is_empty(), "there is no order to serve");
    let quarkus = "create index concurrently on public.quarkus (\"timestamp\");";
    assert_eq!(ddl(debezium("quarkus")).await, [quarkus]);
    let flags: Mapping = serde_json::from_str(
        r#"{"table": "flags", "id": ["id"], "order": ["n"], "topic_prefix": "t", "payload": "body",
            "pending": {"equal": {"column": "state", "value": "new"}},
            "done": {"set": {"column": "state", "value": "sent"}}}"#,
    )
    .unwrap();
    let wanted = "create index concurrently on public.flags (n) where state = 'new';";
    assert_eq!(ddl(flags.clone()).await, [wanted]);
    for mended in [brighter, quarkus, wanted] {
        database.execute(mended).await;
    }
    assert!(ddl(Mapping::of(Preset::Brighter)).await.is_empty());
    assert!(ddl(debezium("quarkus")).await.is_empty());
    assert!(ddl(flags).await.is_empty());
}
