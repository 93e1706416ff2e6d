//! A relay's way to a server.

use super::{
    history::{Event, History},
    ice::Ice,
    server::{Parcel, Server},
};
use async_trait::async_trait;
use std::{sync::Arc, time::Duration};
use tidegate_core::{
    Position, Sink,
    sink::{Answer, Delivery, Hint, Item, Outcome, SinkCapabilities, SinkError},
};
use tokio::{sync::oneshot, time::sleep};

pub struct Client {
    pub life: usize,
    pub server: Arc<Server>,
    pub ice: Ice,
    pub history: History,
}

#[async_trait]
impl Sink for Client {
    fn capabilities(&self) -> SinkCapabilities {
        SinkCapabilities {
            name: "simulated",
            connections: vec!["main".to_owned()],
            operation: "take".to_owned(),
            max_group: self.server.plan.max_group,
            mixes_topics: self.server.plan.mixes,
            budgets: Vec::new(),
        }
    }

    async fn check(&self) -> Result<Vec<Option<Duration>>, SinkError> {
        Ok(vec![None])
    }

    /// What is on its way is out of the sender's hands: it may take effect when the sender is gone.
    async fn deliver(&self, delivery: Delivery<'_>) -> Answer {
        self.ice.thawed().await;
        let parcels: Vec<Parcel> = delivery.items.iter().map(parcel).collect();
        let ids = parcels.iter().map(|parcel| parcel.id).collect();
        let (life, sink) = (self.life, self.server.place);
        let history = &self.history;
        let request = history.add(life, Event::Asked { sink, ids });
        let course = self.server.course(&parcels);
        let after = course.after;
        let (answer, answered) = oneshot::channel();
        let server = self.server.clone();
        tokio::spawn(async move {
            sleep(course.before).await;
            if course.outlives || !answer.is_closed() {
                // Nobody may be there any more to hear it.
                let _ = answer.send(server.take(life, request, &course, &parcels));
            }
        });
        let outcome = answered.await.unwrap_or(Outcome::TimedOut);
        sleep(after).await;
        self.ice.thawed().await;
        history.add(life, Event::Answered { request, outcome: outcome.clone() });
        Answer { outcome, hint: Hint::default() }
    }
}

/// The payload names the message's place in the scenario, and the item's id ends with that of the message.
fn parcel(item: &Item<'_>) -> Parcel {
    let number = |text: &str| text.rsplit('-').next().and_then(|it| it.parse::<i64>().ok());
    let message = item.text().ok().and_then(number);
    Parcel {
        id: Position(number(item.id).expect("every message has a number")),
        message: message.expect("the scenario numbers its messages") as usize,
        key: item.key.map(str::to_owned),
    }
}
