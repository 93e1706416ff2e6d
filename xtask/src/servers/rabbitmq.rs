//! RabbitMQ, with a small limit for messages, so that tests can exceed it.
//!
//! Erlang's nodes find each other by epmd, which RabbitMQ would start as a daemon that outlives it.
//! So it finds one of ours, which ends with it.

use super::{daemon::Daemon, free_port};
use crate::install::Tools;
use anyhow::{Context, Result};
use std::{fs, path::Path, process::Command, time::Duration};
use tidegate_drill::postgres::User;

/// It starts within ten seconds on two idle cores, and later on busy ones.
const START_DEADLINE: Duration = Duration::from_secs(120);

/// A server, running or about to. It is stopped when this is dropped.
pub struct Rabbitmq {
    server: Daemon,
    _epmd: Daemon,
}

impl Rabbitmq {
    /// Starts a server below `directory`.
    pub fn launch(tools: &Tools, directory: &Path, user: User) -> Result<Self> {
        let (port, epmd_port) = (free_port()?, free_port()?);
        let home = directory.join("rabbitmq");
        fs::create_dir(&home)
            .and_then(|()| fs::write(home.join("rabbitmq.conf"), settings(port)))
            .and_then(|()| fs::write(home.join("plugins"), "[].\n"))
            .context("could not configure RabbitMQ")?;
        user.own(&home)?;
        let mut epmd = user.command(&tools.epmd, &home);
        find_each_other(&mut epmd, epmd_port);
        let epmd = Daemon::launch("epmd", &mut epmd, directory, epmd_port)?;
        let mut server = user.command(&tools.rabbitmq, &home);
        find_each_other(&mut server, epmd_port);
        keep_to(&mut server, &home, free_port()?);
        let server = Daemon::launch("rabbitmq", &mut server, directory, port)?;
        Ok(Self { server, _epmd: epmd })
    }

    /// Returns when it accepts connections.
    pub fn await_listening(&mut self) -> Result<()> {
        self.server.await_listening(START_DEADLINE)
    }

    pub fn port(&self) -> u16 {
        self.server.port()
    }
}

fn find_each_other(command: &mut Command, port: u16) {
    command.env("ERL_EPMD_PORT", port.to_string()).env("ERL_EPMD_ADDRESS", "127.0.0.1");
}

/// Everything that it would read or write elsewhere on the machine is in `home`.
fn keep_to(command: &mut Command, home: &Path, node_port: u16) {
    command
        // The cookie that nodes know each other by is in the home directory.
        .env("HOME", home)
        .env("RABBITMQ_NODENAME", "tidegate@localhost")
        .env("RABBITMQ_DIST_PORT", node_port.to_string())
        .env("RABBITMQ_MNESIA_BASE", home.join("mnesia"))
        .env("RABBITMQ_LOG_BASE", home.join("log"))
        .env("RABBITMQ_CONFIG_FILE", home.join("rabbitmq.conf"))
        .env("RABBITMQ_CONF_ENV_FILE", home.join("none"))
        .env("RABBITMQ_ENABLED_PLUGINS_FILE", home.join("plugins"))
        // Without this, a shell stands between us and the process to kill.
        .env("RABBITMQ_ALLOW_INPUT", "1")
        .env(
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS",
            "-noinput -kernel inet_dist_use_interface {127,0,0,1} +sbwt none",
        );
}

fn settings(port: u16) -> String {
    format!(
        "listeners.tcp.1 = 127.0.0.1:{port}\n\
         max_message_size = 1048576\n\
         log.file = false\n\
         log.console = true\n\
         log.console.level = warning\n"
    )
}
