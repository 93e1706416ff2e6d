//! Every bound that is not a user's choice, in one place, each with its reason.

use std::time::Duration;

/// Largest batch. Indexes are stored as signed 64-bit numbers; this leaves room to spare.
pub const MAX_RUNS: u64 = 1_000_000_000_000;

/// Largest snapshot: it is read by every worker and held in memory by each.
pub const MAX_SNAPSHOT_BYTES: usize = 16 << 20;

/// Largest result of one run: a page holds many of them in memory.
pub const MAX_RESULT_BYTES: usize = 1 << 20;

/// Longest stored reason of a failure: enough for a stack trace's head, not for a dump.
pub const MAX_REASON_BYTES: usize = 4 << 10;

/// Numbers and categories that one run may emit: each name costs memory in every worker.
pub const MAX_EMITS_PER_RUN: usize = 1_000;

/// Longest name of a number, a category or its value.
pub const MAX_NAME_BYTES: usize = 200;

/// Different names of numbers, of categories, and of the values of one category, in one batch: each
/// costs memory in every worker, and bytes in every settlement.
pub const MAX_NAMES: usize = 1_000;

/// Most leases that one claim hands out: bounds the size of the answer.
pub const MAX_LEASES_PER_CLAIM: usize = 1_024;

/// Most runs in one lease: bounds what a lost lease repeats.
pub const MAX_RANGE_LENGTH: u64 = 10_000_000;

/// Most due retries in one lease: each is a row that the claim updates.
pub const MAX_RETRIES_PER_LEASE: u64 = 1_000;

/// Due retries among which a claim takes those with the lowest indexes, unless it can take more: it
/// reads them all, so that a million that are due must not be read by every claim.
pub const DUE_WINDOW: u64 = 4_096;

/// Most dead runs that one call makes due again: bounds how long workers wait for its transaction.
pub const MAX_RETRIED: u64 = 5_000;

/// Bytes of results and failures buffered for one page before it is settled, whatever the count of
/// runs.
pub const MAX_PAGE_BYTES: usize = 4 << 20;

/// Largest payload of a message: what brokers take by default. Larger things belong elsewhere, and a
/// message says where. The stores' own functions have the same number.
pub const MAX_PAYLOAD_BYTES: usize = 1 << 20;

/// Longest topic: it is part of every message, and of names in sinks.
pub const MAX_TOPIC_BYTES: usize = 255;

/// Longest key.
pub const MAX_KEY_BYTES: usize = 1_024;

/// Largest set of headers of one message: what HTTP servers take by default.
pub const MAX_HEADER_BYTES: usize = 8 << 10;

/// Most messages that are published in one call: bounds the statement.
pub const MAX_PUBLISHED: usize = 10_000;

/// Messages that are read with the head of a key from those set aside.
pub const MAX_BEHIND: usize = 100;

/// Dead messages that one page of a retry or a drop looks at: their lanes are locked meanwhile.
pub const MAX_STEERED: usize = 1_000;

/// Most rows that one listing returns; a reader asks for the next page.
pub const MAX_LISTED: usize = 10_000;

/// Shortest lease. It is renewed three times in its length, and a renewal is a commit: on a busy machine that
/// may take some hundred milliseconds. A shorter lease is lost before it is renewed, and its work is
/// repeated for ever.
pub const MIN_LEASE: Duration = Duration::from_secs(1);

/// Longest lease. What a crashed worker or relay held waits until its lease has expired: more than a day is
/// likelier a typo than a wish.
pub const MAX_LEASE: Duration = Duration::from_secs(86_400);

/// Longest delay of a message: far beyond it, times cannot be computed any more.
pub const MAX_DELAY: Duration = Duration::from_secs(100 * 365 * 86_400);

/// How long one call to a store may take before it counts as failed.
pub const STORE_DEADLINE: Duration = Duration::from_secs(30);
