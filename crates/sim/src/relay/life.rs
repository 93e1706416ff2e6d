//! One life of a relay, from its start to whatever end.

use super::{
    hazards::Hazard,
    history::{Event, History},
    ice::{Freezing, Ice},
    indexed::{self, IndexPlan, Table},
    late::{Reading, Shared},
    routing::Routing,
    scenario::{Ending, HORIZON, LifePlan, Scenario},
    server::Server,
    sink::Client,
    store::View,
    wire::Wire,
};
use std::{sync::Arc, time::Duration};
use tidegate_core::{Memory, OutboxStore, WorkerId, outbox::Pattern};
use tidegate_engine::{
    Relay, RelayOptions, Stop,
    relay::{Plan, PlannedSink, RelayWatch},
};
use tokio::{
    sync::watch,
    time::{sleep_until, timeout},
};

/// What all lives share.
#[derive(Clone)]
pub struct Stage {
    pub scenario: Arc<Scenario>,
    pub store: Store,
    pub database: Shared,
    pub servers: Vec<Arc<Server>>,
    pub history: History,
}

/// The store of a world.
#[derive(Clone)]
pub enum Store {
    Log(Memory),
    Indexed(Table),
}

impl Store {
    /// Somebody's access to it who is no relay.
    pub fn people(&self) -> Arc<dyn OutboxStore> {
        match self {
            Self::Log(memory) => Arc::new(memory.clone()),
            Self::Indexed(table) => {
                Arc::new(indexed::Client::new(table, &IndexPlan::calm(), None, Duration::ZERO))
            }
        }
    }
}

/// Says how a life ended: a crash says nothing else.
struct Alive {
    history: History,
    life: usize,
    ended: bool,
}

impl Drop for Alive {
    fn drop(&mut self) {
        let how = if self.ended { Event::Ended } else { Event::Crashed };
        self.history.add(self.life, how);
    }
}

impl Stage {
    /// A whole life. An error says why a relay ended before its time.
    pub async fn live(self, life: usize, plan: LifePlan) -> Result<(), String> {
        let history = self.history.clone();
        sleep_until(history.instant(plan.starts_at)).await;
        history.add(life, Event::Started);
        let mut alive = Alive { history: history.clone(), life, ended: false };
        let (ice, stop) = (Ice::default(), Stop::new());
        let relay = self.relay(life, &plan, &ice);
        let watch = relay.watch();
        let run = {
            let stop = stop.clone();
            async move { relay.run(stop).await }
        };
        let frosts = plan.frosts.clone();
        let mut run = Box::pin(Freezing::new(run, frosts, ice, history.clone(), life));
        let ends_at = match plan.ending {
            Ending::Stop { at } | Ending::Crash { at } => Some(at),
            Ending::CrashAtPoll { .. } => Some(HORIZON),
            Ending::Drain => None,
        };
        let ends = async {
            match ends_at {
                Some(at) => sleep_until(history.instant(at)).await,
                None => std::future::pending().await,
            }
        };
        let ran = tokio::select! {
            biased;
            ran = &mut run => ran,
            () = ends => {
                if let Ending::Crash { .. } = plan.ending {
                    return Ok(());
                }
                let busy = self.scenario.hazards.has(Hazard::Stop);
                match timeout(REST, at_rest(&mut run, watch, busy)).await {
                    Ok(Some(ran)) => ran,
                    Ok(None) => {
                        history.add(life, Event::ToldToStop);
                        stop.stop();
                        run.await
                    }
                    // Nothing gets done: it must end without a word.
                    Err(_) => return Ok(()),
                }
            }
        };
        alive.ended = true;
        ran.map(|_| ()).map_err(|error| format!("relay {life} ended: {error}"))
    }

    fn relay(&self, life: usize, plan: &LifePlan, ice: &Ice) -> Relay {
        let wire = Wire::new(self, life, plan, ice);
        let store: Arc<dyn OutboxStore> = match (&self.store, &self.scenario.index) {
            (Store::Indexed(table), Some(index)) => {
                Arc::new(indexed::Client::new(table, index, Some(wire), index.relays[life]))
            }
            (Store::Indexed(_), None) => unreachable!("only an index makes such a store"),
            (Store::Log(memory), _) => {
                let is_late = self.scenario.hazards.has(Hazard::LateCommit);
                let late = is_late.then(|| Reading::new(self, memory));
                Arc::new(View::new(memory, late, wire))
            }
        };
        let options = RelayOptions {
            lease: plan.lease,
            grace: plan.grace,
            poll: plan.poll,
            drain: plan.ending == Ending::Drain,
            keep: plan.keep,
            ..RelayOptions::new(WorkerId(format!("relay-{life}")))
        };
        let routing = &self.scenario.routings[plan.routing];
        let plan = self.plan(life, routing, ice);
        Relay::new(store, plan, options).expect("the default pace is within its range")
    }

    fn plan(&self, life: usize, routing: &Routing, ice: &Ice) -> Plan {
        let sink = |(name, server): &(String, usize)| PlannedSink {
            name: name.clone(),
            sink: Arc::new(Client {
                life,
                server: self.servers[*server].clone(),
                ice: ice.clone(),
                history: self.history.clone(),
            }),
            pacer: Default::default(),
        };
        let policies = self.scenario.topics.iter();
        Plan {
            sinks: routing.sinks.iter().map(sink).collect(),
            routes: routing.routes.clone(),
            policies: policies.map(|it| (Pattern(it.name.clone()), it.policy)).collect(),
        }
    }
}

/// Lets a relay run until no message waits in its memory, unless it may be stopped at any time.
async fn at_rest<F: Future + Unpin>(
    run: &mut F,
    mut watch: watch::Receiver<RelayWatch>,
    busy: bool,
) -> Option<F::Output> {
    let idle = |watch: &RelayWatch| watch.sinks.iter().all(|it| it.queued + it.groups == 0);
    tokio::select! {
        biased;
        ran = run => Some(ran),
        _ = watch.wait_for(|watch| busy || idle(watch)) => None,
    }
}

/// How long a relay may go on until no message waits in its memory.
const REST: Duration = Duration::from_secs(30);

/// How long a relay may take to stop beyond its grace: two seconds for each of its last two calls.
pub const LAST_CALLS: Duration = Duration::from_secs(4);
