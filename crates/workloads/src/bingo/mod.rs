//! A bingo event, played through by simulated time.
//!
//! Teams of players work on a board of rows of tiles. A tile needs some count of one drop of one
//! activity; each attempt at an activity takes its time, by the player's skill, and then rolls for
//! every drop of that activity. A row opens when its team has enough points of the row above. Who
//! works on which tile is up to the team's [`Strategy`](strategy::Strategy).
//!
//! [`event`] is the snapshot and [`check`] refuses what makes no sense; [`compile`] makes a
//! [`plan`] of it, once per process, and [`steps`] bounds its work; [`play`] plays one run of it,
//! and [`result`] is what that yields.

mod check;
mod compile;
mod event;
mod plan;
mod play;
mod result;
mod steps;
mod strategy;

use event::Event;
use plan::Plan;
use result::Outcome;
use tidegate_core::{InvalidSnapshot, Run, RunError, Snapshot, Workload};

/// Teams race over a board of tiles.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bingo;

impl Workload for Bingo {
    type Prepared = Plan;
    type Output = Outcome;

    fn name(&self) -> &str {
        "bingo"
    }

    fn about(&self) -> &str {
        "teams race over a board of tiles: who wins, by how much, when?"
    }

    fn example(&self) -> &str {
        include_str!("default.toml")
    }

    fn prepare(&self, snapshot: &Snapshot) -> Result<Plan, InvalidSnapshot> {
        let event: Event = snapshot.parse()?;
        check::check(&event)?;
        compile::compile(&event)
    }

    fn run(&self, plan: &Plan, run: &mut Run) -> Result<Outcome, RunError> {
        let outcome = play::play(plan, run.rng());
        for (team, scored) in plan.teams.iter().zip(&outcome.teams) {
            run.number(&team.emits.points, scored.points.into());
            run.number(&team.emits.tiles, scored.tiles.into());
            run.number(&team.emits.rows, scored.rows.into());
        }
        run.category("winner", &outcome.winner);
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests;
