//! `pace simulate` and `pace tournament`, and what docs/pacing.md says about them.

use crate::{support::Place, world::refused};
use std::{fs, path::Path, process::Command};

const PAGE: &str = include_str!("../../../../docs/pacing.md");

fn blocks(language: &str) -> Vec<&'static str> {
    let begin = format!("```{language}\n");
    let parts: Vec<&str> = PAGE.split(begin.as_str()).skip(1).collect();
    parts.into_iter().filter_map(|rest| rest.split("```").next()).collect()
}

#[test]
fn the_commands_of_the_page_work() {
    let place = Place::new();
    place.write("limits.toml", blocks("toml")[0]);
    let services = copy_services(&place);
    let commands: Vec<&str> = blocks("sh").into_iter().flat_map(str::lines).collect();
    assert!(commands.len() >= 7, "{commands:?}");
    for line in commands {
        let command = place.command(&[]);
        let script =
            line.replacen("tidegate ", &format!("{} ", command.get_program().display()), 1);
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).current_dir(command.get_current_dir().unwrap());
        shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let output = shell.output().unwrap();
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    }
    assert!(fs::read_to_string(place.path("limits.svg")).unwrap().starts_with("<svg"));
    assert_eq!(fs::read_dir(place.path("worst")).unwrap().count(), 10);
    assert_eq!(fs::read_dir(place.path("docs/pacing")).unwrap().count(), 2 * services);
}

/// Copies the page's services to where its commands look for them.
fn copy_services(place: &Place) -> usize {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/pacing");
    fs::create_dir_all(place.path("docs/pacing")).unwrap();
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let services = files.filter(|file| file.path().extension().is_some_and(|end| end == "toml"));
    let copy = |file: fs::DirEntry| {
        let name = Path::new("docs/pacing").join(file.file_name());
        fs::copy(file.path(), place.path(name.to_str().unwrap())).unwrap()
    };
    services.map(copy).filter(|bytes| *bytes > 0).count()
}

#[test]
fn a_tournament_compares_policies_on_the_same_services() {
    let place = Place::new();
    let args = ["pace", "tournament", "--services", "6", "--family", "six"];
    let policies = ["--policy", "vector", "--policy", "fixed:3,seed"];
    let said = place.ok(&[args.as_slice(), &policies].concat());
    insta::assert_snapshot!(said, @r"
    6 services of the family `six`, seed 1
    Shares of the ideal speed; lost: rejected or timed out, nine of ten lose at most this.

    vector                          services median  worst tenth  worst   lost  unfinished         bound:a         bound:b
    rejects above a concurrency            1   0.79         0.79   0.79 20.7 %           0  1.00/1.00/1.00  1.00/1.00/1.00
    drops above a concurrency              1   0.50         0.50   0.50 14.6 %           0  0.97/0.97/0.97  0.96/0.96/0.96
    rejects above a rate                   1   0.17         0.17   0.17  0.0 %           0  0.85/0.85/0.85  0.83/0.83/0.83
    slows down beyond a knee               1   0.91         0.91   0.91  0.0 %           0  0.99/0.99/0.99  0.99/0.99/0.99
    capacity falls, and returns            1   0.79         0.79   0.79  1.8 %           0  0.98/0.98/0.98  0.96/0.96/0.96
    capacity rises                         1   0.83         0.83   0.83 13.6 %           0  1.00/1.00/1.00  1.00/1.00/1.00
    all                                    6   0.79         0.17   0.17 20.7 %           0  0.99/0.85/0.85  0.99/0.83/0.83

    Median/worst tenth
                                        vector    fixed:3       seed    bound:a    bound:b
    rejects above a concurrency      0.79/0.79  0.50/0.50  0.48/0.48  1.00/1.00  1.00/1.00
    drops above a concurrency        0.50/0.50  0.50/0.50  0.55/0.55  0.97/0.97  0.96/0.96
    rejects above a rate             0.17/0.17  0.00/0.00  0.17/0.17  0.85/0.85  0.83/0.83
    slows down beyond a knee         0.91/0.91  0.10/0.10  0.59/0.59  0.99/0.99  0.99/0.99
    capacity falls, and returns      0.79/0.79  0.00/0.00  0.44/0.44  0.98/0.98  0.96/0.96
    capacity rises                   0.83/0.83  0.27/0.27  0.57/0.57  1.00/1.00  1.00/1.00
    all                              0.79/0.17  0.27/0.00  0.55/0.17  0.99/0.85  0.99/0.83
    lost                                20.7 %      0.0 %      4.4 %      0.3 %      0.3 %
    unfinished                               0          2          0          0          0

    vector: in full use again soon after the last change: falls 0 %, rises 100 %
      (soon: 10 s, after rises 15 s, or 50 round trips if that is longer)
    vector: 0 requests sent inside a Retry-After
    vector: behind the best of the others by more than a fifth on 0 of 6 services

    Where vector did worst
           2  rate            0.17    0.0 % lost
           1  drop            0.50   14.6 % lost
           4  falls           0.79    1.8 % lost
           0  defer           0.79   20.7 % lost
           5  rises           0.83   13.6 % lost
           3  knee            0.91    0.0 % lost
    ");
    let json = place.json(&[args.as_slice(), &policies].concat());
    assert_eq!(json["family"], "six");
    assert_eq!(json["policies"].as_array().unwrap().len(), 3);
    assert_eq!(json["policies"][1]["policy"], "fixed:3");
    assert_eq!(json["bounds"][1]["policy"], "bound:b");
    assert_eq!(json["policies"][0]["kinds"][5]["kind"], "rises");
    assert_eq!(json["policies"][0]["all"]["services"], 6);
    assert_eq!(json["worst"].as_array().unwrap().len(), 6);
    let threads = place.json(&[args.as_slice(), &policies, &["--threads", "3"]].concat());
    assert_eq!(json, threads);
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let place = Place::new();
    place.write("five.toml", "name = 'five'\nrequests = 5\n[service]\ndelay = 0.1\n");
    for (args, problem) in [
        (["tournament", "--services", "0"].as_slice(), "1..=100000"),
        (&["tournament", "--policy", "fast"], "vector, gradient2"),
        (&["tournament", "--family", "seven"], "none of six, wide"),
        (&["tournament", "--worst", "five.toml"], "five.toml"),
        (&["simulate", "five.toml", "--policy", "bound"], "bound:a"),
        (&["simulate", "five.toml", "--plot", "no/such.svg"], "cannot write `no/such.svg`"),
        (&["simulate", "five.toml", "--plot", "five.toml"], "is the input"),
    ] {
        refused(&place.tidegate(&[&["pace"], args].concat()), problem);
    }
    assert!(
        place.ok(&["pace", "simulate", "five.toml", "--policy", "vegas"]).contains("5 successes")
    );
}

#[test]
fn a_plot_goes_where_it_is_asked_for() {
    let place = Place::new();
    place.write("five.toml", "name = 'five'\nrequests = 50\n[service]\ndelay = 0.1\n");
    place.ok(&["pace", "simulate", "five.toml", "--plot", "five.svg"]);
    let svg = fs::read_to_string(place.path("five.svg")).unwrap();
    assert!(svg.ends_with("</svg>\n") && svg.contains("five (policy full)"), "{svg}");
}
