//! Items → calls → replies, in that order.

use super::{
    answer::{Judged, Refusal, Scene, Told, judge},
    batch::{Call, pack},
    brighter::{self, Layout},
    connection::Reach,
    entry::Entry,
    place::Places,
};
use crate::{
    Envelope,
    broker::{Protocol, Reply},
    failure::Failure,
};
use async_trait::async_trait;
use aws_config::SdkConfig;
use std::collections::VecDeque;
use tidegate_core::sink::{Answer, Item, Outcome, Verdict};
use tokio::time::{Instant, timeout_at};

/// What differs from service to service.
#[async_trait]
pub trait Service: Send + Sync {
    type Client: Send + Sync;

    /// What the service is called.
    const NAME: &'static str;
    /// What it has, and the config's key that says which.
    const KIND: &'static str;
    /// What whoever sends needs to be allowed …
    const SEND: &'static str;
    /// … and whoever looks.
    const LOOK: &'static str;
    /// How it lays out messages for consumers that are written with Brighter.
    const BRIGHTER: Layout;

    fn client(found: &SdkConfig) -> Self::Client;

    /// Sends entries in one request. They go by their numbers.
    async fn send(client: &Self::Client, call: &Call) -> Result<Told, Refusal>;

    /// Asks for something that changes nothing.
    async fn look(client: &Self::Client, place: &str) -> Result<(), Refusal>;
}

/// How messages get to a service.
pub struct Publisher<S> {
    pub service: std::marker::PhantomData<fn() -> S>,
    pub reach: Reach,
    pub places: Places,
    /// The most bytes in a call, and in a message.
    pub limit: usize,
    /// Whose consumers read the messages.
    pub envelope: Envelope,
}

/// A client that knows where it is and who it is.
pub struct Connection<C> {
    client: C,
    region: String,
}

impl<S: Service> Publisher<S> {
    pub fn new(reach: Reach, places: Places, limit: usize, envelope: Envelope) -> Self {
        Self { service: std::marker::PhantomData, reach, places, limit, envelope }
    }

    /// The entry for an item, and where it goes; or what is wrong with the item.
    fn entry(&self, item: &Item<'_>) -> Result<(String, Entry), String> {
        let place = self.places.of(item)?;
        let entry = match self.envelope {
            Envelope::Tidegate => Entry::new(item, &place)?,
            Envelope::Brighter => brighter::entry(item, &place, S::BRIGHTER)?,
        };
        let (size, limit, service) = (entry.size(), self.limit, S::NAME);
        if size > limit {
            return Err(format!(
                "it is larger than {service} takes: {size} bytes with its attributes, of {limit}"
            ));
        }
        Ok((place, entry))
    }

    fn scene<'a>(place: &'a str, region: &'a str, right: &'static str) -> Scene<'a> {
        Scene { service: S::NAME, kind: S::KIND, place, region, right }
    }
}

#[async_trait]
impl<S: Service> Protocol for Publisher<S> {
    type Connection = Connection<S::Client>;

    fn place(&self) -> String {
        S::NAME.to_owned()
    }

    async fn connect(&self) -> Result<Self::Connection, Failure> {
        let found = self.reach.find().await?;
        let region = found.region().map(ToString::to_string).unwrap_or_default();
        Ok(Connection { client: S::client(&found), region })
    }

    /// It opens connections when it needs them.
    fn is_alive(&self, _: &Self::Connection) -> bool {
        true
    }

    async fn check(&self, connection: &Self::Connection) -> Result<(), Failure> {
        let only = self.places.only();
        let place = only.clone().unwrap_or_else(|| self.places.example());
        match S::look(&connection.client, &place).await {
            Ok(()) => Ok(()),
            // Topics decide which there are: that one of them is not there means nothing.
            Err(refusal) if only.is_none() && refusal.is_about_place() => Ok(()),
            Err(refusal) => {
                let scene = Self::scene(&place, &connection.region, S::LOOK);
                refusal.failure(scene).map_or(Ok(()), Err)
            }
        }
    }

    async fn publish(
        &self,
        connection: &Self::Connection,
        items: &[Item<'_>],
        deadline: Instant,
    ) -> Vec<Reply> {
        let mut replies: Vec<Reply> = vec![Ok(Verdict::Behind); items.len()];
        let mut ready = Vec::with_capacity(items.len());
        for (at, item) in items.iter().enumerate() {
            match self.entry(item) {
                Ok((place, entry)) => ready.push((at, place, entry)),
                Err(reason) => replies[at] = Ok(Verdict::Dead(reason)),
            }
        }
        let mut calls = pack(ready, self.limit);
        while let Some(call) = calls.pop_front() {
            let sent = timeout_at(deadline, S::send(&connection.client, &call)).await;
            let sent = sent.unwrap_or(Err(Refusal::Failed(Failure::TimedOut)));
            let scene = Self::scene(&call.place, &connection.region, S::SEND);
            match judge(sent, call.entries.len(), scene) {
                Judged::Each(each) => fill(&mut replies, &call, each),
                Judged::Halve => {
                    call.halves().into_iter().rev().for_each(|it| calls.push_front(it))
                }
                Judged::Stop(reply) => stop(&mut replies, call, &mut calls, &reply),
            }
        }
        replies
    }
}

fn fill(replies: &mut [Reply], call: &Call, each: Vec<Reply>) {
    call.items.iter().zip(each).for_each(|(&at, reply)| replies[at] = reply);
}

/// The same for a call and for those that would go to the same place.
fn stop(replies: &mut [Reply], call: Call, calls: &mut VecDeque<Call>, reply: &Reply) {
    let (same, others) = calls.drain(..).partition::<Vec<_>, _>(|it| it.place == call.place);
    calls.extend(others);
    for call in same.iter().chain([&call]) {
        fill(replies, call, vec![reply.clone(); call.items.len()]);
    }
}

/// One outcome if all messages were throttled: then they wait for the pacer, all together, and nobody
/// writes down each of them.
pub fn settled(answer: Answer, service: &str) -> Answer {
    let Outcome::Answered(verdicts) = &answer.outcome else { return answer };
    let told = verdicts.iter().filter(|verdict| **verdict != Verdict::Behind);
    let waits: Option<Vec<_>> = told
        .map(|verdict| match verdict {
            Verdict::Throttled { retry_after } => Some(*retry_after),
            _ => None,
        })
        .collect();
    match waits.as_deref().and_then(|waits| waits.iter().max()) {
        Some(&retry_after) => {
            let reason = format!("{service} asks for a slower pace");
            Answer { outcome: Outcome::Throttled { retry_after, reason }, ..answer }
        }
        None => answer,
    }
}
