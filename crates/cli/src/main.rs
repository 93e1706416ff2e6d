//! The command line: thin. Parses, reads the environment, calls one command, sets the exit code.

mod app;
mod args;
mod bench;
mod commands;
mod config;
mod drill;
mod exit;
mod out;
mod outbox;
mod panics;
mod replaced;
mod show;
mod signals;
mod sinks;
mod snapshot;
mod store;
mod suggest;
mod units;
mod who;

use anyhow::{Context, Result};
use app::App;
use args::{Args, Command};
use exit::Exit;
use std::process::ExitCode;

fn main() -> ExitCode {
    panics::keep_those_of_runs_quiet();
    let outcome = start(args::parse());
    tidegate::workloads::exec::end_all();
    exit::code(outcome)
}

fn start(args: Args) -> Result<Exit> {
    let app = App::new(args.global, &args.command)?;
    // The engine's loop and the progress display must not wait for each other.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(dispatch(&app, args.command))
}

async fn dispatch(app: &App, command: Command) -> Result<Exit> {
    match command {
        Command::Run(args) => commands::run::run(app, args).await,
        Command::Submit(args) => commands::submit::run(app, args).await,
        Command::Worker(args) => commands::worker::run(app, args).await,
        Command::Batch { command } => commands::batch::run(app, command).await,
        Command::Workload { command } => commands::workload::run(app, command),
        Command::Load(args) => commands::load::run(app, *args).await,
        Command::Pace(args) => commands::pace::run(app, args).await,
        Command::Drill { command } => commands::drill::run(app, command).await,
        Command::Publish(args) => commands::publish::run(app, args).await,
        Command::Relay(args) => commands::relay::run(app, args).await,
        Command::Outbox(args) => commands::outbox::run(app, args).await,
        Command::Check(table) => commands::check::run(app, table.preset).await,
        Command::Doctor(table) => commands::doctor::run(app, table.preset).await,
        Command::Migrate(args) => commands::migrate::run(app, args).await,
        Command::Bench(args) => {
            bench::run(args, app.address.url(), app.json).await.map(|()| Exit::Done)
        }
        Command::Completions { shell } => commands::completions::run(shell),
    }
}
