//! Refuses events that make no sense or would run for ages, by the path of the field.

use super::event::{Activity, Event, Player, Row, Team};
use std::{collections::BTreeSet, fmt::Display, ops::RangeInclusive};
use tidegate_core::InvalidSnapshot;

/// 100 days: seconds of an event fit 32 bits with room to spare.
const HOURS: RangeInclusive<u32> = 1..=2_400;
/// Six seconds to a week.
const MINUTES: RangeInclusive<f64> = 0.1..=10_080.0;
/// Rarer drops would not fall in any event, and 32 random bits could not tell them apart.
const CHANCE: RangeInclusive<f64> = 0.000_001..=1.0;
/// Ten times slower or faster than others is as far as skill goes.
const SKILL: RangeInclusive<f64> = 0.1..=10.0;
/// The sum over the largest board fits 32 bits.
const POINTS: RangeInclusive<u32> = 0..=1_000_000;
const COUNT: RangeInclusive<u32> = 1..=1_000_000;

const MAX_ACTIVITIES: usize = 100;
const MAX_DROPS: usize = 20;
const MAX_ROWS: usize = 50;
/// With [`MAX_TEAMS`], the longest timeline stays below the largest result.
const MAX_TILES: usize = 500;
/// Three numbers per team stay below what a run may emit.
const MAX_TEAMS: usize = 50;
const MAX_PLAYERS: usize = 100;
const MAX_WINDOWS: usize = 24;
/// `points/` and a team's name make the name of a number, which is bounded.
const MAX_NAME_BYTES: usize = 100;

type Checked = Result<(), InvalidSnapshot>;

/// Whether all that can be said without resolving names is in order.
pub fn check(event: &Event) -> Checked {
    within("hours", event.hours, HOURS)?;
    check_activities(&event.activities)?;
    check_rows(&event.rows)?;
    check_teams(&event.teams)
}

fn check_activities(activities: &[Activity]) -> Checked {
    some("activities", activities.len(), MAX_ACTIVITIES)?;
    unique("activities", activities.iter().map(|activity| &activity.name))?;
    for (i, activity) in activities.iter().enumerate() {
        let path = format!("activities[{i}]");
        within(&format!("{path}.minutes"), activity.minutes, MINUTES)?;
        let drops = format!("{path}.drops");
        some(&drops, activity.drops.len(), MAX_DROPS)?;
        unique(&drops, activity.drops.iter().map(|drop| &drop.name))?;
        for (j, drop) in activity.drops.iter().enumerate() {
            within(&format!("{drops}[{j}].chance"), drop.chance, CHANCE)?;
        }
    }
    Ok(())
}

fn check_rows(rows: &[Row]) -> Checked {
    some("rows", rows.len(), MAX_ROWS)?;
    let tiles = rows.iter().map(|row| row.tiles.len()).sum();
    some("rows", tiles, MAX_TILES)?;
    let mut names = BTreeSet::new();
    let mut above = 0;
    for (i, row) in rows.iter().enumerate() {
        check_row(&format!("rows[{i}]"), row, above, &mut names)?;
        above = row.tiles.iter().map(|tile| tile.points).sum();
    }
    Ok(())
}

fn check_row<'a>(path: &str, row: &'a Row, above: u32, names: &mut BTreeSet<&'a str>) -> Checked {
    some(&format!("{path}.tiles"), row.tiles.len(), MAX_TILES)?;
    for (i, tile) in row.tiles.iter().enumerate() {
        let path = format!("{path}.tiles[{i}]");
        check_name(&format!("{path}.name"), &tile.name, names)?;
        within(&format!("{path}.points"), tile.points, POINTS)?;
        within(&format!("{path}.count"), tile.count, COUNT)?;
    }
    if row.unlock > above {
        let problem = format!("never opens: the row above has {above} points in all");
        return Err(InvalidSnapshot::at(format!("{path}.unlock"), problem));
    }
    Ok(())
}

fn check_teams(teams: &[Team]) -> Checked {
    some("teams", teams.len(), MAX_TEAMS)?;
    unique("teams", teams.iter().map(|team| &team.name))?;
    for (i, team) in teams.iter().enumerate() {
        let path = format!("teams[{i}].players");
        some(&path, team.players.len(), MAX_PLAYERS)?;
        unique(&path, team.players.iter().map(|player| &player.name))?;
        for (j, player) in team.players.iter().enumerate() {
            check_player(&format!("{path}[{j}]"), player)?;
        }
    }
    Ok(())
}

fn check_player(path: &str, player: &Player) -> Checked {
    within(&format!("{path}.skill"), player.skill, SKILL)?;
    for (activity, &factor) in &player.favorites {
        within(&format!("{path}.favorites.{activity}"), factor, SKILL)?;
    }
    some(&format!("{path}.hours"), player.hours.len(), MAX_WINDOWS)?;
    let mut free = 0.0;
    for (i, &[from, to]) in player.hours.iter().enumerate() {
        if !(free <= from && from < to && to <= 24.0) {
            let problem = format!(
                "[{from}, {to}] must lie between {free} and 24, its start before its end; \
                 split what passes midnight in two, the early one first"
            );
            return Err(InvalidSnapshot::at(format!("{path}.hours[{i}]"), problem));
        }
        free = to;
    }
    Ok(())
}

fn within<T: PartialOrd + Display>(path: &str, value: T, range: RangeInclusive<T>) -> Checked {
    if range.contains(&value) {
        return Ok(());
    }
    let problem = format!("{value} is not between {} and {}", range.start(), range.end());
    Err(InvalidSnapshot::at(path, problem))
}

fn some(path: &str, count: usize, max: usize) -> Checked {
    let problem = match count {
        0 => "is empty; at least one is needed".to_owned(),
        _ if count > max => format!("has {count}; at most {max} are allowed"),
        _ => return Ok(()),
    };
    Err(InvalidSnapshot::at(path, problem))
}

fn unique<'a>(path: &str, names: impl Iterator<Item = &'a String>) -> Checked {
    let mut seen = BTreeSet::new();
    for (i, name) in names.enumerate() {
        check_name(&format!("{path}[{i}].name"), name, &mut seen)?;
    }
    Ok(())
}

fn check_name<'a>(path: &str, name: &'a str, seen: &mut BTreeSet<&'a str>) -> Checked {
    let problem = if name.is_empty() {
        "is empty".to_owned()
    } else if name.len() > MAX_NAME_BYTES {
        format!("has {} bytes; at most {MAX_NAME_BYTES} are allowed", name.len())
    } else if name.contains(char::is_control) {
        "contains a control character".to_owned()
    } else if !seen.insert(name) {
        format!("`{name}` appears twice")
    } else {
        return Ok(());
    };
    Err(InvalidSnapshot::at(path, problem))
}
