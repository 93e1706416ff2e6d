//! One of the relay processes that are killed.

use super::{flaky::Flaky, writers::TOPIC};
use crate::sinks;
use anyhow::{Context, Result};
use async_nats::ServerAddr;
use clap::Args;
use std::{io::Read, sync::Arc, time::Duration};
use tidegate::{
    Access, Stop,
    outbox::{Pattern, Route},
    relay::{Plan, PlannedSink, Relay, RelayOptions},
    sinks::Protected,
    worker_id,
};
use toml::{Table, Value};

/// Short, so that what a killed relay held is soon taken over.
const LEASE: Duration = Duration::from_secs(3);

const SINK: &str = "nats";

#[derive(Args, Debug)]
pub struct VictimArgs {
    #[arg(long, env = super::NATS, hide_env_values = true)]
    nats: String,
    #[arg(long)]
    stream: String,
    #[arg(long)]
    number: usize,
}

/// Delivers until its standard input ends: also if whoever started it is killed.
pub async fn run(args: &VictimArgs, store_url: &str) -> Result<()> {
    let store = tidegate::open(store_url, Access::Existing).await?;
    let options = RelayOptions { lease: LEASE, ..RelayOptions::new(worker_id()) };
    let relay = Relay::new(store.outbox_store(), plan(args)?, options)?;
    let stop = Stop::new();
    let ends = stop.clone();
    std::thread::spawn(move || {
        // Nothing is ever written there.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        ends.stop();
    });
    relay.run(stop).await?;
    Ok(())
}

fn plan(args: &VictimArgs) -> Result<Plan> {
    let PlannedSink { sink, .. } = sinks::planned(SINK, &declared(args)?, &Protected::default())?;
    let (sink, pacer) = (Arc::new(Flaky::new(sink, args.number)), Default::default());
    Ok(Plan {
        sinks: vec![PlannedSink { name: SINK.to_owned(), sink, pacer }],
        routes: vec![Route { topics: Pattern(TOPIC.to_owned()), sink: SINK.to_owned() }],
        policies: Vec::new(),
    })
}

fn declared(args: &VictimArgs) -> Result<Table> {
    let address: ServerAddr = args.nats.parse().context("--nats is no address")?;
    let subject = format!("{}.{{topic}}", args.stream);
    let declared = [
        ("kind", Value::from("nats")),
        ("url", args.nats.clone().into()),
        ("subject", subject.into()),
        ("allow", vec![address.host()].into()),
    ];
    Ok(declared.map(|(key, value)| (key.to_owned(), value)).into_iter().collect())
}
