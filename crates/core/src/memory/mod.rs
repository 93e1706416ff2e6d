//! x
pub struct Memory;
