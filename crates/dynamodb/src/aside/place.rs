//! Where a record is, in the words of the side table, of a message's item and of pages. Pure.

use super::record::Part;
use crate::{
    item::{Item, text},
    tables::{NAME, SCOPE},
};
use tidegate_core::outbox::{LANES, Lane, Position};

/// Into how many parts records are divided, so that no part of the table gets all the load.
pub(crate) const PARTS: u16 = 8;

/// Where a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub part: Part,
    pub lane: Lane,
    pub position: Position,
}

/// What the digits of a mark stand for.
const DIGITS: &[u8; 64] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz-";

/// The digits of a position, six bits each.
const POSITION_DIGITS: u32 = 11;

impl Place {
    pub fn of(part: Part, lane: Lane, position: Position) -> Self {
        Self { part, lane, position }
    }

    pub fn scope(self) -> String {
        self.part.scope(self.lane.0 % PARTS)
    }

    pub fn key(self) -> Item {
        let name = format!("{:02}#{:019}", self.lane.0, self.position.0);
        Item::from([(SCOPE.to_owned(), text(self.scope())), (NAME.to_owned(), text(name))])
    }

    /// As it stands in the message's own item: short, so that it takes less room there than what it replaces. An item
    /// that is as large as DynamoDB allows could not be set aside otherwise.
    pub fn mark(self) -> String {
        let digit = |bits: u64| char::from(DIGITS[(bits & 63) as usize]);
        let position = self.position.0.cast_unsigned();
        let digits = (0..POSITION_DIGITS).rev().map(|at| digit(position >> (6 * at)));
        [self.part.letter(), digit(u64::from(self.lane.0))].into_iter().chain(digits).collect()
    }

    pub fn of_mark(mark: &str) -> Option<Self> {
        let value = |letter: &u8| DIGITS.iter().position(|digit| digit == letter);
        let (first, digits) = mark.as_bytes().split_first()?;
        let part =
            [Part::Waiting, Part::Dead].into_iter().find(|it| it.letter() == char::from(*first))?;
        let (lane, digits) = digits.split_first()?;
        if digits.len() != POSITION_DIGITS as usize {
            return None;
        }
        let mut position = 0_u64;
        for digit in digits {
            position = position << 6 | value(digit)? as u64;
        }
        let lane = Lane(value(lane)? as u16);
        let place = Self { part, lane, position: Position(position.cast_signed()) };
        (lane.0 < LANES && place.mark() == mark).then_some(place)
    }

    /// As a page names the place behind which the next one begins. No message has such an id.
    pub fn page(self) -> String {
        format!("{}/{}", self.part.name(), self.mark())
    }

    pub fn of_page(page: &str) -> Option<Self> {
        let (part, mark) = page.split_once('/')?;
        Self::of_mark(mark).filter(|place| place.part.name() == part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn marks_and_pages_come_back(
            position in any::<i64>(),
            lane in 0..LANES,
            is_dead in any::<bool>(),
        ) {
            let part = if is_dead { Part::Dead } else { Part::Waiting };
            let place = Place::of(part, Lane(lane), Position(position));
            prop_assert_eq!(Place::of_mark(&place.mark()), Some(place));
            prop_assert_eq!(Place::of_page(&place.page()), Some(place));
            prop_assert_eq!(Place::of_page(&place.mark()), None);
        }

        #[test]
        fn no_other_text_is_a_place(text in "[wd]?[0-9a-zA-Z_#/-]{0,14}") {
            if let Some(place) = Place::of_mark(&text) {
                prop_assert_eq!(place.mark(), text);
            }
        }
    }
}
