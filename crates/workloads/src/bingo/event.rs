//! The snapshot: an event as people write it, with names. `default.toml` shows each field in use.

use super::strategy::Strategy;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A whole event.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// How long it lasts. It begins at midnight.
    pub hours: u32,
    /// What players can do.
    pub activities: Vec<Activity>,
    /// The board, from the row that is open at the start to the last one.
    pub rows: Vec<Row>,
    /// Who plays.
    pub teams: Vec<Team>,
}

/// Something that players do again and again.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Activity {
    /// What tiles and favorites call it.
    pub name: String,
    /// How long one attempt takes with skill 1.
    pub minutes: f64,
    /// What an attempt may yield; each is rolled for on its own.
    pub drops: Vec<Drop>,
}

/// What an attempt may yield.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drop {
    /// What tiles call it.
    pub name: String,
    /// How often an attempt yields it.
    pub chance: f64,
}

/// Tiles that open together.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Points of the row above that open this one.
    #[serde(default)]
    pub unlock: u32,
    /// From left to right.
    pub tiles: Vec<Tile>,
}

/// One goal on the board.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tile {
    /// For people.
    pub name: String,
    /// What it is worth.
    pub points: u32,
    /// What to do for it.
    pub activity: String,
    /// Which drop of that activity counts.
    pub drop: String,
    /// How many of them are needed.
    pub count: u32,
}

/// Players who share a board.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Team {
    /// What results call it.
    pub name: String,
    /// How its players choose.
    pub strategy: Strategy,
    /// Who is in it.
    pub players: Vec<Player>,
}

/// One member of a team.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Player {
    /// For people.
    pub name: String,
    /// How fast they are at everything: at 2 an attempt takes half its minutes.
    #[serde(default = "one")]
    pub skill: f64,
    /// How much faster still they are at some activities.
    #[serde(default)]
    pub favorites: BTreeMap<String, f64>,
    /// When they play, as hours of the day, `[from, to]`.
    pub hours: Vec<[f64; 2]>,
}

fn one() -> f64 {
    1.0
}
