//! Compares what the surviving server has with undisturbed runs of the same batches.

use super::{
    undisturbed,
    watch::{Look, Submitted, all_batches},
};
use crate::{
    commands::batch::stored::{Pages, entries},
    drill::stage::Stage,
};
use anyhow::Result;
use serde::Serialize;
use std::collections::HashSet;
use tidegate::{
    Aggregates, BatchState, aggregate::Digest, inspect::BatchStatus, limits::MAX_LISTED,
};
use tidegate_drill::history::{Moment, ServerFault};

/// Most examples that are kept: more say nothing new.
const EXAMPLES: usize = 20;

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Findings {
    /// Batches that the surviving server has.
    pub batches: u64,
    /// Their runs.
    pub runs: u64,
    /// Batches that were submitted and acknowledged, and taken back by a server fault.
    pub taken_back: u64,
    /// The same without a server fault; and indexes without a result.
    pub lost: u64,
    /// Indexes with more than one result.
    pub twice: u64,
    /// Results of indexes that do not exist, and batches that nobody submitted.
    pub unexpected: u64,
    /// Runs that were given up.
    pub dead: u64,
    /// Batches whose digest differs from that of an undisturbed run: the stored one, or that of the stored results.
    pub other_digests: u64,
    /// Batches whose aggregates differ from those of an undisturbed run.
    pub other_aggregates: u64,
    /// Longest time without progress while a batch was running and no server fault was on.
    pub stall_ms: u64,
    /// The first of what went wrong, in words.
    pub examples: Vec<String>,
}

/// Which indexes have results, and the digest of these.
#[derive(Debug, PartialEq, Eq)]
struct Results {
    times: Vec<u8>,
    unexpected: u64,
    digest: Digest,
}

impl Results {
    fn new(runs: u64) -> Self {
        Self { times: vec![0; runs as usize], unexpected: 0, digest: Digest::default() }
    }

    fn add(&mut self, index: u64, result: &str) {
        self.digest.add(index, result.as_bytes());
        match self.times.get_mut(index as usize) {
            Some(times) => *times = times.saturating_add(1),
            None => self.unexpected += 1,
        }
    }

    fn count(&self, is: impl Fn(u8) -> bool) -> u64 {
        self.times.iter().filter(|times| is(**times)).count() as u64
    }
}

impl Findings {
    fn example(&mut self, text: String) {
        if self.examples.len() < EXAMPLES {
            self.examples.push(text);
        }
    }

    /// Compares one batch with an undisturbed run of it.
    fn compare(
        &mut self,
        name: &str,
        results: &Results,
        stored: &Aggregates,
        expected: &Aggregates,
    ) {
        let (lost, twice) = (results.count(|times| times == 0), results.count(|times| times > 1));
        self.lost += lost;
        self.twice += twice;
        self.unexpected += results.unexpected;
        if lost + twice + results.unexpected > 0 {
            self.example(format!(
                "{name}: {lost} indexes have no result, {twice} more than one; {} results too many",
                results.unexpected
            ));
        }
        if stored.digest != expected.digest || results.digest != expected.digest {
            self.other_digests += 1;
            self.example(format!(
                "{name}: its digest is {}, that of its results {}; undisturbed {}",
                stored.digest, results.digest, expected.digest
            ));
        }
        if stored != expected {
            self.other_aggregates += 1;
            self.example(format!(
                "{name}: its aggregates count {} runs; undisturbed {}",
                stored.runs, expected.runs
            ));
        }
    }

    /// Compares what was submitted with what is there.
    fn compare_submissions(
        &mut self,
        submitted: &[Submitted],
        seeds: &HashSet<u64>,
        faults: &[ServerFault],
    ) {
        let known: HashSet<u64> = submitted.iter().map(|it| it.seed).collect();
        self.unexpected += seeds.difference(&known).count() as u64;
        for Submitted { seed, acknowledged } in submitted {
            let Some(at) = acknowledged else { continue };
            if seeds.contains(seed) {
                continue;
            }
            match faults.iter().any(|fault| fault.to >= *at) {
                true => self.taken_back += 1,
                false => {
                    self.lost += 1;
                    self.example(format!(
                        "the batch with seed {seed} is gone without a server fault"
                    ));
                }
            }
        }
    }
}

/// Compares all batches that the surviving server has.
pub async fn all(
    stage: &Stage,
    submitted: &[Submitted],
    faults: &[ServerFault],
    findings: &mut Findings,
) -> Result<()> {
    let batches = all_batches(&stage.store, MAX_LISTED).await?;
    let seeds = batches.iter().map(|it| it.batch.seed).collect();
    findings.compare_submissions(submitted, &seeds, faults);
    for status in &batches {
        one(stage, status, findings).await?;
    }
    Ok(())
}

async fn one(stage: &Stage, status: &BatchStatus, findings: &mut Findings) -> Result<()> {
    let batch = &status.batch;
    findings.batches += 1;
    findings.runs += batch.runs;
    findings.dead += status.progress.dead;
    // It is reported as such: what is not done yet is not lost.
    if status.state == BatchState::Running {
        return Ok(());
    }
    let mut results = Results::new(batch.runs);
    let mut pages = Pages::beyond(&stage.store, batch.id, 0);
    while let Some(page) = pages.next().await? {
        entries(&page)?.iter().for_each(|(index, result)| results.add(*index, result.get()));
    }
    let stored = stage.store.aggregates(batch.id).await?;
    let expected = undisturbed::aggregates(batch.seed, batch.runs).await?;
    findings.compare(&format!("batch {}", batch.id), &results, &stored, &expected);
    Ok(())
}

/// The longest time in which nothing was completed although a batch was running and no server fault was on, in
/// milliseconds.
pub fn stall(looks: &[Look], faults: &[ServerFault]) -> u64 {
    let mut longest: Moment = 0;
    let mut since: Option<Look> = None;
    for look in looks {
        // A fault begins anew: nobody could work.
        let after_fault = faults.iter().rev().find(|fault| fault.from <= look.at).map(|it| it.to);
        let base = since.filter(|since| after_fault.is_none_or(|to| to <= since.at));
        since = match base {
            Some(base) if base.running > 0 => {
                longest = longest.max(look.at - base.at);
                let moved = look.completed != base.completed || look.running != base.running;
                Some(if moved { *look } else { base })
            }
            _ => Some(*look),
        };
    }
    longest / 1000
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
