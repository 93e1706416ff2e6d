//! What is wrong with a destination, and for how long.

use std::time::Duration;
use tidegate_pacer::Time;

/// Nothing is taken for so long, or one group is put off for so long, and no attempt is used up: this may go on for ever,
/// and somebody should know. A default.
pub const STALLED_AFTER: Duration = Duration::from_secs(3_600);
/// A request that has no answer for so long is in trouble, and with it all that waits behind it.
const SILENT: Duration = Duration::from_secs(10);

/// What is wrong with a sink, or with one of its destinations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// In which way.
    pub kind: TroubleKind,
    /// Why, as it says or as it is found.
    pub reason: String,
    /// For how long.
    pub lasts: Duration,
}

/// In which way a sink is in trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TroubleKind {
    /// It is not there: it is tried again, less and less often.
    Absent,
    /// It is there, and puts items off again and again.
    Stalled,
    /// It has not answered yet.
    Silent,
    /// It could not be reached when that was tried without a message.
    Unreached,
}

impl Trouble {
    /// Of what is wrong at the moment, each since some time, the thing that lasts longest.
    pub(super) fn find(
        now: Time,
        stalled_after: Duration,
        absence: Option<(Time, String)>,
        silence: Option<Time>,
        stalls: [Option<(Time, String)>; 2],
    ) -> Option<Self> {
        let of = |kind, (since, reason): (Time, String), least: Duration| {
            let lasts = now.saturating_sub(since);
            (lasts >= least).then_some(Self { kind, reason, lasts })
        };
        let absent = absence.and_then(|it| of(TroubleKind::Absent, it, Duration::ZERO));
        let silence = silence.map(|since| (since, "no answer yet".to_owned()));
        let silent = silence.and_then(|it| of(TroubleKind::Silent, it, SILENT));
        let stalls = stalls.into_iter().flatten();
        let stalled = stalls.filter_map(|it| of(TroubleKind::Stalled, it, stalled_after));
        stalled.chain(silent).chain(absent).max_by_key(|it| it.lasts)
    }
}
