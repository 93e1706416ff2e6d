//! A directory and a process group that do not outlive this process, however it ends.

use rustix::process::{Pid, Signal, kill_process_group};
use std::{
    ffi::OsStr,
    io,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
};
use tempfile::TempDir;

/// Waits until its standard input ends, which also happens when this process is killed. Then it ends the processes
/// of its group and removes the directory `$1`, unless that is empty.
///
/// A shell cannot send SIGKILL to its group and go on. So SIGHUP ends what does not handle it, SIGCONT wakes
/// what is stopped so that it ends too, SIGQUIT makes PostgreSQL stop at once, and SIGKILL ends the rest, this shell
/// included, when the directory is gone.
const SCRIPT: &str = r#"
trap '' HUP INT QUIT TERM
cat > /dev/null
kill -HUP 0
kill -CONT 0
kill -QUIT 0
for wait in 1 2 3 4 5 6 7 8 9 10; do
    if [ -n "$1" ]; then rm -rf "$1" 2> /dev/null; fi
    sleep 0.1
    if [ ! -e "$1" ]; then break; fi
done
kill -KILL 0
"#;

/// A directory, and a group that processes can be started in. When this is dropped, and when this process ends
/// without dropping it, the processes of the group are ended and the directory is removed.
#[derive(Debug)]
pub struct Guard {
    directory: PathBuf,
    shell: Child,
    input: Option<ChildStdin>,
}

impl Guard {
    /// A new directory for temporary files. It is readable for other users, as servers may run as one.
    pub fn temporary() -> io::Result<Self> {
        let directory = TempDir::with_prefix("tidegate-")?.keep();
        let removed = directory.as_os_str().to_owned();
        Self::start(directory, &removed)
    }

    /// A directory of the user's. It is created if it does not exist, and it is kept.
    pub fn keeping(directory: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(directory)?;
        Self::start(directory.canonicalize()?, OsStr::new(""))
    }

    fn start(directory: PathBuf, removed: &OsStr) -> io::Result<Self> {
        let mut shell = Command::new("sh");
        shell.args(["-c", SCRIPT, "tidegate-guard"]).arg(removed).process_group(0);
        shell.current_dir("/").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut shell = shell.spawn()?;
        let input = shell.stdin.take();
        Ok(Self { directory, shell, input })
    }

    /// Where files may be put.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The process group: a command that is started with it ends with this guard. A terminal's Ctrl-C does not
    /// reach it.
    pub fn group(&self) -> i32 {
        self.shell.id().cast_signed()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.input.take());
        if self.shell.wait().is_err()
            && let Some(group) = Pid::from_raw(self.group())
        {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}
