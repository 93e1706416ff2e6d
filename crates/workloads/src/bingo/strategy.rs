//! How the players of a team choose their next tile. Pure functions of what there is to choose.

use serde::Deserialize;

/// How the players of a team choose their next tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// Clear the board row by row, the quickest tile of the row first.
    RowFirst,
    /// The most points per hour, wherever they are.
    GreedyPoints,
    /// Open the next row as soon as possible; once all are open, the most points per hour.
    UnlockFirst,
    /// A tile that no teammate works on, the most points per hour among those.
    SpreadOut,
}

/// A tile that a player could work on next.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// Its row.
    pub row: usize,
    /// What it is worth.
    pub points: u32,
    /// How long the player alone would need for the rest of it, on average.
    pub seconds: f64,
    /// Whether its points count towards a row that is still closed.
    pub unlocks: bool,
    /// How many teammates work on it.
    pub crowd: u32,
}

/// How much a tile appeals to a player: by rank, then by yield. More is better.
pub type Appeal = (i32, f64);

impl Strategy {
    /// How much `tile` appeals to a player of a team with this strategy.
    pub fn appeal(self, tile: &Candidate) -> Appeal {
        let pace = f64::from(tile.points) / tile.seconds;
        match self {
            Strategy::RowFirst => (-(tile.row as i32), 1.0 / tile.seconds),
            Strategy::GreedyPoints => (0, pace),
            Strategy::UnlockFirst => (tile.unlocks.into(), pace),
            Strategy::SpreadOut => ((tile.crowd == 0).into(), pace),
        }
    }

    /// The place of the most appealing tile; the first of equals.
    pub fn choose(self, tiles: impl Iterator<Item = (usize, Candidate)>) -> Option<usize> {
        let mut best: Option<(Appeal, usize)> = None;
        for (place, tile) in tiles {
            let appeal = self.appeal(&tile);
            if best.is_none_or(|(most, _)| appeal > most) {
                best = Some((appeal, place));
            }
        }
        best.map(|(_, place)| place)
    }
}
