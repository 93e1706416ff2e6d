//! Which program a command means.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// A command that cannot be a workload.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExecError {
    /// A quote is open at its end.
    #[error("cannot split the command `{0}` into words: a quote is not closed")]
    Unclosed(String),
    /// There is no word in it.
    #[error("the command is empty: name a program")]
    Empty,
    /// Nothing that can be started has its name.
    #[error("cannot find the program `{program}`: looked for an executable file {searched}")]
    NotFound {
        /// The command's first word.
        program: String,
        /// Where it was looked for.
        searched: String,
    },
}

/// A program and its arguments.
#[derive(Clone, Debug)]
pub struct Program {
    path: PathBuf,
    args: Vec<String>,
}

impl Program {
    /// Splits a command and finds its program.
    pub fn find(command: &str) -> Result<Self, ExecError> {
        let words = shlex::split(command).ok_or_else(|| ExecError::Unclosed(command.to_owned()))?;
        let mut words = words.into_iter();
        let name = words.next().filter(|name| !name.is_empty()).ok_or(ExecError::Empty)?;
        Ok(Self { path: locate(&name)?, args: words.collect() })
    }

    /// Its name, for people.
    pub fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// What starts it with all its streams piped.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.args(&self.args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // In a group of its own it outlives the terminal's Ctrl-C, so that runs in flight can
        // finish, and all that it started can be ended with it.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command
    }
}

fn locate(name: &str) -> Result<PathBuf, ExecError> {
    let not_found = |searched| ExecError::NotFound { program: name.to_owned(), searched };
    if Path::new(name).components().count() > 1 {
        let path = PathBuf::from(name);
        return if is_executable(&path) { Ok(path) } else { Err(not_found("there".to_owned())) };
    }
    let path: OsString = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|path| is_executable(path))
        .ok_or_else(|| not_found(format!("in PATH, {}", path.display())))
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(path: &Path) -> bool {
    path.is_file()
}
