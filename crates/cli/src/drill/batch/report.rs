//! The report of a drill of workers, and the laws that it judges by.

use super::judge::Findings;
use crate::{
    drill::report::{Laws, Scene, line, seconds},
    show::number::count,
};
use serde::Serialize;
use std::fmt;

/// What a drill found.
#[derive(Debug, Serialize)]
pub struct Report {
    #[serde(flatten)]
    scene: Scene,
    #[serde(flatten)]
    pub findings: Findings,
    /// Batches that are not completed at the end.
    running: u64,
    /// Laws that are broken, in words.
    pub broken: Vec<String>,
}

impl Report {
    pub fn new(scene: Scene, findings: Findings, running: u64, killed: usize) -> Self {
        let broken = broken(&scene, &findings, running, killed);
        Self { scene, findings, running, broken }
    }
}

fn broken(scene: &Scene, findings: &Findings, running: u64, killed: usize) -> Vec<String> {
    let mut laws = Laws::default();
    laws.none(findings.lost, "indexes or batches lost");
    laws.none(findings.twice, "indexes with more than one result");
    laws.none(findings.unexpected, "unexpected results or batches");
    laws.none(findings.dead, "runs dead, although all may be tried again");
    laws.none(findings.other_digests, "batches with another digest than undisturbed");
    laws.none(findings.other_aggregates, "batches with other aggregates than undisturbed");
    laws.none(running, "batches not completed at the end");
    laws.none(killed as u64, "workers that did not end when they were asked to");
    laws.none(scene.ended_by_themselves.len() as u64, "workers ended by themselves");
    let most = scene.most_stall_ms();
    laws.check(findings.stall_ms <= most, || {
        format!(
            "nothing was completed for {}, more than {}",
            seconds(findings.stall_ms),
            seconds(most)
        )
    });
    laws.check(findings.batches > running, || "no batch was completed".to_owned());
    laws.broken()
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.scene.fmt(f)?;
        let found = &self.findings;
        line(
            f,
            "batches",
            format_args!(
                "{} with {} runs are on the server",
                count(found.batches),
                count(found.runs)
            ),
        )?;
        line(
            f,
            "taken back",
            format_args!(
                "{} acknowledged by a server that then crashed or failed over",
                count(found.taken_back)
            ),
        )?;
        line(f, "lost", format_args!("{}", count(found.lost)))?;
        line(f, "twice", format_args!("{}", count(found.twice)))?;
        line(f, "unexpected", format_args!("{}", count(found.unexpected)))?;
        line(f, "dead", format_args!("{}", count(found.dead)))?;
        line(f, "digests", format_args!("{} differ from undisturbed runs", found.other_digests))?;
        line(
            f,
            "aggregates",
            format_args!("{} differ from undisturbed runs", found.other_aggregates),
        )?;
        line(
            f,
            "longest stall",
            format_args!("{} while no server fault was on", seconds(found.stall_ms)),
        )?;
        self.scene.ended_by_themselves.iter().try_for_each(|how| writeln!(f, "  {how}"))
    }
}
