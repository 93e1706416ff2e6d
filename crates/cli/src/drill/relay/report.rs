//! The report of a drill of relays, and the laws that it judges by.

use super::Left;
use crate::{
    drill::report::{Laws, Scene, line, seconds},
    show::number::count,
};
use serde::Serialize;
use std::fmt;
use tidegate_drill::history::Findings;

/// What a drill found.
#[derive(Debug, Serialize)]
pub struct Report {
    #[serde(flatten)]
    scene: Scene,
    #[serde(flatten)]
    pub findings: Findings,
    /// Messages that the store counts as outstanding at the end.
    outstanding: u64,
    /// Messages that relays gave up.
    dead: u64,
    /// Laws that are broken, in words.
    pub broken: Vec<String>,
}

impl Report {
    pub fn new(scene: Scene, findings: Findings, left: Left, killed: usize) -> Self {
        let broken = broken(&scene, &findings, left, killed);
        Self { scene, findings, outstanding: left.outstanding, dead: left.dead, broken }
    }
}

fn broken(scene: &Scene, findings: &Findings, left: Left, killed: usize) -> Vec<String> {
    let mut laws = Laws::default();
    laws.none(findings.lost, "messages lost");
    laws.none(findings.unexpected, "unexpected deliveries or messages");
    laws.none(findings.order_violations, "order violations");
    laws.none(findings.duplicates.unexplained, "duplicates that no fault explains");
    laws.none(left.outstanding, "messages still outstanding at the end");
    laws.none(left.dead, "messages dead, although all may be tried again for ever");
    laws.none(killed as u64, "relays that did not end when they were asked to");
    laws.none(scene.ended_by_themselves.len() as u64, "relays ended by themselves");
    let (again, in_flight) = (findings.duplicates.after_relay_faults, findings.in_flight.total());
    laws.check(again <= in_flight, || {
        format!("{again} duplicates after faults of relays, more than the {in_flight} in flight")
    });
    let most = scene.most_stall_ms();
    let stall = findings.stall;
    laws.check(stall.topic_ms <= most, || {
        format!(
            "the healthy topic stood still for {}, more than {}",
            seconds(stall.topic_ms),
            seconds(most)
        )
    });
    // The relay that takes over may be killed, too.
    laws.check(stall.message_ms <= 2 * most, || {
        format!(
            "a message waited for {}, more than {}",
            seconds(stall.message_ms),
            seconds(2 * most)
        )
    });
    laws.check(findings.messages.accepted > 0, || "nothing was delivered".to_owned());
    laws.broken()
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.scene.fmt(f)?;
        let Findings { messages: m, duplicates: d, in_flight, stall, .. } = &self.findings;
        line(
            f,
            "published",
            format_args!(
                "{} committed, {} rolled back, {} without an answer",
                count(m.committed),
                count(m.rolled_back),
                count(m.unknown)
            ),
        )?;
        line(f, "survived", format_args!("{} messages are on the server", count(m.stored)))?;
        line(
            f,
            "taken back",
            format_args!(
                "{} acknowledged, {} delivered, by a server that then crashed or failed over",
                count(m.taken_back + m.delivered_then_taken_back),
                count(m.delivered_then_taken_back)
            ),
        )?;
        line(
            f,
            "deliveries",
            format_args!("{} taken by the sink, {} refused", count(m.accepted), count(m.refused)),
        )?;
        line(f, "lost", format_args!("{}", count(self.findings.lost)))?;
        line(f, "unexpected", format_args!("{}", count(self.findings.unexpected)))?;
        line(f, "order", format_args!("{} violations", count(self.findings.order_violations)))?;
        line(
            f,
            "duplicates",
            format_args!(
                "{}: {} after faults of relays, {} after faults of the server, {} unexplained",
                count(d.total),
                count(d.after_relay_faults),
                count(d.after_server_faults),
                count(d.unexplained)
            ),
        )?;
        line(
            f,
            "in flight",
            format_args!(
                "{} at the faults of relays: {} unanswered, {} answered within the last second; at most {} at \
                 one",
                count(in_flight.total()),
                count(in_flight.unanswered),
                count(in_flight.just_answered),
                count(in_flight.most)
            ),
        )?;
        line(
            f,
            "longest stall",
            format_args!(
                "{} of the healthy topic, {} of one of its messages, while no server fault was on",
                seconds(stall.topic_ms),
                seconds(stall.message_ms)
            ),
        )?;
        self.scene.ended_by_themselves.iter().try_for_each(|how| writeln!(f, "  {how}"))
    }
}
