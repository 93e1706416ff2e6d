//! Relay processes, and their deaths.

use super::history::Death;
use crate::bench::{meter::connect, relay::database::Database};
use anyhow::{Context, Result, ensure};
use std::{
    hash::{BuildHasher, RandomState},
    process::Stdio,
    time::{Duration, Instant},
};
use tokio::{
    process::{Child, Command},
    time::{sleep, timeout},
};
use tokio_postgres::Client;

/// Relays at a time.
pub const RELAYS: usize = 4;

/// Connections tell whose they are by this name and a number.
const NAME: &str = "tidegate-bench-relay-";
const CONNECTIONS: &str = "
    select count(*) from pg_stat_activity
    where application_name = $1 and datname = current_database()";
const UNSETTLED: &str = "
    select m.id
    from tidegate.lanes l
    join tidegate.message m on tidegate.lane_of(m.key, m.id) = l.lane and m.id > l.cursor
    where m.id > (select min(cursor) from tidegate.lanes)
    union
    select id from tidegate.aside";

/// A kill is late by up to this.
const MOMENT: Duration = Duration::from_millis(50);
/// How often something is looked at.
const LOOK: Duration = Duration::from_millis(10);
/// The server notices at once that a process is gone.
const GONE_DEADLINE: Duration = Duration::from_secs(1);
/// Above the grace of a relay.
const STOP_DEADLINE: Duration = Duration::from_secs(30);

/// Relay processes at work.
pub struct Crew<'a> {
    database: &'a Database,
    nats: &'a str,
    stream: &'a str,
    client: Client,
    relays: Vec<Member>,
    started: usize,
    pub deaths: Vec<Death>,
}

struct Member {
    number: usize,
    process: Child,
}

impl<'a> Crew<'a> {
    pub async fn start(database: &'a Database, nats: &'a str, stream: &'a str) -> Result<Self> {
        let client = connect(&database.url).await?;
        let (relays, deaths) = Default::default();
        let mut crew = Self { database, nats, stream, client, relays, started: 0, deaths };
        for _ in 0..RELAYS {
            let member = crew.recruit()?;
            crew.relays.push(member);
        }
        Ok(crew)
    }

    fn recruit(&mut self) -> Result<Member> {
        self.started += 1;
        let number = self.started;
        let program = std::env::current_exe().context("find this program to start relays")?;
        let mut command = Command::new(program);
        command.args(["bench", "victim", "--stream", self.stream]);
        command.args(["--number", &number.to_string()]);
        let url = &self.database.url;
        let separator = if url.contains('?') { '&' } else { '?' };
        let url = format!("{url}{separator}application_name={NAME}{number}");
        command.env("TIDEGATE_STORE", url).env(super::NATS, self.nats);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).kill_on_drop(true);
        let process = command.spawn().context("start a relay of the bench")?;
        Ok(Member { number, process })
    }

    /// Kills one of them by SIGKILL, and starts another in its place. The moment has nothing to do with when
    /// messages are published.
    pub async fn kill_one(&mut self) -> Result<()> {
        let random = RandomState::new().hash_one(self.started);
        let victim = random as usize % self.relays.len();
        sleep(MOMENT.mul_f64((random >> 32) as f64 / f64::from(u32::MAX))).await;
        let ended = self.relays[victim].process.try_wait()?;
        ensure!(ended.is_none(), "a relay of the bench ended by itself");
        self.relays[victim].process.kill().await.context("kill a relay of the bench")?;
        let next = self.recruit()?;
        let dead = std::mem::replace(&mut self.relays[victim], next);
        self.gone(dead.number).await?;
        // Long before its lease has expired: nobody has taken its lanes over.
        let unsettled = self.client.query(UNSETTLED, &[]).await?;
        let unsettled = unsettled.iter().map(|row| row.get(0)).collect();
        self.deaths.push(Death { relay: dead.number, unsettled });
        Ok(())
    }

    /// Waits until the server has nothing more to do for a relay.
    async fn gone(&self, number: usize) -> Result<()> {
        let (name, start) = (format!("{NAME}{number}"), Instant::now());
        while self.client.query_one(CONNECTIONS, &[&name]).await?.get::<_, i64>(0) > 0 {
            ensure!(
                start.elapsed() < GONE_DEADLINE,
                "the connections of a killed relay are still open after {GONE_DEADLINE:?}: other \
                 work on this machine, or a pooler"
            );
            sleep(LOOK).await;
        }
        Ok(())
    }

    /// Asks all of them to stop, and waits until they have. Returns the deaths.
    pub async fn stop(self) -> Result<Vec<Death>> {
        for mut member in self.relays {
            drop(member.process.stdin.take());
            let ended = timeout(STOP_DEADLINE, member.process.wait()).await;
            let status = ended.context("a relay of the bench does not stop")??;
            ensure!(status.success(), "a relay of the bench ended with {status}");
        }
        Ok(self.deaths)
    }
}
