//! What came of a tournament.

use super::{Drawn, Figures, Kind, Played, Tournament};
use crate::scenario::AnyPolicy;
use serde::Serialize;

/// So much less than the best of the others is far behind.
const FAR: f64 = 0.2;
/// So many of the worst are shown.
const WORST: usize = 10;

/// What came of a tournament: the policy that counts first, then those it is compared with.
#[derive(Clone, Debug, Serialize)]
pub struct Results {
    /// Which services were drawn.
    #[serde(flatten)]
    pub tournament: Tournament,
    /// How each policy did.
    pub policies: Vec<Standing>,
    /// How those did that know the service.
    pub bounds: Vec<Standing>,
    /// On so many services the first policy is behind the best of the others by more than a fifth.
    pub far_behind: Vec<Behind>,
    /// Where the first policy did worst.
    pub worst: Vec<Played>,
}

/// How a policy did.
#[derive(Clone, Debug, Serialize)]
pub struct Standing {
    /// The policy.
    pub policy: AnyPolicy,
    /// On services of each kind.
    pub kinds: Vec<OfKind>,
    /// On all services.
    pub all: Option<Figures>,
    /// On those without latency.
    pub without_latency: Option<Figures>,
    /// On those with latency.
    pub with_latency: Option<Figures>,
    /// On each service.
    #[serde(skip)]
    pub played: Vec<Played>,
}

/// Figures of one kind.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct OfKind {
    /// The kind.
    pub kind: Kind,
    /// The figures.
    #[serde(flatten)]
    pub figures: Figures,
}

/// A service on which the first policy is behind.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Behind {
    /// The service's number.
    pub number: u64,
    /// Its kind.
    pub kind: Kind,
    /// How the first policy did.
    pub efficiency: f64,
    /// The best of the others.
    pub best: AnyPolicy,
    /// How it did.
    pub best_efficiency: f64,
}

impl Tournament {
    /// Runs policies on all services, and those that know them.
    pub fn run(&self, policies: &[AnyPolicy], threads: usize) -> Results {
        let standing = |policy: &AnyPolicy| self.standing(*policy, threads);
        let policies: Vec<Standing> = policies.iter().map(standing).collect();
        let bounds = AnyPolicy::BOUNDS.iter().map(standing).collect();
        let mut worst = policies.first().map(|first| first.played.clone()).unwrap_or_default();
        worst.sort_by(|one, other| one.efficiency.total_cmp(&other.efficiency));
        worst.truncate(WORST);
        Results { tournament: *self, far_behind: far_behind(&policies), policies, bounds, worst }
    }

    /// Runs one policy on all services.
    pub fn standing(&self, policy: AnyPolicy, threads: usize) -> Standing {
        let played = self.play(policy, threads);
        let of_kind = |kind: &Kind| {
            let figures = Figures::of(played.iter().filter(|one| one.kind == *kind))?;
            Some(OfKind { kind: *kind, figures })
        };
        Standing {
            policy,
            kinds: self.family.kinds().iter().filter_map(of_kind).collect(),
            all: Figures::of(&played),
            without_latency: Figures::of(played.iter().filter(|one| !one.latency)),
            with_latency: Figures::of(played.iter().filter(|one| one.latency)),
            played,
        }
    }
}

fn far_behind(policies: &[Standing]) -> Vec<Behind> {
    let Some((first, others)) = policies.split_first() else { return Vec::new() };
    let behind = first.played.iter().enumerate().filter_map(|(index, one)| {
        let others = others.iter().map(|other| (other.policy, other.played[index].efficiency));
        let (best, best_efficiency) = others.max_by(|a, b| a.1.total_cmp(&b.1))?;
        let far = one.efficiency < (1.0 - FAR) * best_efficiency;
        let Played { number, kind, efficiency, .. } = *one;
        far.then_some(Behind { number, kind, efficiency, best, best_efficiency })
    });
    behind.collect()
}

impl Results {
    /// The services on which the first policy did worst, each with a name for its file.
    pub fn worst_files(&self) -> impl Iterator<Item = (String, Drawn)> {
        self.worst.iter().enumerate().map(|(place, one)| {
            let name = format!("{:02}-{}-{}.toml", place + 1, one.kind, one.number);
            (name, self.tournament.service(one.number))
        })
    }
}
