//! What one run yields.

use serde::Serialize;
use std::cmp::Reverse;

/// How an event ended.
#[derive(Debug, Serialize)]
pub struct Outcome {
    /// The team with the most points.
    pub winner: String,
    /// In the order of the snapshot.
    pub teams: Vec<TeamOutcome>,
}

/// How an event ended for one team.
#[derive(Debug, Serialize)]
pub struct TeamOutcome {
    /// Its name.
    pub team: String,
    /// The points of its tiles.
    pub points: u32,
    /// How many tiles it completed.
    pub tiles: u32,
    /// How many rows it completed.
    pub rows: u32,
    /// Its completions, in their order.
    pub timeline: Vec<Completion>,
}

/// Minute, row, tile in the row, player; as a plain array, for there are many of them.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Completion(pub u32, pub usize, pub usize, pub usize);

impl Outcome {
    /// Of equal points, those that were there first win; then the order of the snapshot decides.
    pub fn new(teams: Vec<TeamOutcome>) -> Self {
        let last = |team: &TeamOutcome| team.timeline.last().map(|completion| completion.0);
        let winner = teams.iter().min_by_key(|team| (Reverse(team.points), last(team)));
        Self { winner: winner.map(|team| team.team.clone()).unwrap_or_default(), teams }
    }
}
