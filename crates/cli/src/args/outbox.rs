//! `tidegate publish`, `tidegate relay`, `tidegate outbox`

use crate::units::{self, LeaseTime, Span};
use clap::{Args as Flags, Subcommand};
use std::path::PathBuf;
use tidegate::{MessageId, adopted::Preset, outbox::StuckState};

pub const PUBLISH_EXAMPLES: &str = "\
Examples:
  tidegate publish orders.created '{\"number\": 17}' --key 17
  tidegate publish orders.created --key 17 < order.json
  tidegate publish mails 'Hello' --header 'content-type: text/plain' --delay 5m
  tidegate publish orders.created --lines < orders.ndjson

An application publishes in its own transaction:
  select tidegate.publish('orders.created', '17', '{\"number\": 17}');";

pub const RELAY_EXAMPLES: &str = "\
Examples:
  tidegate relay
  tidegate relay --to stdout --drain
  tidegate relay --drain --give-up-after 5m
  tidegate relay --preset entity-outbox --shadow --store postgres://tide@db/tide
  tidegate relay --config /etc/tidegate.toml --store postgres://tide@db/tide

Where messages go is kept in tidegate.toml:
  [sinks.events]
  kind = \"http\"
  url = \"https://hooks.example.com/{topic}\"
  body = \"cloudevents\"
  [[routes]]
  topic = \"orders.*\"
  sink = \"events\"
  [[topics]]
  topic = \"orders.*\"
  on_dead = \"park\"

Several relays share the work; one that is killed is replaced by the others.";

pub const OUTBOX_EXAMPLES: &str = "\
Examples:
  tidegate outbox status
  tidegate outbox dead
  tidegate outbox show 4711
  tidegate outbox retry --topic orders.created --why 'the receiver was fixed'
  tidegate outbox drop 4711 --why 'a test order'
  tidegate outbox archive sent/ --older-than 7d";

const DROP_EXAMPLES: &str = "\
Examples:
  tidegate outbox drop 4711 --why 'a test order'
  tidegate outbox drop --all --why 'the old shop is closed' --dry-run
  tidegate outbox drop --topic mails --why 'too late' --yes --export mails.ndjson";

/// `tidegate publish`
#[derive(Debug, Flags)]
pub struct PublishArgs {
    /// The topic; routes choose the sink by it
    #[arg(value_parser = units::text)]
    pub topic: String,
    /// What is delivered [default: read from stdin]
    pub payload: Option<String>,
    /// Messages with the same key are delivered in order
    #[arg(long, value_name = "KEY", value_parser = units::text)]
    pub key: Option<String>,
    /// A header, as `name: value`; may be repeated. Without a content-type the payload is JSON
    #[arg(long, value_name = "HEADER", value_parser = units::text)]
    pub header: Vec<String>,
    /// Not delivered before this has passed
    #[arg(long, value_name = "TIME", value_parser = units::positive_span)]
    pub delay: Option<Span>,
    /// Each line of stdin is a message
    #[arg(long, conflicts_with = "payload")]
    pub lines: bool,
}

/// `tidegate relay`
#[derive(Debug, Flags)]
pub struct RelayArgs {
    /// End when nothing is left that can be delivered
    #[arg(long)]
    pub drain: bool,
    /// End a drain with exit code 3 when nothing could be delivered for so long
    #[arg(long, value_name = "TIME", requires = "drain", value_parser = units::positive_span)]
    pub give_up_after: Option<Span>,
    /// Say so, also in `outbox status`, `doctor` and `pace`, when a sink has put messages off for so long
    /// [default: 1h]
    #[arg(long, value_name = "TIME", env = "TIDEGATE_STALLED_AFTER",
          value_parser = units::positive_span)]
    pub stalled_after: Option<Span>,
    /// Only look: what would be delivered, in which order, and what is in the way. For a table that was
    /// there before
    #[arg(long, conflicts_with_all = ["drain", "to"])]
    pub shadow: bool,
    #[command(flatten)]
    pub table: TableFlags,
    /// Send everything to this sink, whatever the routes say: a name, or `stdout`
    #[arg(long, value_name = "NAME", value_parser = units::text)]
    pub to: Option<String>,
    /// How long until another relay takes over a crashed relay's messages, 1s to 1d
    /// [default: 15s; 30s on DynamoDB]
    #[arg(long, value_name = "TIME", env = "TIDEGATE_LEASE")]
    pub lease: Option<LeaseTime>,
    /// The longest pause between two looks for messages [default: 100ms; 2.7s on DynamoDB]
    #[arg(long, value_name = "TIME", env = "TIDEGATE_POLL", value_parser = units::positive_span)]
    pub poll: Option<Span>,
    /// How long deliveries may go on after Ctrl-C [default: 20s]
    #[arg(long, value_name = "TIME", env = "TIDEGATE_GRACE", value_parser = units::positive_span)]
    pub grace: Option<Span>,
}

/// Which outbox, if not the store's own.
#[derive(Debug, Default, Flags)]
pub struct TableFlags {
    /// Use a table that was there before: entity-outbox, debezium or brighter
    #[arg(long, value_name = "NAME", global = true)]
    pub preset: Option<Preset>,
}

/// `tidegate outbox …`
#[derive(Debug, Flags)]
pub struct OutboxArgs {
    #[command(flatten)]
    pub table: TableFlags,
    #[command(subcommand)]
    pub command: OutboxCommand,
}

/// What `tidegate outbox` can do.
#[derive(Debug, Subcommand)]
pub enum OutboxCommand {
    /// How many messages are outstanding, by topic, and for how long
    #[command(after_help = "Examples:\n  tidegate outbox status\n  tidegate outbox status --json")]
    Status,
    /// Dead messages, grouped by reason
    #[command(after_help = "Examples:\n  tidegate outbox dead\n  tidegate outbox dead --json")]
    Dead,
    /// Messages that were set aside, one by one
    #[command(after_help = "Examples:\n  tidegate outbox list --state retry --limit 10")]
    List {
        /// Only retry, behind, later, unrouted or dead ones
        #[arg(long, value_parser = state)]
        state: Option<StuckState>,
        #[command(flatten)]
        which: WhichFlags,
        /// At most this many
        #[arg(long, value_name = "N", default_value_t = 20)]
        limit: usize,
    },
    /// One message with its payload, whatever became of it
    #[command(
        after_help = "Examples:\n  tidegate outbox show 4711\n  tidegate outbox show 4711 --json | jq .payload"
    )]
    Show {
        /// Which message
        id: MessageId,
    },
    /// Make dead messages due again
    #[command(
        after_help = "Examples:\n  tidegate outbox retry 4711\n  tidegate outbox retry --sink crm --why 'it is back'"
    )]
    Retry(SteerArgs),
    /// Remove dead messages for good
    #[command(after_help = DROP_EXAMPLES)]
    Drop(DropArgs),
    /// Who retried and dropped what, newest first
    Audit {
        /// At most this many
        #[arg(long, value_name = "N", default_value_t = 20)]
        limit: usize,
    },
    /// Refuse new messages while too many are outstanding
    #[command(after_help = "Examples:\n  tidegate outbox limit 1M\n  tidegate outbox limit off")]
    Limit {
        /// So many, or `off`
        most: String,
    },
    /// Write messages that were sent to compressed files, and remove them
    #[command(
        after_help = "Examples:\n  tidegate outbox archive sent/ --older-than 7d\n  zstdcat sent/*.ndjson.zst | jq .topic"
    )]
    Archive {
        /// Where to
        directory: PathBuf,
        /// Only messages that were published longer ago
        #[arg(long, value_name = "TIME", default_value = "0s")]
        older_than: Span,
    },
    /// Remove messages that were sent
    #[command(after_help = "Examples:\n  tidegate outbox purge --older-than 7d")]
    Purge {
        /// Only messages that were published longer ago
        #[arg(long, value_name = "TIME")]
        older_than: Span,
    },
}

/// Which of the messages that were set aside.
#[derive(Clone, Debug, Default, Flags)]
pub struct WhichFlags {
    /// Only on this topic
    #[arg(long, value_name = "TOPIC", value_parser = units::text)]
    pub topic: Option<String>,
    /// Only for this sink
    #[arg(long, value_name = "NAME", value_parser = units::text)]
    pub sink: Option<String>,
    /// Only those whose reason contains this
    #[arg(long, value_name = "TEXT", value_parser = units::text)]
    pub reason: Option<String>,
}

/// `tidegate outbox drop`
#[derive(Debug, Flags)]
pub struct DropArgs {
    /// Which messages
    #[arg(value_name = "ID")]
    pub ids: Vec<MessageId>,
    #[command(flatten)]
    pub which: WhichFlags,
    /// All dead messages
    #[arg(long, conflicts_with_all = ["ids", "topic", "sink", "reason"])]
    pub all: bool,
    /// Kept in the audit log
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    pub why: String,
    /// Only say which messages would be dropped
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask; needed where there is no terminal, unless messages are named
    #[arg(long)]
    pub yes: bool,
    /// Where a copy of the messages goes, as lines of JSON [default: dropped-TIME-PROCESS.ndjson]
    #[arg(long, value_name = "FILE")]
    pub export: Option<PathBuf>,
    /// Keep no copy
    #[arg(long, conflicts_with = "export")]
    pub discard: bool,
}

/// `tidegate outbox retry`
#[derive(Debug, Flags)]
pub struct SteerArgs {
    /// Which messages
    #[arg(value_name = "ID")]
    pub ids: Vec<MessageId>,
    #[command(flatten)]
    pub which: WhichFlags,
    /// All dead messages
    #[arg(long, conflicts_with_all = ["ids", "topic", "sink", "reason"])]
    pub all: bool,
    /// Kept in the audit log
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    pub why: Option<String>,
}

fn reason(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("say why: it is kept in the audit log".to_owned()),
        why => Ok(why.to_owned()),
    }
}

fn state(word: &str) -> Result<StuckState, String> {
    StuckState::parse(word)
        .ok_or_else(|| format!("`{word}` is none of retry, behind, later, unrouted, dead"))
}
