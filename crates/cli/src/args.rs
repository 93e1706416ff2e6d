//! What can be typed.

pub mod drill;
pub mod load;
pub mod outbox;
pub mod pace;

use crate::{
    bench::BenchArgs,
    config::MAX_THREADS,
    exit, out,
    units::{self, LeaseTime, Span, Timeout},
};
use clap::{Args as Flags, Parser, Subcommand, error::ErrorKind};
use clap_complete::Shell;
use std::path::{Path, PathBuf};
use tidegate::{BatchId, BatchState, Keep};

const RUN_EXAMPLES: &str = "\
Examples:
  tidegate run bingo --runs 100k
  tidegate run bingo --runs 10M --keep sample:1000 --snapshot event.toml --seed 7
  tidegate run --exec 'python3 pi.py' --runs 1000 --json
  tidegate run bingo --runs 1M --store postgres://tide@db/tide

The same command again resumes a batch that was stopped, and other workers may join in.";

const SUBMIT_EXAMPLES: &str = "\
Examples:
  tidegate submit bingo --runs 10M --store postgres://tide@db/tide
  id=$(tidegate submit noop --runs 1000) && tidegate batch watch $id";

const WORKER_EXAMPLES: &str = "\
Examples:
  tidegate worker --store postgres://tide@db/tide
  tidegate worker --until-idle --threads 8
  tidegate worker --exec 'python3 pi.py' --batch 3";

const BATCH_EXAMPLES: &str = "\
Examples:
  tidegate batch list --state running
  tidegate batch show 3
  tidegate batch results 3 --from 1000 --limit 10 | jq .result
  tidegate batch replay 3#4711
  tidegate batch retry 3 && tidegate worker --until-idle";

const LIST_EXAMPLES: &str = "\
Examples:
  tidegate batch list
  tidegate batch list --state completed_with_failures --limit 5 --json";

const RESULTS_EXAMPLES: &str = "\
Examples:
  tidegate batch results 3 | head
  tidegate batch results 3 --from 1000 --limit 10 | jq .result
  tidegate batch results 3 --dead";

const REPLAY_EXAMPLES: &str = "\
Examples:
  tidegate batch replay 3#4711
  tidegate batch replay 3#4711 --exec 'python3 pi.py'

Exit code 0: identical to what is stored, or nothing is stored; 1: it differs.";

const WORKLOAD_EXAMPLES: &str = "\
Examples:
  tidegate workload list
  tidegate workload show bingo > event.toml";

const MIGRATE_EXAMPLES: &str = "\
Examples:
  tidegate migrate --store postgres://tide@db/tide
  tidegate migrate --print > schema.sql";

const BENCH_EXAMPLES: &str = "\
Examples:
  tidegate bench batch --store postgres://tide@db/tide
  tidegate bench batch --runs 1M --json

Its batches stay in the store, completed or cancelled.";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  tidegate completions bash > ~/.local/share/bash-completion/completions/tidegate
  tidegate completions fish > ~/.config/fish/completions/tidegate.fish";

/// Moves durable work in batches, and loses none of it
#[derive(Debug, Parser)]
#[command(name = "tidegate", version, after_help = exit::CODES)]
pub struct Args {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

/// Flags that every command has.
#[derive(Debug, Flags)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// Where batches and messages are kept: sqlite:FILE, postgres://…, memory:, or messages only:
    /// dynamodb://TABLE [default: sqlite:tidegate.db]
    #[arg(long, global = true, value_name = "URL", env = "TIDEGATE_STORE", hide_env_values = true)]
    pub store: Option<String>,
    /// Settings; flags and TIDEGATE_* override them [default: tidegate.toml, if it is there]
    #[arg(long, global = true, value_name = "FILE", env = "TIDEGATE_CONFIG")]
    pub config: Option<PathBuf>,
    /// Print JSON on stdout
    #[arg(long, global = true)]
    pub json: bool,
    /// Log more; twice for all of it
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Print only errors and results
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Submit a batch and run it here; resume it if it was begun before
    #[command(after_help = RUN_EXAMPLES)]
    Run(RunArgs),
    /// Submit a batch for workers elsewhere; prints its id
    #[command(after_help = SUBMIT_EXAMPLES)]
    Submit(BatchFlags),
    /// Work on the batches of a store
    #[command(after_help = WORKER_EXAMPLES)]
    Worker(WorkerArgs),
    /// Look at batches and steer them
    #[command(after_help = BATCH_EXAMPLES)]
    Batch {
        #[command(subcommand)]
        command: BatchCommand,
    },
    /// See what can be run
    #[command(after_help = WORKLOAD_EXAMPLES)]
    Workload {
        #[command(subcommand)]
        command: WorkloadCommand,
    },
    /// Push a file of records into a service, as fast as it can bear; go on if that was begun before
    #[command(after_help = load::EXAMPLES)]
    Load(Box<load::LoadArgs>),
    /// See how fast loads may go, and why; try the pacer on a simulated service
    #[command(after_help = pace::EXAMPLES)]
    Pace(pace::PaceArgs),
    /// Publish a message to the outbox
    #[command(after_help = outbox::PUBLISH_EXAMPLES)]
    Publish(outbox::PublishArgs),
    /// Deliver the messages of the outbox to the sinks that routes name
    #[command(after_help = outbox::RELAY_EXAMPLES)]
    Relay(outbox::RelayArgs),
    /// Look at the outbox and steer what went wrong
    #[command(after_help = outbox::OUTBOX_EXAMPLES)]
    Outbox(outbox::OutboxArgs),
    /// Check the settings, and reach the store and every sink
    #[command(
        after_help = "Examples:\n  tidegate check\n  tidegate check --config relay.toml --json"
    )]
    Check(outbox::TableFlags),
    /// Look for what is wrong with the store, and say what to do
    #[command(after_help = "Examples:\n  tidegate doctor --store postgres://tide@db/tide")]
    Doctor(outbox::TableFlags),
    /// Bring the schema of a store up to date
    #[command(after_help = MIGRATE_EXAMPLES)]
    Migrate(MigrateArgs),
    /// Measure the speed of a store, of loads into a service that throttles, and of the outbox
    #[command(after_help = BENCH_EXAMPLES)]
    Bench(BenchArgs),
    /// Try things out: relays and workers under faults, a service that throttles
    Drill {
        #[command(subcommand)]
        command: drill::DrillCommand,
    },
    /// Print completions for a shell
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// Which shell
        shell: Shell,
    },
}

impl Command {
    /// The files that it reads by their path.
    pub fn inputs(&self) -> Vec<&Path> {
        let mut files = self.named_inputs();
        files.retain(|file| !self.takes_dash() || !is_stdin(file));
        files
    }

    /// Whether it reads stdin.
    pub fn reads_stdin(&self) -> bool {
        match self {
            Self::Publish(args) => args.payload.is_none(),
            _ => self.takes_dash() && self.named_inputs().into_iter().any(is_stdin),
        }
    }

    /// Whether `-` means stdin to it. To others it is a file like any other.
    fn takes_dash(&self) -> bool {
        matches!(self, Self::Run(_) | Self::Submit(_) | Self::Load(_))
    }

    fn named_inputs(&self) -> Vec<&Path> {
        match self {
            Self::Run(args) => args.batch.snapshot.as_deref().into_iter().collect(),
            Self::Submit(flags) => flags.snapshot.as_deref().into_iter().collect(),
            Self::Load(args) => args.inputs(),
            Self::Pace(args) => args.inputs(),
            Self::Drill { command } => command.inputs(),
            _ => Vec::new(),
        }
    }
}

fn is_stdin(file: &Path) -> bool {
    file == Path::new("-")
}

/// What a batch should be.
#[derive(Debug, Flags)]
pub struct BatchFlags {
    /// What to run: see `tidegate workload list`
    #[arg(required_unless_present = "exec", conflicts_with = "exec")]
    pub workload: Option<String>,
    /// Run a program instead: it gets one line of JSON per run and answers with one
    #[arg(long, value_name = "CMD", value_parser = units::text)]
    pub exec: Option<String>,
    /// How many runs: 100000, 100_000, 100k, 10M or 1e6
    #[arg(long, value_name = "N", value_parser = units::count)]
    pub runs: u64,
    /// Same seed, same bits
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// The input that all runs share, TOML or JSON; `-` for stdin [default: the workload's example]
    #[arg(long, value_name = "FILE")]
    pub snapshot: Option<PathBuf>,
    /// Which results are stored: all, none or sample:N [default: all]
    #[arg(long, env = "TIDEGATE_KEEP")]
    pub keep: Option<Keep>,
    /// How long one run may take, or none [default: 1h]
    #[arg(long, value_name = "TIME", env = "TIDEGATE_TIMEOUT")]
    pub timeout: Option<Timeout>,
    /// After so many failed attempts a run is dead [default: 5]
    #[arg(long, value_name = "N", env = "TIDEGATE_MAX_ATTEMPTS")]
    pub max_attempts: Option<u32>,
}

/// How to work on batches.
#[derive(Debug, Default, Flags)]
#[command(next_help_heading = "How to work")]
pub struct WorkFlags {
    /// Runs carried out at the same time [default: one per core]
    #[arg(long, value_name = "T", env = "TIDEGATE_THREADS",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_THREADS)))]
    pub threads: Option<u32>,
    /// A fixed number of runs per lease [default: tuned to a second of work]
    #[arg(long, value_name = "N", env = "TIDEGATE_RANGE_LENGTH", value_parser = units::positive)]
    pub range_length: Option<u64>,
    /// Settle when so many runs are finished [default: 100000]
    #[arg(long, value_name = "K", env = "TIDEGATE_FLUSH_RUNS", value_parser = units::positive)]
    pub flush_runs: Option<u64>,
    /// … or when the oldest of them has waited so long [default: 250ms]
    #[arg(long, value_name = "TIME", env = "TIDEGATE_FLUSH_AFTER",
          value_parser = units::positive_span)]
    pub flush_after: Option<Span>,
    /// How long until another worker takes over a crashed worker's runs, 1s to 1d [default: 30s]
    #[arg(long, value_name = "TIME", env = "TIDEGATE_LEASE")]
    pub lease: Option<LeaseTime>,
    /// How long runs in progress may go on after Ctrl-C [default: 20s]
    #[arg(long, value_name = "TIME", env = "TIDEGATE_GRACE", value_parser = units::positive_span)]
    pub grace: Option<Span>,
}

/// `tidegate run`
#[derive(Debug, Flags)]
pub struct RunArgs {
    #[command(flatten)]
    pub batch: BatchFlags,
    #[command(flatten)]
    pub work: WorkFlags,
}

/// `tidegate worker`
#[derive(Debug, Flags)]
pub struct WorkerArgs {
    /// End when no running batch is left that this worker knows the workload of
    #[arg(long)]
    pub until_idle: bool,
    /// Work on this batch only
    #[arg(long, value_name = "ID")]
    pub batch: Option<BatchId>,
    /// Also work on batches of this program; may be repeated
    #[arg(long, value_name = "CMD", value_parser = units::text)]
    pub exec: Vec<String>,
    #[command(flatten)]
    pub work: WorkFlags,
}

/// `tidegate batch …`
#[derive(Debug, Subcommand)]
pub enum BatchCommand {
    /// List batches, newest first
    #[command(after_help = LIST_EXAMPLES)]
    List {
        /// Only running, completed, completed_with_failures or cancelled ones
        #[arg(long, value_parser = state)]
        state: Option<BatchState>,
        /// At most this many
        #[arg(long, value_name = "N", default_value_t = 20)]
        limit: usize,
    },
    /// Show a batch: progress, aggregates, failures
    #[command(after_help = "Examples:\n  tidegate batch show 3\n  tidegate batch show 3 --json")]
    Show {
        /// Which batch
        id: BatchId,
    },
    /// Follow a batch until it is closed, whoever works on it
    #[command(after_help = "Examples:\n  tidegate batch watch 3")]
    Watch {
        /// Which batch
        id: BatchId,
    },
    /// Print stored results in the order of their index, one line of JSON each
    #[command(after_help = RESULTS_EXAMPLES)]
    Results {
        /// Which batch
        id: BatchId,
        /// From this index on
        #[arg(long, value_name = "I", default_value = "0", value_parser = units::count)]
        from: u64,
        /// At most this many
        #[arg(long, value_name = "N", value_parser = units::count)]
        limit: Option<u64>,
        /// The runs that are dead instead, each with its attempts and its reason
        #[arg(long)]
        dead: bool,
    },
    /// Run one run again, here, and compare it with what is stored
    #[command(after_help = REPLAY_EXAMPLES)]
    Replay {
        /// Which run: BATCH#INDEX
        #[arg(value_name = "BATCH#INDEX")]
        run: String,
        /// Allow a batch of this program to be replayed
        #[arg(long, value_name = "CMD", value_parser = units::text)]
        exec: Option<String>,
    },
    /// Stop a running batch for good; what is settled stays
    #[command(after_help = "Examples:\n  tidegate batch cancel 3")]
    Cancel {
        /// Which batch
        id: BatchId,
    },
    /// Make the dead runs of a batch due again
    #[command(after_help = "Examples:\n  tidegate batch retry 3 && tidegate worker --until-idle")]
    Retry {
        /// Which batch
        id: BatchId,
    },
}

/// `tidegate workload …`
#[derive(Debug, Subcommand)]
pub enum WorkloadCommand {
    /// List the workloads of this binary
    #[command(after_help = "Examples:\n  tidegate workload list")]
    List,
    /// Print a snapshot to start from
    #[command(after_help = "Examples:\n  tidegate workload show bingo > event.toml")]
    Show {
        /// Which workload
        name: String,
    },
}

/// `tidegate migrate`
#[derive(Debug, Flags)]
pub struct MigrateArgs {
    /// Only print the migrations, for a tool of your own
    #[arg(long)]
    pub print: bool,
    #[command(flatten)]
    pub table: outbox::TableFlags,
}

/// What was typed. What cannot be understood is told in one line.
pub fn parse() -> Args {
    Args::try_parse().unwrap_or_else(|error| {
        if error.exit_code() == 0
            || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
        {
            error.exit();
        }
        out::note(&in_one_line(&error.render().to_string()));
        std::process::exit(error.exit_code());
    })
}

/// Without usage; with what it suggests.
fn in_one_line(error: &str) -> String {
    let mut paragraphs = error
        .split("\n\n")
        .map(|paragraph| paragraph.lines().map(str::trim).collect::<Vec<_>>().join(" "));
    let problem = paragraphs.next().unwrap_or_default();
    let tips = paragraphs.filter_map(|p| Some(format!("; {}", p.strip_prefix("tip: ")?)));
    format!("{problem}{}; see --help", tips.collect::<String>())
}

fn state(word: &str) -> Result<BatchState, String> {
    BatchState::parse(word).ok_or_else(|| {
        format!("`{word}` is none of running, completed, completed_with_failures, cancelled")
    })
}
