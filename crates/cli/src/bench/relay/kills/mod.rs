//! Relays that are killed while they work: nothing lost, order per key, and no more duplicates than what
//! was in flight at the kills.
//!
//! In flight is what a relay had sent and what was not settled when it was dead: both are looked at from
//! outside, in the stream and in the database. Only that may be sent again.

mod crew;
mod flaky;
mod history;
mod stream;
mod victim;
mod writers;

pub use victim::{VictimArgs, run as be_victim};

use super::{NATS, Row, database::Database};
use crate::{
    bench::report::{Bound, Judge},
    show::number,
};
use anyhow::Result;
use crew::{Crew, RELAYS};
use history::{Death, Findings};
use serde::Serialize;
use std::{
    fmt,
    time::{Duration, Instant},
};
use stream::Stream;
use tidegate::OpenStore;
use tokio::time::{interval, sleep};
use writers::{MOST_OUTSTANDING, Writers};

const KILL_EVERY: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(200);
/// Far above what the rest takes after the last kill.
const DRAIN_DEADLINE: Duration = Duration::from_secs(120);

/// What happened.
#[derive(Debug, Serialize)]
pub struct Killed {
    messages: u64,
    kills: usize,
    lost: u64,
    unexpected: u64,
    duplicates: u64,
    /// Duplicates of messages that were in flight at no kill.
    unexplained: u64,
    order_violations: u64,
    keys_with_wrong_end: u64,
    /// Of all kills together, and at most at one.
    in_flight: u64,
    most_in_flight: u64,
    /// Deliveries that the bench let fail.
    failed: u64,
    /// Of what went wrong.
    examples: Vec<String>,
}

pub async fn measure(
    database: &Database,
    nats: &str,
    kills: usize,
    rows: &mut Vec<Row>,
    judge: &mut Judge,
) -> Result<Killed> {
    let mut stream = Stream::create(nats).await?;
    let found = watch(database, nats, kills, &mut stream).await;
    let deleted = stream.delete().await;
    let (killed, seconds) = found?;
    deleted?;
    let name = format!("{RELAYS} relays to NATS, {kills} killed by SIGKILL");
    rows.push(Row::new(name, killed.messages, seconds));
    killed.judge(judge);
    Ok(killed)
}

async fn watch(
    database: &Database,
    nats: &str,
    kills: usize,
    stream: &mut Stream,
) -> Result<(Killed, f64)> {
    let name = stream.name.clone();
    let start = Instant::now();
    database.store.limit_outstanding(Some(MOST_OUTSTANDING)).await?;
    let (published, deaths) = fire(database, nats, kills, &name).await?;
    database.store.limit_outstanding(None).await?;
    let seconds = start.elapsed().as_secs_f64();
    let arrivals = stream.read().await?;
    let mut findings = history::judge(&published, &arrivals, &deaths);
    let dead = database.store.dead_groups().await?;
    findings
        .examples
        .extend(dead.iter().map(|it| format!("{} are dead: {}", it.messages, it.reason)));
    Ok((Killed::new(published.iter().sum(), deaths.len(), findings), seconds))
}

/// Publishes, delivers, and kills. Returns by key how many messages were published, and who died.
async fn fire(
    database: &Database,
    nats: &str,
    kills: usize,
    stream: &str,
) -> Result<(Vec<u64>, Vec<Death>)> {
    let mut crew = Crew::start(database, nats, stream).await?;
    let writers = Writers::start(&database.store);
    let mut ticks = interval(KILL_EVERY);
    ticks.tick().await;
    for _ in 0..kills {
        ticks.tick().await;
        crew.kill_one().await?;
    }
    let published = writers.stop().await?;
    drain(&database.store).await?;
    Ok((published, crew.stop().await?))
}

/// Waits until nothing is outstanding. What never gets there is judged as lost.
async fn drain(store: &OpenStore) -> Result<()> {
    let start = Instant::now();
    loop {
        let status = store.outbox().await?;
        let outstanding: u64 = status.topics.iter().map(|topic| topic.outstanding).sum();
        if outstanding == 0 {
            return Ok(());
        }
        if start.elapsed() > DRAIN_DEADLINE {
            eprintln!("{outstanding} messages are still outstanding after {DRAIN_DEADLINE:?}");
            return Ok(());
        }
        sleep(LOOK).await;
    }
}

impl Killed {
    fn new(messages: u64, kills: usize, findings: Findings) -> Self {
        Self {
            messages,
            kills,
            lost: findings.lost,
            unexpected: findings.unexpected,
            duplicates: findings.duplicates,
            unexplained: findings.unexplained,
            order_violations: findings.overtaken,
            keys_with_wrong_end: findings.wrong_ends,
            in_flight: findings.in_flight.iter().sum(),
            most_in_flight: findings.in_flight.iter().copied().max().unwrap_or(0),
            failed: findings.failed,
            examples: findings.examples,
        }
    }

    fn judge(&self, judge: &mut Judge) {
        let mut none = |figure: &str, measured: u64| {
            judge.check(figure, Some(measured as f64), Bound::AtMost, 0.0);
        };
        none("under kills: lost", self.lost);
        none("under kills: unexpected", self.unexpected);
        none("under kills: order violations", self.order_violations);
        none("under kills: keys that end with an older message", self.keys_with_wrong_end);
        let in_flight = Some(self.in_flight as f64);
        judge.check("under kills: in flight at the kills", in_flight, Bound::AtLeast, 1.0);
        let ratio = self.duplicates as f64 / self.in_flight.max(1) as f64;
        let figure = "under kills: duplicates / in flight at the kills";
        judge.check(figure, Some(ratio), Bound::AtMost, 1.0);
    }
}

impl fmt::Display for Killed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} messages, {} failed deliveries, {} kills with {} in flight, at most {} at one; {} \
             duplicates, {} of them not of what was in flight",
            number::count(self.messages),
            number::count(self.failed),
            self.kills,
            number::count(self.in_flight),
            number::count(self.most_in_flight),
            number::count(self.duplicates),
            number::count(self.unexplained),
        )?;
        self.examples.iter().try_for_each(|example| writeln!(f, "  {example}"))
    }
}
