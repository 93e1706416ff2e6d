//! Whether sinks can be reached, before the first message for them comes.

use super::Relay;
use crate::deliver::Destinations;
use futures_util::future::join_all;
use std::{convert::Infallible, future::pending, time::Duration};
use tidegate_core::Sink;
use tokio::time::{sleep, timeout};

/// How long a sink may take to answer.
const ANSWER: Duration = Duration::from_secs(10);
/// How long until one that did not is asked again.
const AGAIN: Duration = Duration::from_secs(10);

impl Relay {
    /// Says which sinks can be reached and which cannot. One that cannot is in trouble until it answers, here or
    /// to a delivery. Nobody has to wait for this: deliveries go on meanwhile.
    pub async fn check_sinks(&self) -> Infallible {
        let sinks = self.plan.sinks.iter().zip(&self.channels);
        join_all(sinks.map(|(planned, channels)| check(&planned.name, &*planned.sink, channels)))
            .await;
        pending().await
    }
}

async fn check(name: &str, sink: &dyn Sink, destinations: &Destinations) {
    let since = destinations.now();
    let mut told = false;
    loop {
        let reason = match timeout(ANSWER, sink.check()).await {
            Ok(Ok(_)) => {
                destinations.trust();
                return tracing::info!("{name} is reached");
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => "it does not answer".to_owned(),
        };
        if !std::mem::replace(&mut told, true) {
            tracing::warn!(
                "cannot reach {name}: {reason}; its messages wait, and it is tried again"
            );
        }
        destinations.doubt(since, &reason);
        sleep(AGAIN).await;
        if !destinations.is_doubted() {
            return;
        }
    }
}
