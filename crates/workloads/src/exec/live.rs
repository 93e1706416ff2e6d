//! The programs that run at this moment, so that none of them outlives this process.

use std::{
    collections::BTreeSet,
    io,
    process::{Child, Command},
    sync::{Mutex, MutexGuard, PoisonError},
};

static LIVE: Mutex<Live> = Mutex::new(Live { over: false, groups: BTreeSet::new() });

struct Live {
    over: bool,
    /// By the id of their leader.
    groups: BTreeSet<u32>,
}

/// Ends all programs and what they started, and lets none start any more. For a process that is
/// about to exit: runs that wait for an answer would otherwise leave their programs behind.
pub fn end_all() {
    let mut live = live();
    live.over = true;
    std::mem::take(&mut live.groups).into_iter().for_each(kill);
}

/// Starts a program.
pub fn start(command: &mut Command) -> io::Result<Child> {
    let mut live = live();
    if live.over {
        return Err(io::Error::other("this process is about to exit"));
    }
    let child = command.spawn()?;
    live.groups.insert(child.id());
    Ok(child)
}

/// Ends a program and what it started. Afterwards it does not run.
pub fn end(child: &mut Child) {
    if live().groups.remove(&child.id()) && !matches!(child.try_wait(), Ok(Some(_))) {
        kill(child.id());
        // Both fail only if it has ended meanwhile.
        let _ = child.kill();
        let _ = child.wait();
    }
}

fn kill(group: u32) {
    #[cfg(unix)]
    if let Some(group) = rustix::process::Pid::from_raw(group.cast_signed()) {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
}

fn live() -> MutexGuard<'static, Live> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}
