//! One record, and where it is. Pure.

use super::place::{PARTS, Place};
use crate::{
    item::{Item, get_number, get_text, number, text},
    read,
    ticks::Ticks,
};
use std::time::Duration;
use tidegate_core::outbox::{
    KeyHash, LANES, Lane, OnDead, Position, StuckState, by_state::AsideRow,
};

/// What a record is among.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    /// What waits, and what is dead and holds its key.
    Waiting,
    /// What is dead, and lets its key go on.
    Dead,
}

impl Part {
    pub fn of(row: &AsideRow) -> Self {
        if row.is_over() { Self::Dead } else { Self::Waiting }
    }

    /// The scopes of its records.
    pub fn scopes(self) -> impl Iterator<Item = String> {
        (0..PARTS).map(move |number| self.scope(number))
    }

    pub fn scope(self, number: u16) -> String {
        format!("{}#{number}", self.name())
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Dead => "dead",
        }
    }

    /// In a mark.
    pub fn letter(self) -> char {
        match self {
            Self::Waiting => 'w',
            Self::Dead => 'd',
        }
    }
}

/// A message that was set aside.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Record {
    pub position: Position,
    pub row: AsideRow,
    /// The size of the message's item, if it is large.
    pub bytes: usize,
}

impl Record {
    pub fn place(&self) -> Place {
        Place::of(Part::of(&self.row), self.row.lane, self.position)
    }

    /// The message's id.
    pub fn id(&self) -> &str {
        read::parse(&self.row.row).map_or("", |(_, id)| id)
    }

    /// When the message was made.
    pub fn created(&self) -> Ticks {
        read::parse(&self.row.row).map(|(created, _)| created).unwrap_or_default()
    }

    pub fn item(&self) -> Item {
        let AsideRow { row, lane, topic, key, sink, state, attempts, reason, then, due } =
            &self.row;
        let mut item = self.place().key();
        let mut add = |name: &str, value| item.insert(name.to_owned(), value);
        add("Row", text(row.as_ref()));
        add("Position", number(self.position.0));
        add("Lane", number(lane.0));
        add("Topic", text(topic));
        add("Sink", text(sink));
        add("State", text(state.as_str()));
        add("Attempts", number(attempts));
        add("Reason", text(reason));
        add("OnDead", text(then.as_str()));
        add("DueMs", number(due.as_millis()));
        if self.bytes > 0 {
            add("Bytes", number(self.bytes));
        }
        if let Some(key) = key {
            add("KeyHash", number(key.0));
        }
        item
    }

    pub fn read(item: &Item) -> Option<Self> {
        let row = AsideRow {
            row: get_text(item, "Row").filter(|row| read::parse(row).is_some())?.into(),
            lane: Lane(get_number(item, "Lane").filter(|lane| *lane < LANES)?),
            topic: get_text(item, "Topic")?.to_owned(),
            key: get_number(item, "KeyHash").map(KeyHash),
            sink: get_text(item, "Sink")?.to_owned(),
            state: StuckState::parse(get_text(item, "State")?)?,
            attempts: get_number(item, "Attempts")?,
            reason: get_text(item, "Reason")?.to_owned(),
            then: OnDead::parse(get_text(item, "OnDead")?)?,
            due: Duration::from_millis(get_number(item, "DueMs")?),
        };
        let bytes = get_number(item, "Bytes").unwrap_or_default();
        Some(Self { position: Position(get_number(item, "Position")?), row, bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::NAME;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn records_come_back_and_lie_in_the_order_of_their_positions(
            (one, other) in (0..i64::MAX, 0..i64::MAX),
            lane in 0..LANES,
            (state, then) in (0..5_usize, 0..3_usize),
            key in prop::option::of("[a-z]{1,9}"),
            attempts in 0..99_u32,
            bytes in 0..500_000_usize,
        ) {
            let row = AsideRow {
                row: "5/id-1".into(),
                lane: Lane(lane),
                topic: "t".to_owned(),
                key: key.as_deref().map(KeyHash::of),
                sink: "s".to_owned(),
                state: StuckState::ALL[state],
                attempts,
                reason: String::new(),
                then: [OnDead::Skip, OnDead::Block, OnDead::Park][then],
                due: Duration::from_millis(one.unsigned_abs()),
            };
            let record = Record { position: Position(one), row, bytes };
            prop_assert_eq!(record.id(), "id-1");
            prop_assert_eq!(Record::read(&record.item()), Some(record.clone()));
            let place = record.place();
            let next = Record { position: Position(other), ..record }.place();
            prop_assert_eq!(next.scope(), place.scope());
            let name = |place: Place| get_text(&place.key(), NAME).unwrap_or_default().to_owned();
            prop_assert_eq!(name(next).cmp(&name(place)), other.cmp(&one));
        }
    }
}
