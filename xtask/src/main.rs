//! Every chore of this repository. `cargo xtask test` is what CI runs.

mod install;
mod process;
mod servers;
mod steps;
mod style;

use anyhow::{Result, bail};
use install::Tools;
use process::{cargo, run};
use servers::Servers;
use std::{path::Path, process::ExitCode};
use steps::Steps;

const HELP: &str = "\
Every chore of this repository.

Usage: cargo xtask <COMMAND>

Commands:
  test [-- ARGS]  Check and test everything, on private servers that are installed if they are missing;
                  with ARGS: only `cargo test ARGS`, on the same servers
  servers         Start the servers of the tests and print how to reach them, until Ctrl-C
  lint            Formatting, clippy, and cargo-deny if it is installed
  style           The rules of the source that no other tool knows
  help            This text

Examples:
  cargo xtask test
  cargo xtask test -- -p tidegate-postgres
  cargo xtask test -- -p tidegate-core retry -- --nocapture
  cargo xtask servers
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match process::watch_signals().and_then(|()| dispatch(&args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            // 130 is what a shell reports for a command that Ctrl-C ended.
            ExitCode::from(if process::interrupted() { 130 } else { 1 })
        }
    }
}

fn dispatch(args: &[String]) -> Result<()> {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        [] | ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            Ok(())
        }
        ["test"] | ["test", "--"] => Steps::follow(test_everything),
        ["test", "--", selection @ ..] => Steps::follow(|steps| test_selection(steps, selection)),
        ["servers"] => serve(),
        ["lint"] => Steps::follow(lint),
        ["style"] => Steps::follow(check_style),
        ["test", ..] => {
            bail!("arguments for cargo test go after `--`: cargo xtask test -- -p NAME")
        }
        _ => bail!("unknown command `{}`; `cargo xtask help` lists them", args.join(" ")),
    }
}

fn test_everything(steps: &mut Steps) -> Result<()> {
    let tools = steps.run("tools", install::find_or_install)?;
    check_style(steps)?;
    check_format_and_clippy(steps)?;
    let servers = steps.run("servers", || Servers::start(&tools))?;
    steps.run("tests", || cargo_test(&tools, &servers, &["--workspace"]))
}

fn test_selection(steps: &mut Steps, selection: &[&str]) -> Result<()> {
    let tools = steps.run("tools", install::find_or_install)?;
    let servers = steps.run("servers", || Servers::start(&tools))?;
    // A bare test name means that test wherever it is, not in the default member only.
    let everywhere = if names_a_package(selection) { None } else { Some("--workspace") };
    let args: Vec<&str> = everywhere.into_iter().chain(selection.iter().copied()).collect();
    steps.run("tests", || cargo_test(&tools, &servers, &args))
}

fn names_a_package(selection: &[&str]) -> bool {
    let for_cargo = selection.iter().take_while(|arg| **arg != "--");
    for_cargo.into_iter().any(|arg| {
        arg.starts_with("-p")
            || ["--package", "--workspace", "--manifest-path"].iter().any(|o| arg.starts_with(o))
    })
}

fn cargo_test(tools: &Tools, servers: &Servers, args: &[&str]) -> Result<()> {
    // Always the same features: with others, what they share would be built again.
    let always = ["test", "--locked", "--all-features"];
    let environment = servers.environment().into_iter().chain(tools.environment());
    run(cargo().args(always).args(args).envs(environment))
}

fn serve() -> Result<()> {
    let tools = install::find_or_install()?;
    let servers = Servers::start(&tools)?;
    for (name, value) in servers.environment().into_iter().chain(tools.environment()) {
        println!("export {name}={value}");
    }
    eprintln!("servers are up; logs are in {}; Ctrl-C stops them", servers.directory().display());
    process::wait_for_signal();
    Ok(())
}

fn lint(steps: &mut Steps) -> Result<()> {
    check_format_and_clippy(steps)?;
    if process::find_on_path("cargo-deny").is_none() {
        eprintln!("deny skipped: cargo-deny is not installed; `cargo install cargo-deny --locked`");
        return Ok(());
    }
    steps.run("deny", || run(cargo().args(["deny", "check", "bans", "licenses", "sources"])))
}

fn check_format_and_clippy(steps: &mut Steps) -> Result<()> {
    install::components()?;
    steps.run("format", || run(cargo().args(["fmt", "--all", "--check"])))?;
    steps.run("clippy", || {
        let scope = ["--workspace", "--all-targets", "--all-features", "--locked"];
        run(cargo().arg("clippy").args(scope).args(["--", "-D", "warnings"]))
    })
}

fn check_style(steps: &mut Steps) -> Result<()> {
    steps.run("style", || style::check(root()))
}

/// The directory of the workspace.
fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}
