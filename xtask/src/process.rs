//! Commands that end when we are told to end.
//!
//! Every command gets a process group of its own, and SIGINT, SIGTERM and SIGHUP reach it through us.
//! So there is one way to be interrupted, whoever sends the signal: the running command ends, its
//! step fails, and the guards that stop servers and remove directories are dropped as always.

use anyhow::{Context, Result, bail};
use std::{
    ffi::OsString,
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Command, Output, Stdio},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
};

struct Signals {
    received: bool,
    /// The process group that a signal is passed on to.
    running: Option<u32>,
}

static SIGNALS: Mutex<Signals> = Mutex::new(Signals { received: false, running: None });
static RECEIVED: Condvar = Condvar::new();

/// From now on a signal to end is remembered and passed on, instead of ending this process.
pub fn watch_signals() -> Result<()> {
    ctrlc::set_handler(|| {
        let mut signals = signals();
        signals.received = true;
        signals.running.into_iter().for_each(terminate_group);
        RECEIVED.notify_all();
    })
    .context("could not watch for signals")
}

/// Whether a signal to end has come.
pub fn interrupted() -> bool {
    signals().received
}

/// Returns when a signal to end has come.
pub fn wait_for_signal() {
    let outcome = RECEIVED.wait_while(signals(), |signals| !signals.received);
    drop(outcome.unwrap_or_else(PoisonError::into_inner));
}

/// The cargo that started us.
pub fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or(OsString::from("cargo")));
    cargo.current_dir(crate::root());
    cargo
}

/// Runs a command whose output is for the person who reads along.
pub fn run(command: &mut Command) -> Result<()> {
    finish(command).map(drop)
}

/// Runs a command whose output nobody wants to see unless it fails; returns what it wrote to stdout.
pub fn run_quietly(command: &mut Command) -> Result<String> {
    let output = finish(command.stdout(Stdio::piped()).stderr(Stdio::piped()))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The first executable of this name in the directories of PATH.
pub fn find_on_path(name: &str) -> Option<PathBuf> {
    path_directories().into_iter().map(|dir| dir.join(name)).find(|path| path.is_file())
}

/// The directories of PATH, in order.
pub fn path_directories() -> Vec<PathBuf> {
    std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default()
}

fn finish(command: &mut Command) -> Result<Output> {
    let child = command
        .stdin(Stdio::null())
        .process_group(0)
        .spawn()
        .with_context(|| format!("could not start {}", describe(command)))?;
    pass_signals_to(Some(child.id()));
    let output = child.wait_with_output();
    pass_signals_to(None);
    let output = output.with_context(|| format!("could not wait for {}", describe(command)))?;
    if interrupted() {
        bail!("interrupted");
    }
    if !output.status.success() {
        bail!("{} gave {}{}", describe(command), output.status, what_it_said(&output));
    }
    Ok(output)
}

fn pass_signals_to(group: Option<u32>) {
    let mut signals = signals();
    signals.running = group;
    // The signal may have come between the last command and this one.
    if signals.received {
        group.into_iter().for_each(terminate_group);
    }
}

/// The standard library can only kill, and only one process: what a test has started would stay.
fn terminate_group(group: u32) {
    let outcome = Command::new("sh").arg("-c").arg(format!("kill -TERM -{group}")).status();
    if let Err(error) = outcome {
        eprintln!("could not end the process group {group}: {error}");
    }
}

fn signals() -> MutexGuard<'static, Signals> {
    SIGNALS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn describe(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    format!("`{}`", words.join(" "))
}

fn what_it_said(output: &Output) -> String {
    let said = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    match String::from_utf8_lossy(&said).trim() {
        "" => String::new(),
        said => format!(":\n{said}"),
    }
}
