//! The way of asking shard by shard, item by item: each message is put by itself, every look asks every shard of
//! every topic, and a mark reads a whole item and writes it back.

use super::{Row, tables::Tables};
use anyhow::Result;
use futures_util::{StreamExt, TryStreamExt, stream};
use tidegate::dynamodb::sdk::types::AttributeValue;

const TOPICS: usize = 5;
const SHARDS: usize = 3;
const AT_ONCE: usize = 16;

pub async fn measure(tables: &Tables, messages: usize, rows: &mut Vec<Row>) -> Result<()> {
    let bench = tables.create("").await?;
    let sdk = bench.open("").await?.sdk();
    let text = |value: String| AttributeValue::S(value);
    let put = |n: usize| {
        let topic = format!("topic-{}", n % TOPICS);
        sdk.put_item()
            .table_name(&bench.name)
            .item("MessageId", text(format!("id-{n}")))
            .item("Topic", text(topic.clone()))
            .item("TopicShard", text(format!("{topic}_{}", n % SHARDS)))
            .item("Body", text("x".repeat(1_024)))
            .item("CreatedTime", AttributeValue::N(n.to_string()))
            .item("OutstandingCreatedTime", AttributeValue::N(n.to_string()))
            .send()
    };
    let all = || stream::iter(0..messages);
    all().map(put).buffer_unordered(AT_ONCE).try_for_each(async |_| Ok(())).await?;
    rows.push(Row::new("publish, one by one", messages, &bench.proxy.counters()));
    bench.proxy.reset_counters();
    let shards = (0..TOPICS).flat_map(|topic| (0..SHARDS).map(move |shard| (topic, shard)));
    // Pages of 100, as its sweeper reads them, each over all shards.
    for _ in 0..messages.div_ceil(100) {
        for (topic, shard) in shards.clone() {
            let query = sdk.query().table_name(&bench.name).index_name("Outstanding").limit(7);
            let query = query.key_condition_expression("TopicShard = :shard");
            let shard = text(format!("topic-{topic}_{shard}"));
            query.expression_attribute_values(":shard", shard).send().await?;
        }
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
