//! Carries out a plan of faults, and notes when each began and ended.

use super::{
    report::Made,
    stage::{SharedCluster, Stage, log, moment},
};
use anyhow::{Context, Result};
use std::{
    fs,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tidegate::Stop;
use tidegate_drill::{
    Crew, Ended,
    history::{Moment, RelayFault, ServerFault},
    plan::{self, ProcessFault},
    postgres::Crash,
};
use tokio::time::{interval, sleep_until};

/// How often it is looked whether a process has ended, or is to be let go on.
const LOOK: Duration = Duration::from_millis(50);
/// A process that begins tries for so long to reach the server.
const START: Duration = Duration::from_secs(12);
/// How long a process may take to end when it is asked to.
const GRACE: Duration = Duration::from_secs(30);

/// What was done, as far as it is known.
#[derive(Clone, Default)]
pub struct Notes(Arc<Mutex<Noted>>);

/// What was done.
#[derive(Clone, Debug, Default)]
pub struct Noted {
    pub made: Made,
    pub processes: Vec<RelayFault>,
    pub server: Vec<ServerFault>,
    /// A server fault that is on since then.
    pub on: Option<Moment>,
    /// Processes that ended without being asked to.
    pub ended: Vec<EndedProcess>,
}

/// A process that ended without being asked to.
#[derive(Clone, Debug)]
pub struct EndedProcess {
    at: Moment,
    age: Duration,
    how: String,
}

impl Notes {
    pub fn lock(&self) -> MutexGuard<'_, Noted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Noted {
    /// Processes that ended although they should have gone on, and how; and how many could not start because the server
    /// was away: a process that has begun waits for the server, one that begins says that it is not there.
    pub fn ended_by_themselves(&self, aftermath: Moment) -> (Vec<String>, u64) {
        let shows = |at: Moment| {
            self.server.iter().any(|fault| fault.from <= at && at <= fault.to + aftermath)
        };
        let could_not_start = |it: &&EndedProcess| shows(it.at) && it.age < START;
        let (starts, ended): (Vec<_>, Vec<_>) = self.ended.iter().partition(could_not_start);
        (ended.into_iter().map(|it| it.how.clone()).collect(), starts.len() as u64)
    }
}

/// Makes the faults of the server, one after the other. Ends early when it is asked to stop.
pub async fn disturb_server(stage: &Stage, notes: &Notes, stop: &Stop) -> Result<()> {
    let Some(cluster) = stage.cluster() else { return Ok(()) };
    let mut failovers = failovers(&stage.plan.server);
    for (at, fault) in &stage.plan.server {
        tokio::select! {
            () = sleep_until((stage.start + *at).into()) => {}
            () = stop.stopped() => return Ok(()),
        }
        match *fault {
            plan::ServerFault::Crash(how, down) => {
                crash(stage, &cluster, notes, how, down).await?;
            }
            plan::ServerFault::FailOver(how, lag) => {
                failovers -= 1;
                fail_over(stage, &cluster, notes, how, lag).await?;
                if failovers > 0 {
                    cluster.change(|cluster| cluster.add_standby()).await??;
                }
            }
        }
    }
    Ok(())
}

fn failovers(faults: &[(Duration, plan::ServerFault)]) -> usize {
    faults.iter().filter(|(_, it)| matches!(it, plan::ServerFault::FailOver(..))).count()
}

async fn crash(
    stage: &Stage,
    cluster: &SharedCluster,
    notes: &Notes,
    how: Crash,
    down: Duration,
) -> Result<()> {
    let from = begin(stage, notes);
    cluster.change(move |cluster| cluster.crash(how)).await??;
    tokio::time::sleep(down).await;
    cluster.change(|cluster| cluster.restart()).await??;
    end(stage, notes, from, |made| made.crashes += 1);
    Ok(())
}

async fn fail_over(
    stage: &Stage,
    cluster: &SharedCluster,
    notes: &Notes,
    how: Crash,
    lag: Duration,
) -> Result<()> {
    cluster.change(|cluster| cluster.hold_standby()).await??;
    tokio::time::sleep(lag).await;
    let from = begin(stage, notes);
    cluster.change(move |cluster| cluster.fail_over(how)).await??;
    end(stage, notes, from, |made| made.failovers += 1);
    Ok(())
}

fn begin(stage: &Stage, notes: &Notes) -> Moment {
    let from = stage.now();
    notes.lock().on = Some(from);
    from
}

fn end(stage: &Stage, notes: &Notes, from: Moment, count: impl FnOnce(&mut Made)) {
    let mut noted = notes.lock();
    noted.on = None;
    noted.server.push(ServerFault { from, to: stage.now() });
    count(&mut noted.made);
}

/// Processes at work, and the faults that are made to them.
pub struct Disturbed {
    pub crew: Crew,
    notes: Notes,
    start: Instant,
    directory: PathBuf,
    /// Processes that are stopped: until when, which place and number, and since when.
    stopped: Vec<(Instant, usize, u32, Moment)>,
}

impl Disturbed {
    pub fn new(crew: Crew, stage: &Stage, notes: &Notes) -> Self {
        let (notes, start, directory) = (notes.clone(), stage.start, stage.directory.clone());
        Self { crew, notes, start, directory, stopped: Vec::new() }
    }

    /// Makes the faults of a plan, and replaces processes that end; until it is asked to stop. All processes go on
    /// then.
    pub async fn carry_out(
        &mut self,
        faults: &[(Duration, usize, ProcessFault)],
        stop: &Stop,
    ) -> Result<()> {
        let mut faults = faults.iter().peekable();
        let mut ticks = interval(LOOK);
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                () = stop.stopped() => break,
            }
            self.look().context("cannot look after the processes of the drill")?;
            while let Some((_, place, fault)) = faults.next_if(|it| it.0 <= self.start.elapsed()) {
                self.make(*place, *fault).context("cannot disturb a process of the drill")?;
            }
        }
        self.stopped.iter_mut().for_each(|it| it.0 = self.start);
        self.look().context("cannot let a process of the drill go on")
    }

    /// Replaces processes that ended, and lets those go on that were stopped for long enough.
    pub fn look(&mut self) -> Result<()> {
        let now = moment(self.start);
        for Ended { number, status, age } in self.crew.replace_ended()? {
            let said = last_line(&log(&self.directory, number));
            let how = format!("process {number} ended with {status}: {said}");
            self.notes.lock().ended.push(EndedProcess { at: now, age, how });
        }
        let is_over = |it: &mut (Instant, usize, u32, Moment)| it.0 <= Instant::now();
        for (_, _, number, from) in self.stopped.extract_if(.., is_over) {
            self.crew.resume(number)?;
            let to = moment(self.start);
            self.notes.lock().processes.push(RelayFault { relay: number, from, to });
        }
        Ok(())
    }

    fn make(&mut self, place: usize, fault: ProcessFault) -> Result<()> {
        let size = self.crew.size();
        let is_stopped = |place: &usize| self.stopped.iter().any(|it| it.1 == *place);
        let place = (place..place + size).map(|place| place % size).find(|it| !is_stopped(it));
        // All of them are stopped.
        let Some(place) = place else { return Ok(()) };
        let from = moment(self.start);
        match fault {
            ProcessFault::Kill => {
                let relay = self.crew.kill(place)?;
                let mut noted = self.notes.lock();
                noted.made.kills += 1;
                noted.processes.push(RelayFault { relay, from, to: moment(self.start) });
            }
            ProcessFault::Stop(time) => {
                let number = self.crew.stop(place)?;
                self.stopped.push((Instant::now() + time, place, number, from));
                self.notes.lock().made.stops += 1;
            }
            // A clean stop is not a fault: nothing may be delivered twice because of it.
            ProcessFault::Restart => {
                self.crew.restart(place, GRACE)?;
                self.notes.lock().made.restarts += 1;
            }
        }
        Ok(())
    }

    /// Asks all processes to end. Returns how many had to be killed.
    pub async fn finish(self) -> Result<usize> {
        let ended = tokio::task::spawn_blocking(move || self.crew.finish(GRACE)).await;
        Ok(ended.context("a step of the drill failed")??)
    }
}

/// The last line that a process wrote: why it ended.
fn last_line(log: &PathBuf) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    text.lines().next_back().unwrap_or("it said nothing").to_owned()
}
