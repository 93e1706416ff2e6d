//! A tournament: services drawn at random, and how close policies come to the ideal on them.
//!
//! ```
//! use tidegate_pacer::scenario::{AnyPolicy, tournament::{Family, Tournament}};
//!
//! let tournament = Tournament { family: Family::Six, services: 6, seed: 1 };
//! let results = tournament.run(&["full".parse()?, AnyPolicy::Vector], 1);
//! println!("{results}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod draw;
mod family;
mod figures;
mod kind;
mod plan;
mod play;
mod results;
mod table;

pub use family::{Drawn, Family};
pub use figures::Figures;
pub use kind::Kind;
pub use play::{Played, Tournament};
pub use results::{Behind, OfKind, Results, Standing};
