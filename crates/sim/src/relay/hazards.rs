//! Kinds of trouble, each of which a world may be spared.

use std::collections::BTreeSet;

/// One kind of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hazard {
    /// Relays end without a word.
    Crash,
    /// A request goes on at its sink although the relay that sent it has crashed.
    Outlive,
    /// Relays are not polled for longer than their lease, and go on.
    Freeze,
    /// Relays stop, and others start while some run.
    Restart,
    /// Relays are asked to stop while messages wait in their memory, with little time to do so.
    Stop,
    /// Several relays at a time.
    Relays,
    /// Several sinks.
    Sinks,
    /// Calls to the store fail, half of them after they took effect.
    Store,
    /// Calls to the store take long.
    SlowStore,
    /// The store is not there for a while.
    Outage,
    /// Sinks are not there for a while.
    Absent,
    /// Sinks do not answer for a while.
    Hang,
    /// Sinks throttle for a while.
    Throttle,
    /// Requests take effect, at least in part, and no answer says so.
    Unknown,
    /// Items fail, for a while or for good.
    Verdicts,
    /// Sinks refuse a group for the sake of one item, or because it is too large.
    Refuse,
    /// Messages that are not to be delivered at once.
    Delay,
    /// Dead messages hold up or park the rest of their keys.
    Hold,
    /// Topics whose keys mean no order.
    Unordered,
    /// Topics of which only the last message of a key is sent.
    Coalesce,
    /// One key on topics that coalesce and on others.
    Mingle,
    /// Somebody retries and drops dead messages.
    Operator,
    /// Topics without a route.
    Unrouted,
    /// Relays start again with other routes.
    Reroute,
    /// What was sent is removed soon.
    Retain,
    /// Messages come in by transactions that commit in another order than they draw ids, late, or never.
    LateCommit,
}

impl Hazard {
    /// All of them, with their names.
    pub const ALL: [(&'static str, Self); 26] = [
        ("crash", Self::Crash),
        ("outlive", Self::Outlive),
        ("freeze", Self::Freeze),
        ("restart", Self::Restart),
        ("stop", Self::Stop),
        ("relays", Self::Relays),
        ("sinks", Self::Sinks),
        ("store", Self::Store),
        ("slow-store", Self::SlowStore),
        ("outage", Self::Outage),
        ("absent", Self::Absent),
        ("hang", Self::Hang),
        ("throttle", Self::Throttle),
        ("unknown", Self::Unknown),
        ("verdicts", Self::Verdicts),
        ("refuse", Self::Refuse),
        ("delay", Self::Delay),
        ("hold", Self::Hold),
        ("unordered", Self::Unordered),
        ("coalesce", Self::Coalesce),
        ("mingle", Self::Mingle),
        ("operator", Self::Operator),
        ("unrouted", Self::Unrouted),
        ("reroute", Self::Reroute),
        ("retain", Self::Retain),
        ("late-commit", Self::LateCommit),
    ];
}

/// The trouble that a world has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hazards(BTreeSet<Hazard>);

impl Hazards {
    /// Everything.
    pub fn all() -> Self {
        Self(Hazard::ALL.into_iter().map(|(_, hazard)| hazard).collect())
    }

    /// Nothing goes wrong.
    pub fn none() -> Self {
        Self::default()
    }

    /// Only these.
    pub fn only(hazards: &[Hazard]) -> Self {
        Self(hazards.iter().copied().collect())
    }

    /// All but these.
    pub fn without(mut self, hazards: &[Hazard]) -> Self {
        self.0.retain(|hazard| !hazards.contains(hazard));
        self
    }

    /// Reads a list such as `crash,hang`, `all` or `all,-reroute`.
    pub fn parse(list: &str) -> Result<Self, String> {
        let mut hazards = Self::none();
        for word in list.split(',').filter(|word| !word.is_empty()) {
            let (left_out, name) = word.strip_prefix('-').map_or((false, word), |it| (true, it));
            let found: Vec<Hazard> = Hazard::ALL
                .into_iter()
                .filter(|(known, _)| name == "all" || name == *known)
                .map(|(_, hazard)| hazard)
                .collect();
            if found.is_empty() {
                return Err(format!("`{name}` is no hazard"));
            }
            match left_out {
                true => hazards = hazards.without(&found),
                false => hazards.0.extend(found),
            }
        }
        Ok(hazards)
    }

    /// Whether a world has this.
    pub fn has(&self, hazard: Hazard) -> bool {
        self.0.contains(&hazard)
    }
}
