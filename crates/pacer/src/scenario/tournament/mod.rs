//! A tournament: services drawn at random, and how close policies come to the ideal on them.

mod draw;
mod family;
mod kind;
mod play;

pub use family::{Drawn, Family};
pub use kind::Kind;
pub use play::{Figures, Played, Tournament};
