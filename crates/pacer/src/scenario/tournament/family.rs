//! The families of services that a tournament draws from.

use super::{
    draw::Dice,
    kind::Kind,
    plan::{Base, Plan},
};
use crate::scenario::Scenario;
use serde::Serialize;
use std::{fmt, str::FromStr};

/// Where services are drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// The six classic kinds, one connection, all requests there from the start, no latency.
    Six,
    /// All kinds, and whatever else differs between services.
    Wide,
}

/// A service that was drawn, with what is to be done there.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// What kind of service it is.
    pub kind: Kind,
    /// The scenario.
    pub scenario: Scenario,
}

impl Family {
    /// The kinds in it.
    pub fn kinds(self) -> &'static [Kind] {
        match self {
            Family::Six => &Kind::SIX,
            Family::Wide => &Kind::ALL,
        }
    }

    /// The service with a number. The kinds take turns; all else depends on the seed and the number.
    pub fn draw(self, seed: u64, number: u64) -> Drawn {
        let kinds = self.kinds();
        let kind = kinds[(number % kinds.len() as u64) as usize];
        let mut dice = Dice::new(seed, number);
        let base = match self {
            Family::Six => Base::classic(&mut dice),
            Family::Wide => Base::wide(&mut dice),
        };
        let mut plan = Plan::new(&base);
        plan.specialize(kind, &base, &mut dice);
        let name = format!("{kind} {number} of seed {seed}");
        Drawn { kind, scenario: plan.scenario(name, &base, dice.seed()) }
    }
}

impl FromStr for Family {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "six" => Ok(Family::Six),
            "wide" => Ok(Family::Wide),
            _ => Err(format!("`{text}` is none of six, wide")),
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Family::Six => "six",
            Family::Wide => "wide",
        })
    }
}
