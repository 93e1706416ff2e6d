//! Runs a scenario file: `scenario FILE.toml [--json] [--log] [--policy P] [--pacers N]`.

use std::{env, fs, process::ExitCode};
use tidegate_pacer::scenario::{AnyPolicy, Patience, Scenario};

const USAGE: &str = "usage: scenario FILE.toml [--json] [--log] [--pacers N] \
    [--policy full|seed|fixed:N|vector|gradient2|vegas|bound:a|bound:b]";

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// Returns whether all that is expected holds.
fn run() -> Result<bool, Box<dyn std::error::Error>> {
    let (mut file, mut json, mut log, mut policy, mut pacers) = (None, false, false, None, None);
    let mut args = env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--json" => json = true,
            "--log" => log = true,
            "--policy" => policy = Some(args.next().ok_or(USAGE)?.parse()?),
            "--pacers" => pacers = Some(args.next().ok_or(USAGE)?.parse()?),
            flag if flag.starts_with('-') => return Err(USAGE.into()),
            path => file = Some(path.to_owned()),
        }
    }
    let file = file.ok_or(USAGE)?;
    let text = fs::read_to_string(&file).map_err(|error| format!("cannot read {file}: {error}"))?;
    let mut scenario: Scenario = text.parse().map_err(|error| format!("{file}: {error}"))?;
    let policy = policy.unwrap_or(AnyPolicy::Pacer(scenario.pacer.policy));
    scenario.pacers = pacers.unwrap_or(scenario.pacers);
    let report = scenario.run_as(policy, Patience::default());
    if json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        println!("{}\n{report}", scenario.name);
    }
    for decision in report.decisions.iter().filter(|_| log) {
        eprintln!("{decision}");
    }
    let unmet = scenario.expect.check(&report).err().unwrap_or_default();
    unmet.iter().for_each(|unmet| eprintln!("unmet: {unmet}"));
    Ok(unmet.is_empty())
}
