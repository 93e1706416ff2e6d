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
    // The relays that take over may be killed, too.
    laws.check(stall.message_ms <= 3 * most, || {
        format!(
            "a message that was committed at {} waited for {}, more than {}",
            seconds(stall.message_at_ms),
            seconds(stall.message_ms),
            seconds(3 * most)
        )
    });
    laws.check(findings.messages.accepted > 0, || "nothing was delivered".to_owned());
    laws.broken()
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.scene.fmt(f)?;
        self.write_messages(f)?;
        self.write_deliveries(f)?;
        self.scene.ended_by_themselves.iter().try_for_each(|how| writeln!(f, "  {how}"))
    }
}

impl Report {
    fn write_messages(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let m = &self.findings.messages;
        let (committed, rolled_back) = (count(m.committed), count(m.rolled_back));
        let (unknown, delivered) = (count(m.unknown), count(m.delivered_then_taken_back));
        line(
            f,
            "published",
            format_args!(
                "{committed} committed, {rolled_back} rolled back, {unknown} without an answer"
            ),
        )?;
        line(f, "survived", format_args!("{} messages are on the server", count(m.stored)))?;
        line(
            f,
            "taken back",
            format_args!(
                "{} by a server that crashed or failed over; {delivered} of them had been delivered",
                count(m.taken_back + m.delivered_then_taken_back),
            ),
        )?;
        let (accepted, refused) = (count(m.accepted), count(m.refused));
        line(f, "deliveries", format_args!("{accepted} taken by the sink, {refused} refused"))
    }

    fn write_deliveries(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Findings { lost, unexpected, order_violations, duplicates: d, .. } = &self.findings;
        let (in_flight, stall) = (&self.findings.in_flight, &self.findings.stall);
        line(f, "lost", format_args!("{}", count(*lost)))?;
        line(f, "unexpected", format_args!("{}", count(*unexpected)))?;
        let (violations, ends) =
            (count(*order_violations), count(self.findings.keys_with_older_end));
        line(
            f,
            "order",
            format_args!(
                "{violations} violations; {ends} keys end with an older message that came again"
            ),
        )?;
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
                "{} when relays were killed or stopped: {} unanswered, {} answered within the last \
                 second",
                count(in_flight.total()),
                count(in_flight.unanswered),
                count(in_flight.just_answered)
            ),
        )?;
        let (topic, message) = (seconds(stall.topic_ms), seconds(stall.message_ms));
        let at = seconds(stall.message_at_ms);
        line(
            f,
            "longest stall",
            format_args!(
                "{topic} of the healthy topic, {message} of one of its messages, committed at {at}, while \
                 no server fault was on"
            ),
        )
    }
}
