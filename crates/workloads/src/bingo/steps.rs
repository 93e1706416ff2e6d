//! Bounds the work of one run before any is done.

use super::plan::{DAY, Plan, Player, Team};
use tidegate_core::InvalidSnapshot;

/// Most steps of one run, some tenths of a second: a step is a roll, or a look at a tile or a
/// teammate.
const MAX_STEPS: u64 = 20_000_000;

/// Refuses an event whose runs could take too many steps.
pub fn check(plan: &Plan) -> Result<(), InvalidSnapshot> {
    let of_team =
        |team: &Team| team.players.iter().map(|player| most(plan, team, player)).sum::<u64>();
    let steps: u64 = plan.teams.iter().map(of_team).sum();
    if steps <= MAX_STEPS {
        return Ok(());
    }
    let problem = format!(
        "one run could take {steps} steps, and {MAX_STEPS} are allowed: shorten the event, \
         lengthen the activities' minutes, or use fewer players, tiles or drops"
    );
    Err(InvalidSnapshot::at("hours", problem))
}

/// An upper bound: the player repeats the activity that makes for the most steps, and chooses
/// from the whole board once per tile.
fn most(plan: &Plan, team: &Team, player: &Player) -> u64 {
    let activities = 0..plan.activities.len();
    let steps = |activity| {
        let steps = team.players.len() + rolls(plan, activity);
        attempts(plan, player, activity) * steps as u64
    };
    let choices = plan.tiles.len() * plan.tiles.len();
    activities.map(steps).max().unwrap_or(0) + choices as u64
}

fn attempts(plan: &Plan, player: &Player, activity: usize) -> u64 {
    let seconds = player.attempt_seconds[activity];
    // The last attempt of a window may run over its end.
    let of_window = |length: u32| u64::from(length / seconds) + 1;
    let daily: u64 = player.windows.iter().map(|window| of_window(window.end - window.start)).sum();
    daily * u64::from(plan.end.div_ceil(DAY))
}

fn rolls(plan: &Plan, activity: usize) -> usize {
    let drops = &plan.drops[plan.activities[activity].clone()];
    drops.iter().map(|drop| 1 + drop.tiles.len()).sum()
}
