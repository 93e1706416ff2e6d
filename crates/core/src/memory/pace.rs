//! Notes about the pace of sinks.

use super::Memory;
use crate::{
    StoreError,
    limits::MAX_LISTED,
    pace::{NotedPace, PaceBook, PaceNote, PaceQuery},
};
use async_trait::async_trait;

#[async_trait]
impl PaceBook for Memory {
    async fn note_pace(&self, note: PaceNote) -> Result<(), StoreError> {
        let now = self.now();
        let mut content = self.content();
        content.paces.retain(|(_, old)| (old.batch, &old.worker) != (note.batch, &note.worker));
        content.paces.push((now, note));
        Ok(())
    }

    async fn paces(&self, query: PaceQuery) -> Result<Vec<NotedPace>, StoreError> {
        let now = self.now();
        let content = self.content();
        let wanted = content.paces.iter().rev().filter(|(_, note)| {
            query.batch.is_none_or(|batch| batch == note.batch)
                && query.sink.as_ref().is_none_or(|sink| *sink == note.sink)
        });
        let wanted = wanted
            .filter(|(at, _)| query.within.is_none_or(|within| now.saturating_sub(*at) <= within));
        let noted =
            wanted.map(|(at, note)| NotedPace { note: note.clone(), age: now.saturating_sub(*at) });
        Ok(noted.take(query.limit.min(MAX_LISTED)).collect())
    }
}
