//! The kinds of services.

use serde::Serialize;
use std::fmt;

/// What a service does when it has too much to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Rejects above a concurrency.
    Defer,
    /// Does not answer above a concurrency.
    Drop,
    /// Rejects above a rate.
    Rate,
    /// Gets slower beyond a concurrency.
    Knee,
    /// The concurrency above which it rejects falls, and returns.
    Falls,
    /// The concurrency above which it rejects rises.
    Rises,
    /// Rejects everything for a while.
    Outage,
    /// Answers nothing for a while.
    Silence,
    /// Rejects above a rate, and gets slower beyond a concurrency.
    RateAndKnee,
    /// Gets slower beyond a concurrency, and rejects above a higher one.
    LimitAndKnee,
    /// Allows so many requests within a window that the pacer was told.
    Declared,
    /// Allows so many requests within a window of which the pacer knows nothing.
    Undeclared,
}

impl Kind {
    /// The kinds of the classic family.
    pub const SIX: [Kind; 6] =
        [Kind::Defer, Kind::Drop, Kind::Rate, Kind::Knee, Kind::Falls, Kind::Rises];
    /// All kinds.
    pub const ALL: [Kind; 12] = [
        Kind::Defer,
        Kind::Drop,
        Kind::Rate,
        Kind::Knee,
        Kind::Falls,
        Kind::Rises,
        Kind::Outage,
        Kind::Silence,
        Kind::RateAndKnee,
        Kind::LimitAndKnee,
        Kind::Declared,
        Kind::Undeclared,
    ];

    /// What is special about such services, in a few words.
    pub fn describes(self) -> &'static str {
        match self {
            Kind::Defer => "rejects above a concurrency",
            Kind::Drop => "drops above a concurrency",
            Kind::Rate => "rejects above a rate",
            Kind::Knee => "slows down beyond a knee",
            Kind::Falls => "capacity falls, and returns",
            Kind::Rises => "capacity rises",
            Kind::Outage => "rejects everything for a while",
            Kind::Silence => "answers nothing for a while",
            Kind::RateAndKnee => "rate limit and knee",
            Kind::LimitAndKnee => "knee, rejects above it",
            Kind::Declared => "budget that was declared",
            Kind::Undeclared => "budget that was not declared",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Defer => "defer",
            Kind::Drop => "drop",
            Kind::Rate => "rate",
            Kind::Knee => "knee",
            Kind::Falls => "falls",
            Kind::Rises => "rises",
            Kind::Outage => "outage",
            Kind::Silence => "silence",
            Kind::RateAndKnee => "rate_and_knee",
            Kind::LimitAndKnee => "limit_and_knee",
            Kind::Declared => "declared",
            Kind::Undeclared => "undeclared",
        })
    }
}
