//! Draws services and shows how close policies come to the ideal on them: `tournament [--services N]
//! [--seed S] [--family six|wide] [--policy P]… [--threads N] [--json] [--each] [--worst DIR]`.

use std::{env, fs, process::ExitCode, thread};
use tidegate_pacer::scenario::{
    AnyPolicy,
    tournament::{Family, Tournament},
};

const USAGE: &str = "usage: tournament [--services N] [--seed S] [--family six|wide] [--policy \
    full|seed|fixed:N|vector|gradient2|vegas|bound:a|bound:b]… [--threads N] [--json] [--each] \
    [--worst DIR]";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let mut tournament = Tournament { family: Family::Six, services: 600, seed: 1 };
    let mut policies: Vec<AnyPolicy> = Vec::new();
    let mut threads = thread::available_parallelism()?.get();
    let (mut json, mut each, mut worst) = (false, false, None);
    let mut args = env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(USAGE);
        match arg.as_str() {
            "--services" => tournament.services = value()?.parse()?,
            "--seed" => tournament.seed = value()?.parse()?,
            "--family" => tournament.family = value()?.parse()?,
            "--policy" => policies.push(value()?.parse()?),
            "--threads" => threads = value()?.parse()?,
            "--json" => json = true,
            "--each" => each = true,
            "--worst" => worst = Some(value()?),
            _ => return Err(USAGE.into()),
        }
    }
    if policies.is_empty() {
        policies.push("full".parse()?);
    }
    let results = tournament.run(&policies, threads);
    if json {
        println!("{}", serde_json::to_string_pretty(&results)?);
    } else {
        print!("{results}");
    }
    for one in results.policies[0].played.iter().filter(|_| each) {
        println!("{}", serde_json::to_string(one)?);
    }
    for (name, drawn) in results.worst_files().filter(|_| worst.is_some()) {
        let folder = worst.as_deref().unwrap_or_default();
        fs::create_dir_all(folder)?;
        fs::write(format!("{folder}/{name}"), drawn.scenario.to_string())?;
    }
    Ok(())
}
