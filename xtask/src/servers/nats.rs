//! NATS with JetStream, and a second account without.

use super::{daemon::Daemon, free_port};
use anyhow::{Context, Result};
use std::{fs, path::Path, time::Duration};
use tidegate_drill::postgres::User;

/// It starts within milliseconds; more is a fault.
const START_DEADLINE: Duration = Duration::from_secs(10);

/// A running server. It is stopped when this is dropped.
pub struct Nats(Daemon);

impl Nats {
    /// Starts a server below `directory`; it accepts connections when this returns.
    pub fn start(program: &Path, directory: &Path, user: User) -> Result<Self> {
        let port = free_port()?;
        let home = directory.join("nats");
        let (config, own) = (home.join("nats.conf"), home.join("nats-server"));
        // The program may be below a home directory that the servers' user may not enter.
        fs::create_dir(&home)
            .and_then(|()| fs::write(&config, settings(port, &home)))
            .and_then(|()| fs::copy(program, &own))
            .context("could not configure NATS")?;
        user.own(&home)?;
        let mut command = user.command(&own, &home);
        command.arg("-c").arg(&config);
        let mut server = Daemon::launch("nats", &mut command, directory, port)?;
        server.await_listening(START_DEADLINE)?;
        Ok(Self(server))
    }

    pub fn port(&self) -> u16 {
        self.0.port()
    }
}

/// Whoever brings no credentials is `tidegate`. Tests of credentials know the passwords.
fn settings(port: u16, home: &Path) -> String {
    format!(
        "listen: 127.0.0.1:{port}\n\
         jetstream {{ store_dir: \"{}\" }}\n\
         accounts {{\n\
         main {{ jetstream: enabled, users: [\n\
         {{ user: tidegate, password: tidegate }}\n\
         {{ user: narrow, password: narrow, permissions: {{ publish: [\"allowed.>\"] }} }}\n\
         ] }}\n\
         bare {{ users: [{{ user: bare, password: bare }}] }}\n\
         }}\n\
         no_auth_user: tidegate\n",
        home.join("store").display()
    )
}
