//! `tidegate batch watch`

use super::show;
use crate::{app::App, exit::Exit, show::progress::Follower, signals::Signals, store};
use anyhow::Result;
use tidegate::{BatchId, OpenStore};

/// Follows a batch until it is closed, then shows it. Only looks: stopping it stops no worker.
pub async fn run(app: &App, store: &OpenStore, id: BatchId) -> Result<Exit> {
    let status = store::status(store, id).await?;
    let signals = Signals::listen(None)?;
    let mut follower = Follower::new(app, store, &status, true);
    let closed = tokio::select! {
        biased;
        () = signals.stop.stopped() => None,
        closed = follower.until_closed() => Some(closed?),
    };
    drop(follower);
    let Some(status) = closed else {
        return Ok(Exit::Stopped(signals.code().unwrap_or(130)));
    };
    show::show(app, store, &status).await?;
    Ok(Exit::of(status.state))
}
