//! Data goes to stdout, everything else to stderr.

use crate::show::number;
use indicatif::{MultiProgress, ProgressBar, ProgressState, ProgressStyle};
use serde::Serialize;
use std::{
    io::{self, IsTerminal, Write},
    sync::LazyLock,
};
use tracing_subscriber::fmt::MakeWriter;

/// All that is drawn on the terminal. Whoever writes a line to stderr makes it step aside.
pub static BARS: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// Writes data.
pub fn data(text: &str) -> io::Result<()> {
    BARS.suspend(|| {
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        stdout.flush()
    })
}

/// Writes one object of JSON as one line.
pub fn json(value: &impl Serialize) -> io::Result<()> {
    data(&format!("{}\n", serde_json::to_string(value)?))
}

/// Writes a line for people. That nobody reads stderr keeps no work from being done.
pub fn note(line: &str) {
    BARS.suspend(|| {
        let _ = writeln!(io::stderr(), "{line}");
    });
}

/// The columns of the terminal, or of a page if there is none.
pub fn width() -> usize {
    const PAGE: usize = 100;
    let columns =
        console::Term::stdout().size_checked().map_or(PAGE, |(_, columns)| columns.into());
    columns.clamp(40, 160)
}

/// How a bar looks, with `{done}` for how many of all.
pub fn bar_style(template: &str, all: u64) -> ProgressStyle {
    let style = ProgressStyle::with_template(template).expect("the template is well-formed");
    style.progress_chars("━╸─").with_key(
        "done",
        move |state: &ProgressState, text: &mut dyn std::fmt::Write| {
            let _ = write!(text, "{} of {}", number::count(state.pos()), number::count(all));
        },
    )
}

/// Text of others as it may be printed: what would steer the terminal is written out.
pub fn harmless(text: &str) -> String {
    let shown = |c: char| match c.is_control() {
        true => c.escape_default().collect(),
        false => c.to_string(),
    };
    text.chars().map(shown).collect()
}

/// Text for one line of the terminal that people look at: cut rather than wrapped.
pub fn one_line(text: &str) -> String {
    let (_, columns) = console::Term::stderr().size();
    console::truncate_str(text, columns.max(20).into(), "…").into_owned()
}

/// A bar for bytes that are read; a spinner if nobody knows how many.
pub fn scanning(bytes: Option<u64>) -> ProgressBar {
    let (bar, template) = match bytes {
        Some(bytes) => (ProgressBar::new(bytes), "reading {bar:32.cyan/dim} {percent:>3} %"),
        None => (ProgressBar::new_spinner(), "reading {spinner} {binary_bytes}"),
    };
    let style = ProgressStyle::with_template(template).expect("the template is well-formed");
    BARS.add(bar.with_style(style.progress_chars("━╸─")))
}

/// Counts what was done; nobody knows how much there is.
pub fn counting(what: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {msg} {human_pos}");
    let style = style.expect("the template is well-formed");
    BARS.add(ProgressBar::new_spinner().with_style(style).with_message(what))
}

/// Whether people look at stderr as it is written.
pub fn is_watched() -> bool {
    io::stderr().is_terminal()
}

/// Red and bold on a terminal, unless `NO_COLOR` is set.
pub fn alarm(text: &str) -> String {
    console::style(text).for_stderr().red().bold().to_string()
}

/// Bold on a terminal, unless `NO_COLOR` is set.
pub fn strong(text: &str) -> String {
    console::style(text).bold().to_string()
}

/// Dim on a terminal, unless `NO_COLOR` is set.
pub fn faint(text: &str) -> String {
    console::style(text).dim().to_string()
}

/// Where the log goes: stderr, beside the bars.
#[derive(Clone, Copy)]
pub struct Log;

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        BARS.suspend(|| io::stderr().write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        *self
    }
}
