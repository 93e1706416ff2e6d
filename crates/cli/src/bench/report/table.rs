//! The report for people.

use super::{
    Mode, Report, Way,
    verdict::{Bound, Outcome, Verdict},
};
use comfy_table::{CellAlignment, Table, presets::UTF8_FULL_CONDENSED};
use std::fmt;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}, {} threads", self.store, self.threads)?;
        self.write_server(f)?;
        writeln!(f, "{}", self.modes_table())?;
        self.write_others(f)?;
        write!(f, "{}", self.verdicts_table())
    }
}

impl Report {
    fn write_server(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(server) = &self.server else { return Ok(()) };
        writeln!(
            f,
            "PostgreSQL {}: fsync {}, synchronous_commit {}, full_page_writes {}",
            server.version, server.fsync, server.synchronous_commit, server.full_page_writes
        )?;
        if !server.durable() {
            writeln!(f, "WARNING: commits are not durable here; these figures say nothing")?;
        }
        match server.checkpoints {
            true => writeln!(f, "each mode begins right after a checkpoint"),
            false => writeln!(
                f,
                "no right to CHECKPOINT: WAL bytes depend on when the server did the last one"
            ),
        }
    }

    fn modes_table(&self) -> Table {
        let header = [
            "mode",
            "runs",
            "seconds",
            "runs/s",
            "statements/run",
            "writes",
            "WAL B/run",
            "ranges is",
        ];
        let mut table = table(&header);
        for mode in self.modes.iter().chain(&self.embedded) {
            table.add_row(self.mode_row(mode));
        }
        table
    }

    fn mode_row(&self, mode: &Mode) -> [String; 8] {
        let times = match mode.name {
            "per-run" | "rows" => self.ranges_over(mode.name),
            _ => None,
        };
        [
            mode.name.to_owned(),
            mode.runs.to_string(),
            format!("{:.3}", mode.seconds),
            format!("{:.0}", mode.runs_per_second),
            format!("{:.5}", mode.statements_per_run),
            or_dash(mode.transactions, |count| count.to_string()),
            or_dash(mode.wal_bytes_per_run, |bytes| format!("{bytes:.1}")),
            or_dash(times, |times| format!("{times:.1} ×")),
        ]
    }

    fn write_others(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for mode in &self.modes {
            if let Some(seconds) = mode.enqueue_seconds {
                writeln!(f, "{}: adding the rows took {seconds:.3} s more", mode.name)?;
            }
            if let Some(phases) = &mode.phases {
                writeln!(f, "{}: {phases}", mode.name)?;
            }
        }
        for copied in &self.copies {
            writeln!(
                f,
                "{}: {:.0} runs/s by ranges ({} runs/s of settling), by COPY of the same {} pages \
                 ({} bytes) {:.0} with a commit each, {:.0} at once",
                copied.workload,
                copied.ranges_runs_per_second,
                or_dash(copied.settling_runs_per_second, |rate| format!("{rate:.0}")),
                copied.pages,
                copied.bytes,
                copied.runs_per_second_by_page,
                copied.runs_per_second_at_once
            )?;
        }
        for Way { way, digest, same } in &self.bits {
            let word = if *same { "same bits" } else { "OTHER BITS" };
            writeln!(f, "{word}: {way} ({digest})")?;
        }
        for scaled in &self.scaling {
            writeln!(
                f,
                "{} of {} ms: one process {:.2} s, {} processes {:.2} s",
                scaled.workload,
                scaled.run_ms,
                scaled.seconds_one,
                scaled.processes,
                scaled.seconds_many
            )?;
        }
        Ok(())
    }

    fn verdicts_table(&self) -> Table {
        let mut table = table(&["figure", "measured", "target", ""]);
        for verdict in &self.verdicts {
            table.add_row(verdict_row(verdict));
        }
        table
    }
}

fn verdict_row(verdict: &Verdict) -> [String; 4] {
    let bound = match verdict.bound {
        Bound::AtLeast => "≥",
        Bound::AtMost => "≤",
    };
    let outcome = match verdict.outcome {
        Outcome::Ok => "ok",
        Outcome::Missed => "missed",
        Outcome::Void => "void: not durable",
    };
    [
        verdict.figure.clone(),
        number(verdict.measured),
        format!("{bound} {}", number(verdict.target)),
        outcome.to_owned(),
    ]
}

/// Three significant digits are more than a measurement is good for.
fn number(value: f64) -> String {
    let digits = 2 - value.abs().max(1e-9).log10().floor() as i32;
    format!("{value:.*}", digits.clamp(0, 6) as usize)
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED).set_header(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn or_dash<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "–".to_owned(), show)
}
