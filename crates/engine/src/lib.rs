//! The loop: room, claim, group, act, settle, finalize.
