//! Lanes for relays, evenly.

use super::{check_epoch, leases, numbers, row, rows, settle};
use crate::{
    claim,
    errors::Failure,
    row::parsed,
    sql::{Millis, Sql},
};
use rusqlite::{Row, params};
use serde_json::json;
use std::collections::BTreeMap;
use tidegate_core::{
    Fence, Message, Position,
    outbox::{
        Aside, Epoch, Gained, GiveBack, LANES, Lag, Lane, LaneLease, OnDead, Route, SetAside,
        Share, Shared,
    },
};

/// Messages in no lane that are set aside in one transaction.
const MOST_STRAYS: usize = 1_000;

pub(super) fn share(sql: &Sql, request: &Share) -> Result<Shared, Failure> {
    let now = sql.now()?;
    let relay = &request.relay.0;
    let relays = live(sql, relay, now, now.plus(request.lease))?;
    set_strays_aside(sql, now)?;
    let is_known = check_epoch("share lanes", &request.epoch).is_ok();
    let held = [leases(if is_known { &request.held } else { &[] })];
    let kept = sql.rows(include_str!("../sql/outbox/share_kept.sql"), held, row::lane)?;
    let params = params![relay, numbers(&kept)];
    sql.execute(include_str!("../sql/outbox/share_unknown.sql"), params)?;
    // One that has no lanes left numbers its settlements anew, also if it gets some now.
    forget_numbers(sql)?;
    let share = usize::from(LANES).div_ceil(relays);
    let params = params![relay, share.saturating_sub(kept.len())];
    let free: Vec<Lane> =
        sql.rows(include_str!("../sql/outbox/share_free.sql"), params, row::lane)?;
    let mut gained = BTreeMap::new();
    if !free.is_empty() {
        gained = take(sql, relay, &free)?;
        reroute(sql, &free, &request.routes, now)?;
        sql.execute(include_str!("../sql/outbox/share_tend.sql"), params![numbers(&free), now.0])?;
        sql.execute(include_str!("../sql/outbox/share_wait.sql"), [numbers(&free)])?;
        learn(sql, &free, &mut gained)?;
    }
    let lost = request.held.iter().map(|lease| lease.lane).filter(|lane| !kept.contains(lane));
    let (lost, surplus) = (lost.collect(), kept.len().saturating_sub(share));
    let settled = include_str!("../sql/outbox/share_settled.sql");
    let settled = sql.row::<i64>(settled, [relay], |row| row.get(0))?.unwrap_or(0).unsigned_abs();
    let (epoch, gained) = (Epoch::default(), gained.into_values().collect());
    Ok(Shared { epoch, settled, gained, lost, surplus, relays, pending: 0 })
}

fn forget_numbers(sql: &Sql) -> Result<(), Failure> {
    sql.execute(include_str!("../sql/outbox/forget_numbers.sql"), [])?;
    Ok(())
}

/// Messages that are in no lane would never be read: see [`row::message_lane`].
fn set_strays_aside(sql: &Sql, now: Millis) -> Result<(), Failure> {
    let name = row::outbox_name(sql)?;
    let read = |row: &Row<'_>| row::message(&name, row, now);
    let strays = sql.rows(include_str!("../sql/outbox/share_strays.sql"), [MOST_STRAYS], read)?;
    if strays.is_empty() {
        return Ok(());
    }
    let dead = strays.into_iter().map(|message| {
        let Message { position, lane, topic, damage, .. } = message;
        let reason = damage.unwrap_or_else(|| "it is in no lane: its id is negative".to_owned());
        let aside = Aside::Dead { attempts: 0, reason, then: OnDead::Skip };
        settle::aside_row(
            &SetAside { lane, position, topic, key: None, sink: String::new(), aside },
            now,
        )
    });
    sql.execute(include_str!("../sql/outbox/settle_aside.sql"), [rows(dead)])?;
    Ok(())
}

/// How many relays live, this one included.
fn live(sql: &Sql, relay: &str, now: Millis, until: Millis) -> Result<usize, Failure> {
    sql.execute(include_str!("../sql/outbox/share_ended.sql"), [now.0])?;
    sql.execute(include_str!("../sql/outbox/share_alive.sql"), params![relay, until.0])?;
    let relays = sql.row(include_str!("../sql/outbox/share_relays.sql"), [], |row| row.get(0))?;
    Ok(relays.unwrap_or(1))
}

fn take(sql: &Sql, relay: &str, free: &[Lane]) -> Result<BTreeMap<Lane, Gained>, Failure> {
    let first = *claim::fences(sql, free.len())?.start();
    let params = params![numbers(free), first, relay];
    let read = |row: &Row<'_>| {
        let lane = row::lane(row)?;
        let gained = Gained {
            lease: LaneLease { lane, fence: Fence(row.get("fence")?) },
            cursor: row.get("cursor")?,
            lags: Vec::new(),
            before: None,
            held: Vec::new(),
            aside: Vec::new(),
        };
        Ok((lane, gained))
    };
    let taken = sql.rows(include_str!("../sql/outbox/share_take.sql"), params, read)?;
    Ok(taken.into_iter().collect())
}

/// What goes to another sink now waits there in its key's line.
fn reroute(sql: &Sql, lanes: &[Lane], routes: &[Route], now: Millis) -> Result<(), Failure> {
    let read = |row: &Row<'_>| Ok((row.get("id")?, row::topic(row)?, row.get("sink")?));
    let text = include_str!("../sql/outbox/share_routed.sql");
    let routed: Vec<(i64, String, String)> = sql.rows(text, [numbers(lanes)], read)?;
    let found = routed.iter().filter_map(|(id, topic, sink)| {
        let now = Route::find(routes, topic).map_or("", |route| &route.sink);
        (now != sink).then(|| json!([id, now]))
    });
    let found: Vec<_> = found.collect();
    if !found.is_empty() {
        let params = params![rows(found), now.0];
        sql.execute(include_str!("../sql/outbox/share_reroute.sql"), params)?;
    }
    Ok(())
}

/// Reads what a relay must know about lanes that it has just leased.
fn learn(sql: &Sql, lanes: &[Lane], gained: &mut BTreeMap<Lane, Gained>) -> Result<(), Failure> {
    let these = numbers(lanes);
    let read = |row: &Row<'_>| {
        let topics = parsed(row, "topics", |text: String| serde_json::from_str(&text).ok())?;
        Ok((row::lane(row)?, Lag { sink: row.get("sink")?, topics, cursor: row.get("cursor")? }))
    };
    for (lane, lag) in sql.rows(include_str!("../sql/outbox/share_lags.sql"), [&these], read)? {
        gained.entry(lane).and_modify(|gained| gained.lags.push(lag));
    }
    let read = |row: &Row<'_>| {
        let before = parsed(row, "what", |text: String| serde_json::from_str(&text).ok())?;
        Ok((row::lane(row)?, before))
    };
    for (lane, before) in
        sql.rows(include_str!("../sql/outbox/share_before.sql"), [&these], read)?
    {
        gained.entry(lane).and_modify(|gained| gained.before = Some(before));
    }
    let held = sql.rows(include_str!("../sql/outbox/share_held.sql"), [&these], row::held_key)?;
    for key in held {
        gained.entry(key.lane).and_modify(|gained| gained.held.push(key));
    }
    let lowest = |gained: &Gained| {
        gained.lags.iter().map(|lag| lag.cursor).fold(gained.cursor, std::cmp::Ord::min)
    };
    let places = rows(gained.iter().map(|(lane, gained)| json!([lane.0, lowest(gained)])));
    let read = |row: &Row<'_>| Ok((row::lane(row)?, Position(row.get("id")?)));
    for (lane, position) in
        sql.rows(include_str!("../sql/outbox/share_aside.sql"), [places], read)?
    {
        gained.entry(lane).and_modify(|gained| gained.aside.push(position));
    }
    Ok(())
}

pub(super) fn give_back(sql: &Sql, request: &GiveBack) -> Result<(), Failure> {
    sql.execute(include_str!("../sql/outbox/give_back.sql"), [leases(&request.lanes)])?;
    forget_numbers(sql)?;
    if request.ends {
        sql.execute(include_str!("../sql/outbox/give_back_end.sql"), [&request.relay.0])?;
    }
    Ok(())
}
