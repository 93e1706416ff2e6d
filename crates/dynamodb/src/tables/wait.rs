//! Waits for tables and indexes. What DynamoDB tells of a table lags behind what was done to it: a new table may be
//! unknown for a while, and a new index not be in the table's description.

use super::layout::Layout;
use crate::{client::Client, error::refused};
use std::time::Duration;
use tidegate_core::StoreError;
use tokio::time::{Instant, sleep};

const OPERATION: &str = "migrate";

/// How often it is looked whether a table or an index is ready.
const LOOK: Duration = Duration::from_millis(500);
/// How often it is said what is waited for.
const TELL: Duration = Duration::from_secs(30);
/// What was made appears within this time, or somebody has removed it.
const APPEARS: Duration = Duration::from_secs(60);

impl Client {
    /// Waits until a table and its indexes can be used, `made` among them. There is no end to this but that: to fill
    /// an index takes as long as the table is large, and DynamoDB goes on with it whoever waits.
    pub(super) async fn ready(&self, table: &str, made: &[String]) -> Result<Layout, StoreError> {
        let (begin, mut told) = (Instant::now(), Instant::now());
        loop {
            let layout = self.layout(table).await?;
            if table == self.address.table {
                layout.as_ref().map_or(Ok(()), |layout| self.check(layout))?;
            }
            match layout {
                // An index that does not appear was refused to somebody else: it is looked what is missing now.
                Some(layout)
                    if layout.is_ready()
                        && (made.iter().all(|name| layout.has_index(name))
                            || begin.elapsed() >= APPEARS) =>
                {
                    return Ok(layout);
                }
                None if begin.elapsed() >= APPEARS => {
                    let problem = format!(
                        "DynamoDB does not know the table {table} {} s after it was made or seen: has somebody removed \
                         it? `tidegate migrate` makes it again",
                        APPEARS.as_secs()
                    );
                    return Err(refused(OPERATION, problem));
                }
                layout if told.elapsed() >= TELL => {
                    told = Instant::now();
                    tracing::info!("{}", waiting(table, layout.as_ref(), begin.elapsed()));
                }
                _ => {}
            }
            sleep(LOOK).await;
        }
    }
}

/// What is waited for.
fn waiting(table: &str, layout: Option<&Layout>, lasts: Duration) -> String {
    let made = layout.map(Layout::being_made).unwrap_or_default();
    let what = match made.is_empty() {
        true => format!("the table {table}"),
        false => format!(
            "the index {} of {table}, which DynamoDB fills from the table",
            made.join(" and the index ")
        ),
    };
    format!(
        "waiting for {what}, for {} s by now; `tidegate migrate` can be stopped, and goes on when it is run again",
        lasts.as_secs()
    )
}
