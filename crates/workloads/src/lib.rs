//! Bingo, and the small built-in workloads.
