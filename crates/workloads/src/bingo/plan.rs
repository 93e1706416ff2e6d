//! An event as runs work with it: indexes instead of names, seconds instead of hours.

use super::strategy::Strategy;
use std::ops::Range;

/// Seconds.
pub const HOUR: u32 = 3_600;
/// Seconds.
pub const DAY: u32 = 24 * HOUR;

/// A checked event.
#[derive(Debug)]
pub struct Plan {
    /// The second at which it ends.
    pub end: u32,
    /// Per activity, its part of `drops`.
    pub activities: Vec<Range<usize>>,
    /// The drops of all activities.
    pub drops: Vec<Drop>,
    /// The tiles of all rows.
    pub tiles: Vec<Tile>,
    /// From the first to open to the last.
    pub rows: Vec<Row>,
    /// Who plays.
    pub teams: Vec<Team>,
}

/// What an attempt may yield.
#[derive(Debug)]
pub struct Drop {
    /// It falls if 32 random bits are below this.
    pub below: u64,
    /// The tiles that need it.
    pub tiles: Vec<usize>,
}

/// One goal on the board.
#[derive(Debug)]
pub struct Tile {
    /// Its row.
    pub row: usize,
    /// Its place in the row.
    pub column: usize,
    /// What it is worth.
    pub points: u32,
    /// What to do for it.
    pub activity: usize,
    /// Which drop counts.
    pub drop: usize,
    /// How many of them are needed.
    pub count: u32,
}

/// Tiles that open together.
#[derive(Debug)]
pub struct Row {
    /// Points of the row above that open it.
    pub unlock: u32,
    /// Its part of all tiles.
    pub tiles: Range<usize>,
}

/// Players who share a board.
#[derive(Debug)]
pub struct Team {
    /// What results call it.
    pub name: String,
    /// The names of its numbers.
    pub emits: Emits,
    /// How its players choose.
    pub strategy: Strategy,
    /// Who is in it.
    pub players: Vec<Player>,
}

/// The names of a team's numbers, made once instead of in every run.
#[derive(Debug)]
pub struct Emits {
    /// `points/<team>`
    pub points: String,
    /// `tiles/<team>`
    pub tiles: String,
    /// `rows/<team>`
    pub rows: String,
}

/// One member of a team.
#[derive(Debug)]
pub struct Player {
    /// When they play, in seconds of the day; in order, at least one.
    pub windows: Vec<Range<u32>>,
    /// Per activity, how long an attempt takes.
    pub attempt_seconds: Vec<u32>,
    /// Per tile, how long they need on average for one drop that counts.
    pub drop_seconds: Vec<f64>,
}

impl Player {
    /// The first window that is not over at `now`, in seconds of the event.
    pub fn window(&self, now: u32) -> Range<u32> {
        let (midnight, second) = (now - now % DAY, now % DAY);
        let today = self.windows.iter().find(|window| second < window.end);
        let (midnight, window) = match today {
            Some(window) => (midnight, window),
            None => (midnight + DAY, &self.windows[0]),
        };
        midnight + window.start..midnight + window.end
    }
}
