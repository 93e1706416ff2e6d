//! The fastest that PostgreSQL takes the same pages: COPY, and nothing else.

use super::{
    baseline::REMOVE,
    meter::{Meter, connect},
    report::{Copied, Mode},
};
use anyhow::ensure;
use std::pin::pin;
use tidegate::{Batch, OpenStore, Page, inspect::PageQuery, limits::MAX_LISTED};
use tokio_postgres::{Client, Transaction, binary_copy::BinaryCopyInWriter, types::Type};

/// The columns, key, storage and compression of the real one.
const CREATE: &str = "
    drop schema if exists tidegate_bench cascade;
    create schema tidegate_bench;
    create table tidegate_bench.page (like tidegate.page including all);";

const COPY: &str = "
    copy tidegate_bench.page (batch_id, lo, hi, indexes, results) from stdin (format binary)";

const COLUMNS: [Type; 5] = [Type::INT8, Type::INT8, Type::INT8, Type::INT8_ARRAY, Type::TEXT];

/// Copies the pages of a batch that was just run as `ranges`: with a commit for each page, and in one
/// go.
pub async fn measure(
    store: &OpenStore,
    meter: &Meter,
    ranges: &Mode,
    batch: &Batch,
) -> anyhow::Result<Copied> {
    let Meter::Server { url, .. } = meter else { anyhow::bail!("COPY needs a PostgreSQL server") };
    let pages = pages(store, batch).await?;
    let mut client = connect(url).await?;
    client.batch_execute(CREATE).await?;
    let by_page = time(&mut client, meter, batch, pages.chunks(1)).await?;
    let at_once = time(&mut client, meter, batch, pages.chunks(pages.len())).await?;
    client.batch_execute(REMOVE).await?;
    Ok(Copied {
        workload: batch.workload.clone(),
        ranges_runs_per_second: ranges.runs_per_second,
        settling_runs_per_second: ranges.settling_rate(),
        pages: pages.len(),
        bytes: pages.iter().map(|page| page.results.len()).sum(),
        runs_per_second_by_page: batch.runs as f64 / by_page,
        runs_per_second_at_once: batch.runs as f64 / at_once,
    })
}

async fn pages(store: &OpenStore, batch: &Batch) -> anyhow::Result<Vec<Page>> {
    let mut all: Vec<Page> = Vec::new();
    loop {
        let from = all.last().map_or(0, |page| page.range.lo + 1);
        let query = PageQuery { from, ..PageQuery::first(batch.id, MAX_LISTED) };
        let more = store.pages(query).await?;
        if more.is_empty() {
            break;
        }
        all.extend(more);
    }
    ensure!(!all.is_empty(), "batch {} of the bench has no pages to copy", batch.id);
    Ok(all)
}

/// Seconds for all groups of pages, each with a COPY and a commit of its own.
async fn time<'a>(
    client: &mut Client,
    meter: &Meter,
    batch: &Batch,
    groups: impl Iterator<Item = &'a [Page]>,
) -> anyhow::Result<f64> {
    client.batch_execute("truncate tidegate_bench.page").await?;
    let start = meter.start().await?;
    for pages in groups {
        let transaction = client.transaction().await?;
        copy(&transaction, batch, pages).await?;
        transaction.commit().await?;
    }
    Ok(meter.stop(start).await?.time.as_secs_f64())
}

async fn copy(transaction: &Transaction<'_>, batch: &Batch, pages: &[Page]) -> anyhow::Result<()> {
    let sink = transaction.copy_in(COPY).await?;
    let mut writer = pin!(BinaryCopyInWriter::new(sink, &COLUMNS));
    for page in pages {
        let (lo, hi) = (page.range.lo as i64, page.range.hi as i64);
        let indexes: Option<Vec<i64>> =
            page.indexes.as_ref().map(|indexes| indexes.iter().map(|i| *i as i64).collect());
        writer.as_mut().write(&[&batch.id.0, &lo, &hi, &indexes, &page.results]).await?;
    }
    writer.finish().await?;
    Ok(())
}
