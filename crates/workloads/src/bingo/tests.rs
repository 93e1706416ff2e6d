use super::strategy::{Candidate, Strategy};
use crate::tests::{prepare, refusal, result};
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::Arc};
use tidegate_core::{Run, aggregate::Digest, workload::Prepared};

fn default_event() -> Value {
    toml::from_str(include_str!("default.toml")).unwrap()
}

fn default_prepared() -> Arc<dyn Prepared> {
    prepare("bingo", &default_event()).unwrap()
}

/// One player at one tile that needs one certain drop, an hour each.
fn tiny_event() -> Value {
    json!({
        "hours": 48,
        "activities": [
            { "name": "dig", "minutes": 60, "drops": [{ "name": "clay", "chance": 1 }] }
        ],
        "rows": [{ "tiles": [tile("pot", 1, 1)] }],
        "teams": [{
            "name": "moles",
            "strategy": "greedy-points",
            "players": [{ "name": "Mo", "hours": [[8, 10]] }],
        }],
    })
}

fn tile(name: &str, points: u32, count: u32) -> Value {
    json!({ "name": name, "points": points, "activity": "dig", "drop": "clay", "count": count })
}

fn play(event: &Value) -> Value {
    let prepared = prepare("bingo", event).unwrap();
    serde_json::from_str(&result(&*prepared, &mut Run::new(1, 0)).unwrap()).unwrap()
}

#[test]
fn equal_seed_and_index_give_equal_bits() {
    let run = |seed, index| {
        let mut run = Run::new(seed, index);
        let result = result(&*default_prepared(), &mut run).unwrap();
        (result, format!("{:?}", run.finish().unwrap()))
    };
    assert_eq!(run(7, 3), run(7, 3));
    assert_ne!(run(7, 3), run(7, 4));
    assert_ne!(run(7, 3), run(8, 3));
}

#[test]
fn the_default_event_has_the_results_that_it_always_had() {
    let prepared = default_prepared();
    let mut digest = Digest::default();
    for index in 0..1_000 {
        let result = result(&*prepared, &mut Run::new(1, index)).unwrap();
        digest.add(index, result.as_bytes());
    }
    assert_eq!(digest.to_string(), "dfba66b504ec3e272ef1f1101aca4e4f");
}

#[test]
fn the_default_event_is_a_close_contest_with_short_results() {
    let prepared = default_prepared();
    let mut wins = BTreeMap::<_, u32>::new();
    for index in 0..2_000 {
        let mut run = Run::new(42, index);
        assert!(result(&*prepared, &mut run).unwrap().len() < 1_500);
        for (_, winner) in run.finish().unwrap().categories() {
            *wins.entry(winner.to_owned()).or_default() += 1;
        }
    }
    assert_eq!(wins.len(), 4);
    assert!(wins.values().all(|wins| (200..1_100).contains(wins)), "{wins:?}");
}

#[test]
fn emitted_numbers_are_those_of_the_result() {
    let mut run = Run::new(1, 0);
    let result = result(&*default_prepared(), &mut run).unwrap();
    let result: Value = serde_json::from_str(&result).unwrap();
    let emitted = run.finish().unwrap();
    for team in result["teams"].as_array().unwrap() {
        for what in ["points", "tiles", "rows"] {
            let name = format!("{what}/{}", team["team"].as_str().unwrap());
            let (_, value) = emitted.numbers().find(|(n, _)| *n == name).unwrap();
            assert_eq!(Some(value), team[what].as_f64());
        }
        assert_eq!(team["tiles"], team["timeline"].as_array().unwrap().len());
    }
    let winner = result["winner"].as_str().unwrap();
    assert!(emitted.categories().eq([("winner", winner)]));
}

#[test]
fn players_play_in_their_hours_and_finish_what_they_start() {
    let mut event = tiny_event();
    event["rows"][0]["tiles"] = json!([tile("pot", 1, 3)]);
    event["teams"][0]["players"][0]["hours"] = json!([[8, 9.5]]);
    // 8 to 9, 9 to 10, and 8 to 9 on the next day.
    assert_eq!(play(&event)["teams"][0]["timeline"], json!([[24 * 60 + 9 * 60, 0, 0, 0]]));
}

#[test]
fn skill_and_favorites_shorten_attempts() {
    let mut event = tiny_event();
    event["teams"][0]["players"][0]["skill"] = json!(1.5);
    event["teams"][0]["players"][0]["favorites"] = json!({ "dig": 2 });
    assert_eq!(play(&event)["teams"][0]["timeline"], json!([[8 * 60 + 20, 0, 0, 0]]));
}

#[test]
fn nothing_counts_after_the_end() {
    let mut event = tiny_event();
    event["hours"] = json!(8);
    let outcome = play(&event);
    assert_eq!(outcome["teams"][0]["points"], 0);
    assert_eq!(outcome["winner"], "moles");
}

#[test]
fn a_row_opens_with_enough_points_of_the_row_above() {
    let mut event = tiny_event();
    event["rows"] = json!([
        { "tiles": [tile("cup", 1, 1), tile("mug", 1, 1)] },
        { "unlock": 2, "tiles": [tile("vase", 100, 1)] },
    ]);
    event["teams"][0]["players"][0]["hours"] = json!([[0, 24]]);
    let timeline = &play(&event)["teams"][0]["timeline"];
    assert_eq!(*timeline, json!([[60, 0, 0, 0], [120, 0, 1, 0], [180, 1, 0, 0]]));
    event["rows"][1]["unlock"] = json!(1);
    let timeline = &play(&event)["teams"][0]["timeline"];
    assert_eq!(*timeline, json!([[60, 0, 0, 0], [120, 1, 0, 0], [180, 0, 1, 0]]));
}

#[test]
fn of_equal_points_the_earlier_win_and_then_the_first() {
    let mut event = tiny_event();
    let mut second = event["teams"][0].clone();
    second["name"] = json!("voles");
    event["teams"].as_array_mut().unwrap().push(second);
    assert_eq!(play(&event)["winner"], "moles");
    event["teams"][1]["players"][0]["skill"] = json!(2);
    assert_eq!(play(&event)["winner"], "voles");
}

#[test]
fn strategies_choose_differently() {
    let tile = Candidate { row: 0, points: 1, seconds: 10.0, unlocks: false, crowd: 1 };
    let tiles = [
        Candidate { points: 5, seconds: 60.0, ..tile },
        tile,
        Candidate { row: 1, points: 9, crowd: 2, ..tile },
        Candidate { row: 2, points: 2, seconds: 100.0, unlocks: true, ..tile },
        Candidate { row: 1, points: 1, seconds: 50.0, crowd: 0, ..tile },
    ];
    let choice = |strategy: Strategy| strategy.choose(tiles.into_iter().enumerate());
    assert_eq!(choice(Strategy::RowFirst), Some(1));
    assert_eq!(choice(Strategy::GreedyPoints), Some(2));
    assert_eq!(choice(Strategy::UnlockFirst), Some(3));
    assert_eq!(choice(Strategy::SpreadOut), Some(4));
}

/// Changes the default event at a JSON pointer and checks how it is refused.
fn check(pointer: &str, value: Value, path: &str, problem: &str) {
    let mut event = default_event();
    *event.pointer_mut(pointer).unwrap() = value;
    let message = refusal("bingo", &event);
    assert!(message.starts_with(&format!("invalid snapshot at `{path}`: ")), "{message}");
    assert!(message.contains(problem), "{message}");
}

#[test]
fn numbers_out_of_bounds_are_refused_by_path() {
    check("/hours", json!(0), "hours", "0 is not between 1 and 2400");
    check("/activities/0/minutes", json!(0), "activities[0].minutes", "0 is not between 0.1");
    for chance in [json!(0), json!(1.5), json!(-0.1)] {
        let path = "activities[1].drops[0].chance";
        check("/activities/1/drops/0/chance", chance, path, "is not between 0.000001 and 1");
    }
    check("/rows/2/tiles/1/count", json!(0), "rows[2].tiles[1].count", "0 is not between 1");
    check("/rows/0/tiles/0/points", json!(-1), "rows[0].tiles[0].points", "invalid value");
    check("/rows/0/tiles/0/points", json!(9_999_999), "rows[0].tiles[0].points", "not between");
    let player = "teams[1].players[0]";
    check("/teams/1/players/0/skill", json!(0), &format!("{player}.skill"), "between 0.1 and 10");
    let hours = format!("{player}.hours[0]");
    check("/teams/1/players/0/hours", json!([[22, 2]]), &hours, "split what passes midnight");
    check("/teams/1/players/0/hours", json!([[20, 25]]), &hours, "between 0 and 24");
    let hours = format!("{player}.hours[1]");
    check("/teams/1/players/0/hours", json!([[0, 9], [8, 10]]), &hours, "between 9 and 24");
}

#[test]
fn names_that_lead_nowhere_are_refused_by_path() {
    let tile = "rows[2].tiles[1]";
    let known = "unknown `golf`; there is `angling`, `crabbing`";
    check("/rows/2/tiles/1/activity", json!("golf"), &format!("{tile}.activity"), known);
    let known = "unknown `ball`; there is `crab`, `lobster`";
    check("/rows/2/tiles/1/drop", json!("ball"), &format!("{tile}.drop"), known);
    let path = "teams[0].players[0].favorites.golf";
    check("/teams/0/players/0/favorites", json!({ "golf": 2 }), path, "unknown `golf`");
    check("/teams/0/strategy", json!("luck"), "teams[0].strategy", "expected one of `row-first`");
    check("/teams/0/players/0/hours", json!([[1]]), "teams[0].players[0].hours[0]", "length");
}

#[test]
fn names_are_given_once_and_can_be_shown() {
    check("/teams/1/name", json!("Early Birds"), "teams[1].name", "`Early Birds` appears twice");
    check("/teams/1/name", json!(""), "teams[1].name", "is empty");
    check("/teams/1/name", json!("a\nb"), "teams[1].name", "control character");
    check("/teams/1/name", json!("x".repeat(101)), "teams[1].name", "has 101 bytes; at most 100");
    check("/rows/4/tiles/0/name", json!("Bonfire"), "rows[4].tiles[0].name", "appears twice");
    check("/activities/1/name", json!("angling"), "activities[1].name", "appears twice");
}

#[test]
fn an_event_needs_someone_and_something() {
    check("/teams", json!([]), "teams", "is empty");
    check("/teams/0/players", json!([]), "teams[0].players", "is empty");
    check("/teams/0/players/0/hours", json!([]), "teams[0].players[0].hours", "is empty");
    check("/rows", json!([]), "rows", "is empty");
    check("/rows/1/tiles", json!([]), "rows[1].tiles", "is empty");
    check("/activities", json!([]), "activities", "is empty");
}

#[test]
fn rows_that_never_open_are_refused() {
    check("/rows/1/unlock", json!(7), "rows[1].unlock", "the row above has 6 points in all");
}

#[test]
fn events_that_would_run_for_ages_are_refused() {
    let mut event = tiny_event();
    event["hours"] = json!(2_400);
    event["activities"][0]["minutes"] = json!(0.1);
    event["teams"][0]["players"] = (0..100)
        .map(|i| json!({ "name": i.to_string(), "skill": 10, "hours": [[0, 24]] }))
        .collect();
    let message = refusal("bingo", &event);
    assert!(message.contains("at `hours`: one run could take 88129020100 steps"), "{message}");
}

#[test]
fn misspelt_fields_are_refused() {
    let mut event = default_event();
    event["rows"][0]["tiels"] = json!([]);
    assert!(refusal("bingo", &event).contains("unknown field `tiels`"));
    assert!(refusal("bingo", &Value::Null).contains("expected struct Event"));
}
