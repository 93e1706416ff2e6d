//! Results as text.

use super::{Figures, Kind, Results, Standing};
use std::fmt::{self, Write};

/// The first column.
const NAME: usize = 31;
/// Columns of the comparison.
const CELL: usize = 10;

impl fmt::Display for Results {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(first) = self.policies.first() else { return Ok(()) };
        writeln!(f, "{}", self.title())?;
        f.write_str("Shares of the ideal speed; lost: rejected or timed out, nine of ten lose at most this.\n\n")?;
        self.own(first, f)?;
        if self.policies.len() > 1 {
            f.write_str("\nMedian/worst tenth\n")?;
            self.compared(f)?;
        }
        f.write_char('\n')?;
        self.changes(first, f)?;
        self.behind(first, f)?;
        self.list_worst(first, f)
    }
}

impl Results {
    fn title(&self) -> String {
        let t = &self.tournament;
        format!("{} services of the family `{}`, seed {}", t.services, t.family, t.seed)
    }

    /// One policy, with the bounds beside.
    fn own(&self, own: &Standing, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = own.policy.to_string();
        write!(f, "{name:NAME$} services median  worst tenth  worst   lost  unfinished")?;
        for bound in &self.bounds {
            write!(f, "  {:>14}", bound.policy.to_string())?;
        }
        f.write_char('\n')?;
        for (row, name) in own.rows() {
            let Some(figures) = own.figures(row) else { continue };
            let Figures { services, median, worst_tenth, worst, unfinished, .. } = figures;
            let lost = 100.0 * figures.lost_p90;
            write!(
                f,
                "{name:NAME$} {services:>8} {median:>6.2} {worst_tenth:>12.2} {worst:>6.2} \
                 {lost:>4.1} % {unfinished:>11}"
            )?;
            for bound in self.bounds.iter().filter_map(|bound| bound.figures(row)) {
                let Figures { median, worst_tenth, worst, .. } = bound;
                write!(f, "  {median:.2}/{worst_tenth:.2}/{worst:.2}")?;
            }
            f.write_char('\n')?;
        }
        Ok(())
    }

    /// All policies.
    fn compared(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = || self.policies.iter().chain(&self.bounds);
        write!(f, "{:NAME$}", "")?;
        all().try_for_each(|one| write!(f, " {:>CELL$}", one.policy.to_string()))?;
        f.write_char('\n')?;
        for (row, name) in self.policies[0].rows() {
            write!(f, "{name:NAME$}")?;
            for figures in all().filter_map(|one| one.figures(row)) {
                let cell = format!("{:.2}/{:.2}", figures.median, figures.worst_tenth);
                write!(f, " {cell:>CELL$}")?;
            }
            f.write_char('\n')?;
        }
        write!(f, "{:NAME$}", "lost")?;
        for figures in all().filter_map(|one| one.all) {
            let cell = format!("{:.1} %", 100.0 * figures.lost_p90);
            write!(f, " {cell:>CELL$}")?;
        }
        write!(f, "\n{:NAME$}", "unfinished")?;
        for figures in all().filter_map(|one| one.all) {
            write!(f, " {:>CELL$}", figures.unfinished)?;
        }
        f.write_char('\n')
    }

    fn changes(&self, own: &Standing, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let soon = own.kinds.iter().filter_map(|of| Some((of.kind, of.figures.soon_in_use?)));
        let soon: Vec<String> =
            soon.map(|(kind, share)| format!("{kind} {:.0} %", 100.0 * share)).collect();
        if soon.is_empty() {
            return Ok(());
        }
        writeln!(
            f,
            "{}: in full use again soon after the last change: {}",
            own.policy,
            soon.join(", ")
        )?;
        f.write_str("  (soon: 10 s, after rises 15 s, or 50 round trips if that is longer)\n")
    }

    fn behind(&self, own: &Standing, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inside: u64 = own.played.iter().map(|one| one.inside_retry_after).sum();
        writeln!(f, "{}: {inside} requests sent inside a Retry-After", own.policy)?;
        if self.policies.len() > 1 {
            let (count, of) = (self.far_behind.len(), self.tournament.services);
            let own = own.policy;
            writeln!(
                f,
                "{own}: behind the best of the others by more than a fifth on {count} of {of} services"
            )?;
        }
        Ok(())
    }

    fn list_worst(&self, own: &Standing, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\nWhere {} did worst\n", own.policy)?;
        for one in &self.worst {
            let (number, kind) = (one.number, one.kind.to_string());
            let lost = 100.0 * one.lost;
            writeln!(f, "  {number:>6}  {kind:15} {:.2}  {lost:>5.1} % lost", one.efficiency)?;
        }
        Ok(())
    }
}

/// A row of the table.
#[derive(Clone, Copy)]
enum Row {
    Kind(Kind),
    WithoutLatency,
    WithLatency,
    All,
}

impl Standing {
    fn rows(&self) -> impl Iterator<Item = (Row, &'static str)> {
        let kinds = self.kinds.iter().map(|of| (Row::Kind(of.kind), of.kind.describes()));
        // Without latency alone says nothing that all does not say.
        let latency =
            [(Row::WithoutLatency, "without latency"), (Row::WithLatency, "with latency")];
        let latency = latency.into_iter().filter(|_| self.with_latency.is_some());
        kinds.chain(latency).chain([(Row::All, "all")])
    }

    fn figures(&self, row: Row) -> Option<Figures> {
        match row {
            Row::Kind(kind) => self.kinds.iter().find(|of| of.kind == kind).map(|of| of.figures),
            Row::WithoutLatency => self.without_latency,
            Row::WithLatency => self.with_latency,
            Row::All => self.all,
        }
    }
}
