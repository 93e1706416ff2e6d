//! Turns the names of an event into the indexes of a plan.

use super::{
    event::{self, Event},
    plan::{Drop, Emits, HOUR, Plan, Player, Row, Team, Tile},
    steps,
};
use tidegate_core::InvalidSnapshot;

type Resolved<T> = Result<T, InvalidSnapshot>;

/// The plan of an event that passed its checks.
pub fn compile(event: &Event) -> Resolved<Plan> {
    let mut plan = Plan {
        end: event.hours * HOUR,
        activities: Vec::new(),
        drops: Vec::new(),
        tiles: Vec::new(),
        rows: Vec::new(),
        teams: Vec::new(),
    };
    event.activities.iter().for_each(|activity| add_activity(&mut plan, activity));
    for (i, row) in event.rows.iter().enumerate() {
        add_row(&mut plan, i, row, event)?;
    }
    for (i, team) in event.teams.iter().enumerate() {
        let team = compile_team(&plan, &format!("teams[{i}]"), team, event)?;
        plan.teams.push(team);
    }
    steps::check(&plan)?;
    Ok(plan)
}

fn add_activity(plan: &mut Plan, activity: &event::Activity) {
    let start = plan.drops.len();
    let below = |chance: f64| (chance * (1_u64 << 32) as f64) as u64;
    let drops = activity.drops.iter();
    plan.drops.extend(drops.map(|drop| Drop { below: below(drop.chance), tiles: Vec::new() }));
    plan.activities.push(start..plan.drops.len());
}

fn add_row(plan: &mut Plan, row: usize, of: &event::Row, event: &Event) -> Resolved<()> {
    let start = plan.tiles.len();
    for (column, tile) in of.tiles.iter().enumerate() {
        let path = format!("rows[{row}].tiles[{column}]");
        let activity = find_activity(event, &tile.activity, &format!("{path}.activity"))?;
        let drops = event.activities[activity].drops.iter().map(|drop| &drop.name);
        let drop = find(drops, &tile.drop, &format!("{path}.drop"))?;
        let drop = plan.activities[activity].start + drop;
        plan.drops[drop].tiles.push(plan.tiles.len());
        let (points, count) = (tile.points, tile.count);
        plan.tiles.push(Tile { row, column, points, activity, drop, count });
    }
    plan.rows.push(Row { unlock: of.unlock, tiles: start..plan.tiles.len() });
    Ok(())
}

fn compile_team(plan: &Plan, path: &str, team: &event::Team, event: &Event) -> Resolved<Team> {
    let players = team.players.iter().enumerate();
    let players = players
        .map(|(i, player)| compile_player(plan, &format!("{path}.players[{i}]"), player, event))
        .collect::<Resolved<_>>()?;
    let name = team.name.clone();
    let emits = Emits {
        points: format!("points/{name}"),
        tiles: format!("tiles/{name}"),
        rows: format!("rows/{name}"),
    };
    Ok(Team { name, emits, strategy: team.strategy, players })
}

fn compile_player(
    plan: &Plan,
    path: &str,
    player: &event::Player,
    event: &Event,
) -> Resolved<Player> {
    let attempt_seconds = attempt_seconds(path, player, event)?;
    let drop_seconds = |tile: &Tile| {
        let chance = plan.drops[tile.drop].below as f64 / (1_u64 << 32) as f64;
        f64::from(attempt_seconds[tile.activity]) / chance
    };
    let drop_seconds = plan.tiles.iter().map(drop_seconds).collect();
    let second = |hour: f64| (hour * f64::from(HOUR)).round() as u32;
    let windows = player.hours.iter().map(|&[from, to]| second(from)..second(to)).collect();
    Ok(Player { windows, attempt_seconds, drop_seconds })
}

fn attempt_seconds(path: &str, player: &event::Player, event: &Event) -> Resolved<Vec<u32>> {
    let mut skills = vec![player.skill; event.activities.len()];
    for (name, factor) in &player.favorites {
        skills[find_activity(event, name, &format!("{path}.favorites.{name}"))?] *= factor;
    }
    let attempts = event.activities.iter().zip(skills);
    let seconds = |minutes: f64, skill: f64| (minutes * 60.0 / skill).round().max(1.0) as u32;
    Ok(attempts.map(|(activity, skill)| seconds(activity.minutes, skill)).collect())
}

fn find_activity(event: &Event, name: &str, path: &str) -> Resolved<usize> {
    find(event.activities.iter().map(|activity| &activity.name), name, path)
}

fn find<'a>(
    known: impl Iterator<Item = &'a String> + Clone,
    name: &str,
    path: &str,
) -> Resolved<usize> {
    known.clone().position(|known| known == name).ok_or_else(|| {
        let known: Vec<_> = known.map(|name| format!("`{name}`")).collect();
        InvalidSnapshot::at(path, format!("unknown `{name}`; there is {}", known.join(", ")))
    })
}
