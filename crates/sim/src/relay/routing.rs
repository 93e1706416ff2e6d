//! Where topics go, and how that changes.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use tidegate_core::outbox::{Pattern, Route};

/// The sinks and routes of one relay's plan.
#[derive(Clone, Debug)]
pub struct Routing {
    /// By name, with the place of the server behind it.
    pub sinks: Vec<(String, usize)>,
    /// The first that takes a topic decides.
    pub routes: Vec<Route>,
}

impl Routing {
    /// Routes for all topics to some of so many servers.
    pub fn random(rng: &mut ChaCha8Rng, topics: &[String], servers: usize) -> Self {
        let sinks: Vec<_> = (0..servers).map(|place| (format!("sink-{place}"), place)).collect();
        let mut routes = Vec::new();
        let mut route = |rng: &mut ChaCha8Rng, topics: &str| {
            let sink = sinks[rng.random_range(0..servers)].0.clone();
            routes.push(Route { topics: Pattern(topics.to_owned()), sink });
        };
        for topic in topics {
            if rng.random_bool(0.4) {
                route(rng, topic);
            }
        }
        if rng.random_bool(0.5) {
            route(rng, "a.*");
        }
        route(rng, "*");
        Self { sinks, routes }
    }

    /// Leaves a topic without a route.
    pub fn unroute(&mut self, topic: &str, topics: &[String]) {
        let routes = topics.iter().filter(|it| *it != topic).filter_map(|it| {
            let sink = Route::find(&self.routes, it)?.sink.clone();
            Some(Route { topics: Pattern(it.clone()), sink })
        });
        self.routes = routes.collect();
    }

    /// The same with one thing changed.
    pub fn changed(&self, rng: &mut ChaCha8Rng, topics: &[String]) -> Self {
        let mut next = self.clone();
        let topic = &topics[rng.random_range(0..topics.len())];
        let at = rng.random_range(0..next.sinks.len());
        let name = next.sinks[at].0.clone();
        match rng.random_range(0..4) {
            // A topic goes to another sink.
            0 | 1 => {
                next.routes.insert(0, Route { topics: Pattern(topic.clone()), sink: name });
            }
            // A sink is called something else.
            2 => {
                let new = format!("{name}-new");
                let of_sink = next.routes.iter_mut().filter(|route| route.sink == name);
                of_sink.for_each(|route| route.sink.clone_from(&new));
                next.sinks[at].0 = new;
            }
            // A sink is no more, and its topics go elsewhere or nowhere.
            _ if next.sinks.len() > 1 => {
                next.sinks.remove(at);
                let other = next.sinks[0].0.clone();
                match rng.random_bool(0.5) {
                    true => {
                        let of_sink = next.routes.iter_mut().filter(|route| route.sink == name);
                        of_sink.for_each(|route| route.sink.clone_from(&other));
                    }
                    false => next.routes.retain(|route| route.sink != name),
                }
            }
            _ => {}
        }
        next
    }

    /// The sink of a topic, and the server behind it.
    pub fn sink_of(&self, topic: &str) -> Option<&(String, usize)> {
        let route = Route::find(&self.routes, topic)?;
        self.sinks.iter().find(|(name, _)| *name == route.sink)
    }
}
