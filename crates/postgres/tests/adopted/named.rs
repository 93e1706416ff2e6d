//! An adopted table as the conformance suite wants it: with an application that publishes, and messages that are known
//! by the names of their rows.
//!
//! People know a row of an adopted table by the position at which it was set aside, which it does not have when it is
//! written. Cases must know what they have published: so names take the place of positions here, both ways.

use super::*;
use async_trait::async_trait;
use std::{
    collections::HashMap,
    sync::{Mutex, atomic::AtomicU64, atomic::Ordering::Relaxed},
};
use tidegate_core::{
    InspectOutbox, Message, MessageId, NewMessage, Outbox, Publish, Retain, StoreError,
    outbox::{
        AuditLine, Claim, ClaimRequest, DeadGroup, GiveBack, Listing, OutboxCapabilities,
        OutboxStatus, Outstanding, Sealed, Selection, Settled, Settlement, Share, Shared,
        SteerPage, Steered, Stored, Stuck, StuckQuery, TroubleNote,
    },
};
use tokio_postgres::types::ToSql;

/// One handle to a table.
pub struct Named {
    adopted: Adopted,
    application: Arc<Application>,
}

/// What all handles to a table share.
pub struct Application {
    pub database: Arc<Database>,
    /// Inserts rows: `$1` their names, `$2` topics, `$3` keys, `$4` payloads, `$5` media types, `$6` headers as JSON.
    pub insert: String,
    pub mapping: Mapping,
    pub last: AtomicU64,
    /// By position.
    pub names: Mutex<HashMap<i64, Arc<str>>>,
}

impl Application {
    /// Another handle.
    pub fn open(self: &Arc<Self>) -> Named {
        let url = self.database.url();
        let opening = Adopted::open(url.as_str(), self.mapping.clone());
        let runtime = tokio::runtime::Handle::current();
        let adopted = tokio::task::block_in_place(|| runtime.block_on(opening)).unwrap();
        Named { adopted, application: self.clone() }
    }

    fn learn(&self, messages: &mut [Message]) {
        let mut names = self.names.lock().unwrap();
        for message in messages {
            assert_eq!(message.id, message.position.into());
            names.insert(message.position.0, message.name.as_str().into());
            message.id = MessageId::text(message.name.as_str());
        }
    }

    fn name(&self, id: &MessageId) -> MessageId {
        let names = self.names.lock().unwrap();
        MessageId::text(names[&id.as_number().expect("an adopted table numbers its rows")].clone())
    }

    /// The positions at which a row was read, the last one first.
    fn positions(&self, id: &MessageId) -> Vec<MessageId> {
        let (names, name) = (self.names.lock().unwrap(), id.to_string());
        let of_name = names.iter().filter(|(_, known)| ***known == *name).map(|(at, _)| *at);
        let mut positions: Vec<i64> = of_name.collect();
        positions.sort_unstable_by(|one, other| other.cmp(one));
        positions.into_iter().map(MessageId::number).collect()
    }

    fn selection(&self, which: Selection) -> Selection {
        let positions =
            |ids: Vec<MessageId>| ids.iter().flat_map(|id| self.positions(id)).collect();
        Selection { ids: which.ids.map(positions), ..which }
    }

    fn after(&self, after: Option<MessageId>) -> Option<MessageId> {
        after.map(|id| self.positions(&id).remove(0))
    }
}

#[async_trait]
impl Outbox for Named {
    fn outbox_capabilities(&self) -> OutboxCapabilities {
        // By position: what is set aside is not listed by its name.
        OutboxCapabilities { listing: Listing::ByPlace, ..self.adopted.outbox_capabilities() }
    }

    async fn share_lanes(&self, request: Share) -> Result<Shared, StoreError> {
        self.adopted.share_lanes(request).await
    }

    async fn claim_messages(&self, request: ClaimRequest) -> Result<Claim, StoreError> {
        let mut claim = self.adopted.claim_messages(request).await?;
        claim.readings.iter_mut().for_each(|it| self.application.learn(&mut it.messages));
        self.application.learn(&mut claim.due);
        Ok(claim)
    }

    async fn settle_messages(&self, settlement: Settlement) -> Result<Settled, StoreError> {
        self.adopted.settle_messages(settlement).await
    }

    async fn give_back_lanes(&self, request: GiveBack) -> Result<(), StoreError> {
        self.adopted.give_back_lanes(request).await
    }

    async fn note_sinks(&self, note: TroubleNote) -> Result<(), StoreError> {
        self.adopted.note_sinks(note).await
    }

    async fn published(&self) {
        self.adopted.published().await
    }
}

#[async_trait]
impl InspectOutbox for Named {
    async fn outbox(&self) -> Result<OutboxStatus, StoreError> {
        self.adopted.outbox().await
    }

    async fn outstanding(&self) -> Result<Outstanding, StoreError> {
        self.adopted.outstanding().await
    }

    async fn dead_groups(&self) -> Result<Vec<DeadGroup>, StoreError> {
        let mut groups = self.adopted.dead_groups().await?;
        for group in &mut groups {
            group.first = self.application.name(&group.first);
            group.last = self.application.name(&group.last);
        }
        Ok(groups)
    }

    async fn stuck(&self, query: StuckQuery) -> Result<Vec<Stuck>, StoreError> {
        let (which, after) = (query.which, query.after);
        let (which, after) = (self.application.selection(which), self.application.after(after));
        let mut stuck = self.adopted.stuck(StuckQuery { which, after, ..query }).await?;
        assert!(stuck.is_sorted_by(|one, next| one.id < next.id), "it is listed by positions");
        stuck.iter_mut().for_each(|stuck| stuck.id = self.application.name(&stuck.id));
        Ok(stuck)
    }

    async fn message(&self, id: MessageId) -> Result<Option<Stored>, StoreError> {
        for position in self.application.positions(&id) {
            if let Some(mut stored) = self.adopted.message(position).await? {
                self.application.learn(std::slice::from_mut(&mut stored.message));
                return Ok(Some(stored));
            }
        }
        Ok(None)
    }

    async fn steer_dead(&self, page: SteerPage) -> Result<Steered, StoreError> {
        let (which, after) = (page.which, page.after);
        let (which, after) = (self.application.selection(which), self.application.after(after));
        let steered = self.adopted.steer_dead(SteerPage { which, after, ..page }).await?;
        let next = steered.next.map(|next| self.application.name(&next));
        Ok(Steered { next, ..steered })
    }

    async fn audit(&self, limit: usize) -> Result<Vec<AuditLine>, StoreError> {
        self.adopted.audit(limit).await
    }
}

/// As its application writes them.
#[async_trait]
impl Publish for Named {
    async fn publish(&self, messages: Vec<NewMessage>) -> Result<Vec<MessageId>, StoreError> {
        let name = |_| format!("row-{:08}", self.application.last.fetch_add(1, Relaxed));
        let names: Vec<String> = messages.iter().map(name).collect();
        let topics: Vec<&str> = messages.iter().map(|it| it.topic.as_str()).collect();
        let keys: Vec<Option<&str>> = messages.iter().map(|it| it.key.as_deref()).collect();
        let payloads: Vec<&[u8]> = messages.iter().map(|it| it.payload.as_slice()).collect();
        let types: Vec<&str> = messages.iter().map(declared).collect();
        let headers: Vec<String> = messages.iter().map(bag).collect();
        let client = self.application.database.client().await;
        let columns: [&(dyn ToSql + Sync); 6] =
            [&names, &topics, &keys, &payloads, &types, &headers];
        client.execute(&self.application.insert, &columns).await.expect("rows can be inserted");
        Ok(names.into_iter().map(MessageId::text).collect())
    }

    async fn limit_outstanding(&self, most: Option<u64>) -> Result<(), StoreError> {
        self.adopted.limit_outstanding(most).await
    }
}

fn declared(message: &NewMessage) -> &str {
    message.headers.get("content-type").unwrap_or("application/json")
}

/// All headers but the media type.
fn bag(message: &NewMessage) -> String {
    let others = message.headers.iter().filter(|(name, _)| *name != "content-type");
    serde_json::to_string(&others.collect::<HashMap<_, _>>()).unwrap()
}

#[async_trait]
impl Retain for Named {
    async fn seal(&self, age: Duration) -> Result<Option<Sealed>, StoreError> {
        self.adopted.seal(age).await
    }

    async fn sealed(
        &self,
        sealed: Sealed,
        after: Option<MessageId>,
        limit: usize,
    ) -> Result<Vec<Message>, StoreError> {
        self.adopted.sealed(sealed, after, limit).await
    }

    async fn discard(&self, sealed: Sealed) -> Result<u64, StoreError> {
        self.adopted.discard(sealed).await
    }
}
