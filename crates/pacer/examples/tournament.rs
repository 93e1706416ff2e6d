//! Draws services and shows how close a policy comes to the ideal on them:
//! `tournament [--services N] [--seed S] [--family six|wide] [--policy P] [--threads N] [--worst DIR]`.

use std::{env, process::ExitCode, thread};
use tidegate_pacer::scenario::{
    AnyPolicy,
    tournament::{Family, Figures, Played, Tournament},
};

const USAGE: &str = "usage: tournament [--services N] [--seed S] [--family six|wide] \
    [--policy full|seed|fixed:N|vector|gradient2|vegas|bound:a|bound:b] [--threads N] [--each]";

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
    let mut policy = AnyPolicy::COMPARED[0];
    let mut threads = thread::available_parallelism()?.get();
    let mut each = false;
    let mut args = env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(USAGE);
        match arg.as_str() {
            "--services" => tournament.services = value()?.parse()?,
            "--seed" => tournament.seed = value()?.parse()?,
            "--family" => tournament.family = value()?.parse()?,
            "--policy" => policy = value()?.parse()?,
            "--threads" => threads = value()?.parse()?,
            "--each" => each = true,
            _ => return Err(USAGE.into()),
        }
    }
    let mut played = tournament.play(policy, threads);
    println!(
        "{:30} {:>6} {:>6} {:>6} {:>6} {:>6}",
        policy.to_string(),
        "median",
        "p10",
        "worst",
        "lost",
        "ended"
    );
    for kind in tournament.family.kinds() {
        line(kind.describes(), played.iter().filter(|one| one.kind == *kind));
    }
    line("without latency", played.iter().filter(|one| !one.latency));
    line("with latency", played.iter().filter(|one| one.latency));
    line("all", &played);
    played.sort_by(|one, other| one.efficiency.total_cmp(&other.efficiency));
    let shown = if each { played.len() } else { 10 };
    for one in played.iter().take(shown) {
        println!(
            "{:4} {:15} {:.3} lost {:.3}",
            one.number,
            one.kind.to_string(),
            one.efficiency,
            one.lost
        );
    }
    Ok(())
}

fn line<'a>(name: &str, played: impl IntoIterator<Item = &'a Played>) {
    let Figures { services, median, worst_tenth, worst, lost_p90, unfinished } =
        Figures::of(played);
    if services > 0 {
        let lost = 100.0 * lost_p90;
        let ended = services - unfinished;
        println!(
            "{name:30} {median:6.3} {worst_tenth:6.3} {worst:6.3} {lost:5.1}% {ended}/{services}"
        );
    }
}
