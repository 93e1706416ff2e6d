//! Writes results, failures, aggregates and progress, all or nothing, in one statement.

use crate::{
    decode::{get, millis},
    error::corrupt,
    pool::{Call, Pool},
};
use tidegate_core::{
    BatchId, Fence, StoreError,
    settle::{Failed, Part, Progress, Settled, Settlement, Total},
};
use tokio_postgres::types::Type;

const OPERATION: &str = "settle";

/// What does not fit is looked at twice. If the same settlement was sent before and was still under
/// way, the first look may have waited for it without seeing all it wrote; the second one sees it.
pub(crate) async fn settle(pool: &Pool, settlement: &Settlement) -> Result<Settled, StoreError> {
    let columns = Columns::of(settlement);
    match send(pool, settlement, &columns).await? {
        Settled::Applied => Ok(Settled::Applied),
        _ => send(pool, settlement, &columns).await,
    }
}

async fn send(
    pool: &Pool,
    settlement: &Settlement,
    columns: &Columns<'_>,
) -> Result<Settled, StoreError> {
    let Columns { ranges, retries, failures, pages, totals } = columns;
    let lease = millis(settlement.lease);
    let rows = pool
        .query(
            Call::under(OPERATION, settlement.lease),
            include_str!("sql/settle.sql"),
            &[
                (&lease, Type::INT8),
                (&ranges.batch, Type::INT8_ARRAY),
                (&ranges.fence, Type::INT8_ARRAY),
                (&ranges.lo, Type::INT8_ARRAY),
                (&ranges.hi, Type::INT8_ARRAY),
                (&ranges.end, Type::INT8_ARRAY),
                (&retries.batch, Type::INT8_ARRAY),
                (&retries.fence, Type::INT8_ARRAY),
                (&retries.index, Type::INT8_ARRAY),
                (&failures.batch, Type::INT8_ARRAY),
                (&failures.index, Type::INT8_ARRAY),
                (&failures.attempts, Type::INT4_ARRAY),
                (&failures.reason, Type::TEXT_ARRAY),
                (&failures.delay_ms, Type::INT8_ARRAY),
                (&failures.retried, Type::BOOL_ARRAY),
                (&pages.batch, Type::INT8_ARRAY),
                (&pages.lo, Type::INT8_ARRAY),
                (&pages.hi, Type::INT8_ARRAY),
                (&pages.indexes, Type::TEXT_ARRAY),
                (&pages.results, Type::TEXT_ARRAY),
                (&totals.batch, Type::INT8_ARRAY),
                (&totals.accumulator, Type::INT8_ARRAY),
                (&totals.sequence, Type::INT8_ARRAY),
                (&totals.body, Type::BYTEA_ARRAY),
                (&totals.before, Type::INT8_ARRAY),
            ],
        )
        .await?;
    let row = rows.first().ok_or_else(|| corrupt(OPERATION, "the settlement came back empty"))?;
    if get(OPERATION, row, "applied")? {
        return Ok(Settled::Applied);
    }
    let forgotten: Vec<i64> = get(OPERATION, row, "forgotten")?;
    if !forgotten.is_empty() {
        return Ok(Settled::Forgotten(forgotten.into_iter().map(BatchId).collect()));
    }
    let late: Vec<i64> = get(OPERATION, row, "late")?;
    let fences = settlement.parts.iter().map(|part| part.fence);
    Ok(Settled::Late(fences.filter(|Fence(fence)| late.contains(fence)).collect()))
}

/// A settlement as arrays, one per column.
#[derive(Default)]
struct Columns<'a> {
    ranges: Ranges,
    retries: Retries,
    failures: Failures<'a>,
    pages: Pages<'a>,
    totals: Totals<'a>,
}

#[derive(Default)]
struct Ranges {
    batch: Vec<i64>,
    fence: Vec<i64>,
    lo: Vec<i64>,
    hi: Vec<i64>,
    end: Vec<i64>,
}

#[derive(Default)]
struct Retries {
    batch: Vec<i64>,
    fence: Vec<i64>,
    index: Vec<i64>,
}

#[derive(Default)]
struct Failures<'a> {
    batch: Vec<i64>,
    index: Vec<i64>,
    attempts: Vec<i32>,
    reason: Vec<&'a str>,
    delay_ms: Vec<Option<i64>>,
    retried: Vec<bool>,
}

#[derive(Default)]
struct Pages<'a> {
    batch: Vec<i64>,
    lo: Vec<i64>,
    hi: Vec<i64>,
    /// Each the text of an array of its own: PostgreSQL has no arrays of unequal arrays.
    indexes: Vec<Option<String>>,
    results: Vec<&'a str>,
}

#[derive(Default)]
struct Totals<'a> {
    batch: Vec<i64>,
    accumulator: Vec<i64>,
    sequence: Vec<i64>,
    body: Vec<&'a [u8]>,
    before: Vec<i64>,
}

impl<'a> Columns<'a> {
    fn of(settlement: &'a Settlement) -> Self {
        let mut columns = Self::default();
        settlement.parts.iter().for_each(|part| columns.add_part(part));
        settlement.totals.iter().for_each(|total| columns.add_total(total));
        columns
    }

    fn add_part(&mut self, part: &'a Part) {
        let retried = match &part.progress {
            Progress::Range { settled, end } => {
                self.ranges.batch.push(part.batch.0);
                self.ranges.fence.push(part.fence.0);
                self.ranges.lo.push(settled.lo as i64);
                self.ranges.hi.push(settled.hi as i64);
                self.ranges.end.push(*end as i64);
                false
            }
            Progress::Retries { settled } => {
                self.retries.batch.extend(settled.iter().map(|_| part.batch.0));
                self.retries.fence.extend(settled.iter().map(|_| part.fence.0));
                self.retries.index.extend(settled.iter().map(|index| *index as i64));
                true
            }
        };
        part.failed.iter().for_each(|failed| self.add_failed(part, failed, retried));
        self.add_page(part);
    }

    fn add_failed(&mut self, part: &Part, failed: &'a Failed, retried: bool) {
        self.failures.batch.push(part.batch.0);
        self.failures.index.push(failed.index as i64);
        self.failures.attempts.push(failed.attempts as i32);
        self.failures.reason.push(&failed.reason);
        self.failures.delay_ms.push(failed.delay.map(millis));
        self.failures.retried.push(retried);
    }

    fn add_page(&mut self, part: &'a Part) {
        let Some(page) = &part.page else { return };
        self.pages.batch.push(part.batch.0);
        self.pages.lo.push(page.range.lo as i64);
        self.pages.hi.push(page.range.hi as i64);
        self.pages.indexes.push(page.indexes.as_deref().map(array_text));
        self.pages.results.push(&page.results);
    }

    fn add_total(&mut self, total: &'a Total) {
        self.totals.batch.push(total.batch.0);
        self.totals.accumulator.push(total.accumulator.0);
        self.totals.sequence.push(total.sequence);
        self.totals.body.push(&total.body);
        self.totals.before.push(total.before);
    }
}

fn array_text(indexes: &[u64]) -> String {
    let numbers: Vec<String> = indexes.iter().map(u64::to_string).collect();
    format!("{{{}}}", numbers.join(","))
}
