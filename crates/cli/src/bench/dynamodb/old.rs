//! The way of asking shard by shard, item by item: each message is put by itself, every look asks every shard of
//! every topic, and a mark reads a whole item and writes it back.

use super::{
    Row, TOPICS,
    tables::{Bench, Tables},
};
use anyhow::Result;
use futures_util::{StreamExt, TryStreamExt, stream};
use tidegate::dynamodb::sdk::{self, types::AttributeValue};

const AT_ONCE: usize = 16;
/// Messages of one page, over all shards.
const PAGE: usize = 100;

/// A look at a table that has nothing: each shard of each topic is asked.
pub async fn empty(bench: &Bench, rows: &mut Vec<Row>) -> Result<()> {
    let store = bench.open("").await?;
    bench.proxy.reset_counters();
    ask_all(&store.sdk(), &bench.name, store.address().shards as usize).await?;
    rows.push(Row::new("an empty look, shard by shard", 0, &bench.proxy.counters()));
    Ok(())
}

/// Asks each shard of each topic for its part of a page.
async fn ask_all(sdk: &sdk::Client, table: &str, shards: usize) -> Result<()> {
    let limit = PAGE.div_ceil(TOPICS * shards) as i32;
    for (topic, shard) in (0..TOPICS).flat_map(|topic| (0..shards).map(move |it| (topic, it))) {
        let query = sdk.query().table_name(table).index_name("Outstanding").limit(limit);
        let query = query.key_condition_expression("TopicShard = :shard");
        let shard = AttributeValue::S(format!("topic-{topic}_{shard}"));
        query.expression_attribute_values(":shard", shard).send().await?;
    }
    Ok(())
}

pub async fn measure(tables: &Tables, messages: usize, rows: &mut Vec<Row>) -> Result<()> {
    let bench = tables.create("").await?;
    let store = bench.open("").await?;
    // As many as the other way has.
    let (sdk, shards) = (store.sdk(), store.address().shards as usize);
    let text = |value: String| AttributeValue::S(value);
    let put = |n: usize| {
        let topic = format!("topic-{}", n % TOPICS);
        sdk.put_item()
            .table_name(&bench.name)
            .item("MessageId", text(format!("id-{n}")))
            .item("Topic", text(topic.clone()))
            .item("TopicShard", text(format!("{topic}_{}", n % shards)))
            .item("Body", text("x".repeat(1_024)))
            .item("CreatedTime", AttributeValue::N(n.to_string()))
            .item("OutstandingCreatedTime", AttributeValue::N(n.to_string()))
            .send()
    };
    let all = || stream::iter(0..messages);
    all().map(put).buffer_unordered(AT_ONCE).try_for_each(async |_| Ok(())).await?;
    rows.push(Row::new("publish, one by one", messages, &bench.proxy.counters()));
    bench.proxy.reset_counters();
    // Page after page, as its sweeper reads them.
    for _ in 0..messages.div_ceil(PAGE) {
        ask_all(&sdk, &bench.name, shards).await?;
    }
    rows.push(Row::new("read, shard by shard", messages, &bench.proxy.counters()));
    bench.proxy.reset_counters();
    let mark = async |n: usize| -> Result<()> {
        let key = text(format!("id-{n}"));
        let get =
            sdk.get_item().table_name(&bench.name).key("MessageId", key).consistent_read(true);
        let mut item = get.send().await?.item.unwrap_or_default();
        item.remove("OutstandingCreatedTime");
        item.insert("DeliveryTime".to_owned(), AttributeValue::N(n.to_string()));
        sdk.put_item().table_name(&bench.name).set_item(Some(item)).send().await?;
        Ok(())
    };
    all().map(&mark).buffer_unordered(AT_ONCE).try_for_each(async |()| Ok(())).await?;
    rows.push(Row::new("mark, read and written back", messages, &bench.proxy.counters()));
    bench.drop().await
}
