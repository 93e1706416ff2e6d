//! Finds out from where on pending rows have to be read, in pages.

use super::{
    Adopted,
    front::{MOST_LATE, PAGE, Page, Place},
};
use crate::{decode::get, error::corrupt, pool::Params};
use std::time::Instant;
use tidegate_core::StoreError;
use tokio_postgres::{Row, types::Type};

const OPERATION: &str = "look at pending rows";

/// Pages that a claim waits for.
const PAGES: usize = 3;

impl Adopted {
    /// Looks a little ahead and a little behind, if it is time for it. A claim goes on without it if it fails.
    pub(super) async fn look_around(&self) {
        let begun = Instant::now();
        if !self.statements.has_front || !self.front().is_due(begun) {
            return;
        }
        if let Err(error) = self.look_both_ways().await {
            tracing::debug!("{error}; rows are read from where they were read before");
        }
        self.front().rest(begun, Instant::now());
    }

    async fn look_both_ways(&self) -> Result<(), StoreError> {
        for _ in 0..PAGES {
            if !self.look_ahead().await? {
                break;
            }
        }
        let (fence, place) = {
            let front = self.front();
            (front.fence(), front.sweep().map(|place| place.cloned()))
        };
        let Some(place) = place else { return Ok(()) };
        let mut page = self.look_from(place.as_ref()).await?;
        if let Some(place) = place.filter(|place| page.is_stuck(Some(place))) {
            page.late = self.others_at(&place).await?;
        }
        let mut front = self.front();
        if front.fence() == fence {
            front.swept(page);
        }
        Ok(())
    }

    /// Passes one page if everything in it was set aside. Whether there may be more.
    pub(super) async fn look_ahead(&self) -> Result<bool, StoreError> {
        if !self.statements.has_front {
            return Ok(false);
        }
        let (fence, place) = {
            let front = self.front();
            (front.fence(), front.ahead().cloned())
        };
        let page = self.look_from(place.as_ref()).await?;
        let ties = match &place {
            Some(place) if page.others.is_empty() && page.is_stuck(Some(place)) => {
                self.others_at(place).await?.is_empty()
            }
            _ => false,
        };
        let mut front = self.front();
        if front.fence() != fence {
            return Ok(false);
        }
        if ties {
            front.pass_ties();
            return Ok(true);
        }
        Ok(front.looked(&page))
    }

    async fn look_from(&self, place: Option<&Place>) -> Result<Page, StoreError> {
        let front = self.front().place().cloned();
        let front = front.as_ref();
        let [adopted, values] = self.mapped();
        let params: Params<'_> = &[
            adopted,
            values,
            (&place.map(|place| &place.texts), Type::TEXT_ARRAY),
            (&place.is_some_and(|place| place.after), Type::BOOL),
            (&(PAGE as i64), Type::INT8),
            (&front.map(|front| &front.texts), Type::TEXT_ARRAY),
            (&front.is_some_and(|front| front.after), Type::BOOL),
        ];
        let row = self.answer(&self.statements.look, params).await?;
        Ok(Page {
            rows: get::<i64>(OPERATION, &row, "rows")?.unsigned_abs() as usize,
            last: get(OPERATION, &row, "last")?,
            others: get(OPERATION, &row, "others")?,
            late: get(OPERATION, &row, "late")?,
            is_behind: get::<Option<bool>>(OPERATION, &row, "is_behind")?.unwrap_or_default(),
        })
    }

    /// Rows at a place that were not set aside, however many are there.
    async fn others_at(&self, place: &Place) -> Result<Vec<String>, StoreError> {
        let [adopted, values] = self.mapped();
        let params: Params<'_> =
            &[adopted, values, (&place.texts, Type::TEXT_ARRAY), (&(MOST_LATE as i64), Type::INT8)];
        get(OPERATION, &self.answer(&self.statements.look_at, params).await?, "others")
    }

    async fn answer(&self, sql: &str, params: Params<'_>) -> Result<Row, StoreError> {
        let rows = self.pool.query(self.pool.leased(OPERATION), sql, params).await?;
        let first = rows.into_iter().next();
        first.ok_or_else(|| corrupt(OPERATION, "the answer came back empty"))
    }
}
