//! Plays one run: the players of a team take turns by simulated time. Teams do not meet, so they
//! are played one after the other, from the same stream.

use super::{
    plan::{Plan, Player, Team},
    result::{Completion, Outcome, TeamOutcome},
    strategy::Candidate,
};
use rand::Rng;
use std::ops::Range;

/// Plays the event through. Whole numbers and plain arithmetic only, so that every machine
/// computes the same bits.
pub fn play(plan: &Plan, rng: &mut impl Rng) -> Outcome {
    let play = |team| Board::new(plan, team).play(rng);
    Outcome::new(plan.teams.iter().map(play).collect())
}

/// The board of one team while it is played.
struct Board<'a> {
    plan: &'a Plan,
    team: &'a Team,
    tiles: Vec<TileState>,
    /// Per row, the points that the team has.
    row_points: Vec<u32>,
    open_rows: usize,
    players: Vec<PlayerState>,
    timeline: Vec<Completion>,
}

#[derive(Clone)]
struct TileState {
    /// Drops that it still needs.
    left: u32,
    /// Players who work on it.
    crowd: u32,
}

struct PlayerState {
    /// When their attempt ends or their pause is over.
    at: u32,
    /// When they play, now or next.
    window: Range<u32>,
    tile: Option<usize>,
    playing: bool,
}

impl<'a> Board<'a> {
    fn new(plan: &'a Plan, team: &'a Team) -> Self {
        let tiles = plan.tiles.iter().map(|tile| TileState { left: tile.count, crowd: 0 });
        let wait = |player: &Player| {
            let window = player.window(0);
            PlayerState { at: window.start, window, tile: None, playing: false }
        };
        let mut board = Self {
            plan,
            team,
            tiles: tiles.collect(),
            row_points: vec![0; plan.rows.len()],
            open_rows: 1,
            players: team.players.iter().map(wait).collect(),
            timeline: Vec::with_capacity(plan.tiles.len()),
        };
        board.open_rows();
        board
    }

    fn play(mut self, rng: &mut impl Rng) -> TeamOutcome {
        while let Some(player) = self.next_player() {
            if self.players[player].playing {
                self.finish_attempt(player, rng);
            }
            self.start_attempt(player);
        }
        self.outcome()
    }

    /// Whose turn it is, unless the event is over or the board is full.
    fn next_player(&self) -> Option<usize> {
        let times = self.players.iter().map(|player| player.at).enumerate();
        let (player, at) = times.min_by_key(|&(_, at)| at)?;
        (at <= self.plan.end && self.timeline.len() < self.tiles.len()).then_some(player)
    }

    fn finish_attempt(&mut self, player: usize, rng: &mut impl Rng) {
        let plan = self.plan;
        let Some(tile) = self.players[player].tile else { return };
        for drop in plan.activities[plan.tiles[tile].activity].clone() {
            if u64::from(rng.next_u32()) < plan.drops[drop].below {
                self.credit(player, tile, drop);
            }
        }
    }

    /// A drop counts for the tile that its finder works on, or else for the first that needs it.
    fn credit(&mut self, player: usize, tile: usize, drop: usize) {
        let needs = |tile: usize| self.tiles[tile].left > 0 && self.is_open(tile);
        let tile = if self.plan.tiles[tile].drop == drop && needs(tile) {
            tile
        } else {
            let mut tiles = self.plan.drops[drop].tiles.iter();
            let Some(&tile) = tiles.find(|&&tile| needs(tile)) else { return };
            tile
        };
        self.tiles[tile].left -= 1;
        if self.tiles[tile].left == 0 {
            self.complete(tile, player);
        }
    }

    fn complete(&mut self, tile: usize, player: usize) {
        let of = &self.plan.tiles[tile];
        let minute = self.players[player].at / 60;
        self.timeline.push(Completion(minute, of.row, of.column, player));
        self.row_points[of.row] += of.points;
        self.open_rows();
    }

    fn open_rows(&mut self) {
        let rows = &self.plan.rows;
        while self.open_rows < rows.len()
            && self.row_points[self.open_rows - 1] >= rows[self.open_rows].unlock
        {
            self.open_rows += 1;
        }
    }

    fn is_open(&self, tile: usize) -> bool {
        self.plan.tiles[tile].row < self.open_rows
    }

    /// Starts an attempt now, or a pause if the player has no time now.
    fn start_attempt(&mut self, player: usize) {
        let of = &self.team.players[player];
        let state = &mut self.players[player];
        if state.at >= state.window.end {
            state.window = of.window(state.at);
        }
        state.playing = state.window.contains(&state.at);
        if !state.playing {
            state.at = state.window.start;
        } else if let Some(tile) = self.tile_for(player) {
            let activity = self.plan.tiles[tile].activity;
            self.players[player].at += of.attempt_seconds[activity];
        }
    }

    /// Players stay with a tile until it is done.
    fn tile_for(&mut self, player: usize) -> Option<usize> {
        let current = self.players[player].tile;
        if let Some(tile) = current {
            if self.tiles[tile].left > 0 {
                return current;
            }
            self.tiles[tile].crowd -= 1;
        }
        let next = self.choose(player);
        if let Some(tile) = next {
            self.tiles[tile].crowd += 1;
        }
        self.players[player].tile = next;
        next
    }

    fn choose(&self, player: usize) -> Option<usize> {
        let drop_seconds = &self.team.players[player].drop_seconds;
        let open = ..self.plan.rows[self.open_rows - 1].tiles.end;
        let next_closed = self.open_rows < self.plan.rows.len();
        let tiles = self.plan.tiles[open].iter().zip(&self.tiles).enumerate();
        let undone = tiles.filter(|(_, (_, state))| state.left > 0);
        self.team.strategy.choose(undone.map(|(tile, (of, state))| {
            let candidate = Candidate {
                row: of.row,
                points: of.points,
                seconds: f64::from(state.left) * drop_seconds[tile],
                unlocks: next_closed && of.row + 1 == self.open_rows,
                crowd: state.crowd,
            };
            (tile, candidate)
        }))
    }

    fn outcome(self) -> TeamOutcome {
        let done = |row: &&super::plan::Row| {
            self.tiles[row.tiles.clone()].iter().all(|tile| tile.left == 0)
        };
        TeamOutcome {
            team: self.team.name.clone(),
            points: self.row_points.iter().sum(),
            tiles: self.timeline.len() as u32,
            rows: self.plan.rows.iter().filter(done).count() as u32,
            timeline: self.timeline,
        }
    }
}
