//! Processes that are killed, stopped, let go on and replaced.

use rustix::process::{Pid, Signal, kill_process};
use std::{
    io,
    os::unix::process::CommandExt,
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

/// How often a process is looked at that is asked to end.
const LOOK: Duration = Duration::from_millis(10);

/// Some processes that do the same. Each has a number that no other ever has.
pub struct Crew {
    make: Box<dyn FnMut(u32) -> io::Result<Command> + Send>,
    group: i32,
    members: Vec<Member>,
    started: u32,
}

#[derive(Debug)]
struct Member {
    number: u32,
    process: Child,
    started: Instant,
}

/// A process that ended without being asked to.
#[derive(Debug)]
pub struct Ended {
    /// Its number.
    pub number: u32,
    /// How it ended.
    pub status: ExitStatus,
    /// How long it had run.
    pub age: Duration,
}

impl Crew {
    /// Starts processes. `make` gives the command of the one with a number; all are started in the process group
    /// `group`.
    pub fn start(
        size: usize,
        group: i32,
        make: impl FnMut(u32) -> io::Result<Command> + Send + 'static,
    ) -> io::Result<Self> {
        let mut crew = Self { make: Box::new(make), group, members: Vec::new(), started: 0 };
        for _ in 0..size {
            let member = crew.recruit()?;
            crew.members.push(member);
        }
        Ok(crew)
    }

    /// How many processes there are.
    pub fn size(&self) -> usize {
        self.members.len()
    }

    /// Kills the process in a place by SIGKILL and starts another. Returns the number of the dead one. It is dead
    /// when this returns.
    pub fn kill(&mut self, place: usize) -> io::Result<u32> {
        self.signal(place, Signal::KILL)?;
        self.members[place].process.wait()?;
        self.replace(place)
    }

    /// Stops the process in a place by SIGSTOP. Returns its number.
    pub fn stop(&mut self, place: usize) -> io::Result<u32> {
        self.signal(place, Signal::STOP)?;
        Ok(self.members[place].number)
    }

    /// Lets a stopped process go on, if it is still there.
    pub fn resume(&mut self, number: u32) -> io::Result<()> {
        match self.members.iter().position(|member| member.number == number) {
            Some(place) => self.signal(place, Signal::CONT),
            None => Ok(()),
        }
    }

    /// Asks the process in a place to end by SIGTERM, and starts another at once. The old one is killed if it does
    /// not end within `grace`; a thread waits for that. Returns its number.
    pub fn restart(&mut self, place: usize, grace: Duration) -> io::Result<u32> {
        self.signal(place, Signal::TERM)?;
        let next = self.recruit()?;
        let Member { number, process, .. } = std::mem::replace(&mut self.members[place], next);
        std::thread::spawn(move || end(process, grace));
        Ok(number)
    }

    /// Replaces processes that ended without being asked to.
    pub fn replace_ended(&mut self) -> io::Result<Vec<Ended>> {
        let mut ended = Vec::new();
        for place in 0..self.members.len() {
            if let Some(status) = self.members[place].process.try_wait()? {
                let age = self.members[place].started.elapsed();
                ended.push(Ended { number: self.replace(place)?, status, age });
            }
        }
        Ok(ended)
    }

    /// Asks all processes to end, and kills those that do not within `grace`. Returns how many those are. All are
    /// dead when this returns.
    pub fn finish(mut self, grace: Duration) -> io::Result<usize> {
        for place in 0..self.members.len() {
            // One that was stopped cannot end.
            self.signal(place, Signal::CONT)?;
            self.signal(place, Signal::TERM)?;
        }
        let members = std::mem::take(&mut self.members);
        let waiting =
            members.into_iter().map(|it| std::thread::spawn(move || end(it.process, grace)));
        let waiting: Vec<_> = waiting.collect();
        let ended = waiting.into_iter().map(|it| it.join().unwrap_or(false));
        Ok(ended.filter(|ended| !ended).count())
    }

    fn replace(&mut self, place: usize) -> io::Result<u32> {
        let next = self.recruit()?;
        Ok(std::mem::replace(&mut self.members[place], next).number)
    }

    fn recruit(&mut self) -> io::Result<Member> {
        self.started += 1;
        let number = self.started;
        let mut command = (self.make)(number)?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).process_group(self.group);
        Ok(Member { number, process: command.spawn()?, started: Instant::now() })
    }

    fn signal(&mut self, place: usize, signal: Signal) -> io::Result<()> {
        let process = &mut self.members[place].process;
        // One that has ended has no number any more: another process may have it.
        if process.try_wait()?.is_some() {
            return Ok(());
        }
        let pid = Pid::from_raw(process.id().cast_signed()).ok_or(io::ErrorKind::NotFound)?;
        Ok(kill_process(pid, signal)?)
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        for member in &mut self.members {
            let _ = member.process.kill().and_then(|()| member.process.wait());
        }
    }
}

/// Waits until a process has ended; kills it if that takes too long. Returns whether it ended by itself.
fn end(mut process: Child, grace: Duration) -> bool {
    let start = Instant::now();
    while start.elapsed() < grace {
        match process.try_wait() {
            Ok(None) => std::thread::sleep(LOOK),
            Ok(Some(_)) => return true,
            Err(_) => break,
        }
    }
    let _ = process.kill().and_then(|()| process.wait());
    false
}
