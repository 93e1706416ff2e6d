//! The outbox in the cloud: DynamoDB, in the table that Brighter's outbox has.
//!
//! Messages are read by state ([`StateOutbox`]). What Brighter's applications wrote is relayed as it is, and what
//! Tidegate writes is read by Brighter's own sweeper. What Tidegate must remember besides (who relays what, what
//! failed and why) is in a side table.
//!
//! | module | what it does |
//! |---|---|
//! | `item`, `shard`, `ticks` | messages as Brighter's table has them; pure |
//! | `tables` | the tables and their indexes: made, checked, upgraded |
//! | `leases`, `share` | who has which lanes |
//! | `read` | finds messages that are outstanding, by scan or in order by query |
//! | `aside`, `settle` | marks what is done, and keeps what is not |
//! | `publish` | writes messages, also into a caller's transaction |
//! | `inspect`, `steer`, `retain` | for people |
//! | `client`, `batch`, `usage` | pace, deadlines, and what was used |

mod address;
mod aside;
mod batch;
mod client;
mod error;
mod inspect;
mod item;
mod leases;
mod publish;
mod read;
mod retain;
mod settle;
mod shard;
mod share;
mod steer;
mod tables;
mod ticks;
mod transport;
mod trouble;
mod usage;

pub use address::{Address, Billing, Indexes, is_address};
pub use aws_sdk_dynamodb as sdk;
pub use batch::Missing;
pub use publish::{already_published, check_transaction};
pub use tables::{FoundTables, script, script_unseen};
pub use ticks::Ticks;
pub use transport::Transport;
pub use usage::{Cost, Usage};

use aside::Loading;
use async_trait::async_trait;
use aws_config::SdkConfig;
use client::Client;
use error::Failure;
use leases::{Tenure, Watch};
use read::Finder;
use retain::SealedSets;
use settle::Sizes;
use std::{
    collections::BTreeSet,
    sync::{Mutex, MutexGuard},
    time::{Duration, SystemTime},
};
use tables::Layout;
use tidegate_core::{
    StoreError,
    outbox::{
        GiveBack, Habits, Ids, KeyOrder, Lines, Listing, OutboxCapabilities, Position, Publishing,
        Reads, Relays, Settled, Share, Shared, StateOutbox, TroubleNote, WhoseClock,
        by_state::{AsideBook, Marks, Pending, PendingRequest, ReadMessages},
    },
};

/// A table of messages, as an outbox.
pub struct DynamoDb {
    client: Client,
    read: ReadMessages,
    relay: tokio::sync::Mutex<RelayState>,
    /// What waits in the lanes of this relay.
    book: Mutex<AsideBook>,
    /// Held while what was set aside is written, or replaced by what was read.
    writing: tokio::sync::Mutex<()>,
    /// What was written since what waits began to be read again.
    written_since: Mutex<Option<BTreeSet<Position>>>,
    finder: Mutex<Finder>,
    /// What this relay surely holds.
    tenure: Mutex<Tenure>,
    sizes: Mutex<Sizes>,
    /// The table as it was found to be.
    layout: tokio::sync::OnceCell<Layout>,
    sealed: Mutex<SealedSets>,
    publisher: publish::Publisher,
}

/// What this process knows as a relay.
#[derive(Default)]
struct RelayState {
    /// What it wrote last to say that it lives.
    beat: Option<i64>,
    watch: Watch,
    /// Lanes that were leased, while what waits there is read.
    loading: Option<Loading>,
    /// What waits is being read again, as people had decided when that began.
    reloading: Option<(Loading, i64)>,
    /// How often people had decided about the dead, when it was looked last.
    steered: Option<i64>,
}

/// Requests cost money: an idle relay asks every now and then.
const HABITS: Habits =
    Habits { poll: Duration::from_millis(2_700), lease: Duration::from_secs(30) };

/// DynamoDB's own bound on a transaction.
const MAX_ACTIONS: usize = 100;

impl DynamoDb {
    /// Connects. Finds region and credentials as the AWS SDK does; sends nothing yet.
    pub async fn connect(address: &str) -> Result<Self, StoreError> {
        Ok(Self::of(Client::connect(Address::parse(address)?).await?))
    }

    /// The same with the region and the credentials of an application's own configuration.
    pub fn configured(address: &str, config: SdkConfig) -> Result<Self, StoreError> {
        Ok(Self::of(Client::configured(Address::parse(address)?, config)?))
    }

    fn of(client: Client) -> Self {
        Self {
            client,
            read: ReadMessages::default(),
            relay: Default::default(),
            book: Mutex::default(),
            writing: Default::default(),
            written_since: Mutex::default(),
            finder: Mutex::default(),
            tenure: Mutex::default(),
            sizes: Mutex::default(),
            layout: Default::default(),
            sealed: Mutex::default(),
            publisher: Default::default(),
        }
    }

    /// What the address says.
    pub fn address(&self) -> &Address {
        &self.client.address
    }

    /// The client of the AWS SDK that it uses: for a caller's own transactions.
    pub fn sdk(&self) -> sdk::Client {
        self.client.sdk.clone()
    }

    /// What was asked of DynamoDB so far, and what that cost.
    pub fn usage(&self) -> Usage {
        self.client.usage()
    }

    /// What people should know when a relay starts, a sentence each.
    pub fn remarks(&self) -> Vec<String> {
        let age = self.address().min_age.as_secs_f64();
        let mut remarks = self.state_capabilities().remarks();
        remarks.extend([
            format!("messages of the last {age} s wait, because indexes lag behind"),
            "applications that call `Post` or `ClearOutbox` send their messages themselves, and Brighter's sweeper \
             sends what is left: let applications deposit without clearing and stop the sweeper, or set `min_age` in \
             the address to more than they need"
                .to_owned(),
        ]);
        remarks
    }

    /// This machine's time since 1970: DynamoDB has no clock that could be asked.
    fn now(&self) -> Duration {
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
    }

    fn book(&self) -> MutexGuard<'_, AsideBook> {
        self.book.lock().expect("nothing panics while it holds the lock")
    }

    fn finder(&self) -> MutexGuard<'_, Finder> {
        self.finder.lock().expect("nothing panics while it holds the lock")
    }

    fn written_since(&self) -> MutexGuard<'_, Option<BTreeSet<Position>>> {
        self.written_since.lock().expect("nothing panics while it holds the lock")
    }

    fn tenure(&self) -> MutexGuard<'_, Tenure> {
        self.tenure.lock().expect("nothing panics while it holds the lock")
    }

    fn sizes(&self) -> MutexGuard<'_, Sizes> {
        self.sizes.lock().expect("nothing panics while it holds the lock")
    }

    /// The table as it is. Refuses one that no relay can use. Looks at it once.
    async fn layout(&self) -> Result<&Layout, StoreError> {
        const OPERATION: &str = "look at the table";
        let look = async || {
            let found = self.client.layout(&self.address().table).await?;
            let missing = || Failure::Missing("there is no such table".to_owned());
            let layout = found.ok_or_else(|| missing().into_error(OPERATION))?;
            self.client.check(&layout)?;
            Ok(layout)
        };
        self.layout.get_or_try_init(look).await
    }
}

/// What a table at this address can do, without a request.
pub fn capabilities(address: &Address) -> OutboxCapabilities {
    OutboxCapabilities {
        name: "dynamodb",
        reads: Reads::ByState,
        order: KeyOrder::If(
            format!(
                "they are of one topic, and the clocks of their publishers and the lag of indexes differ by less than \
                 {} s (`min_age`)",
                address.min_age.as_secs_f64()
            )
            .into(),
        ),
        clock: WhoseClock::Relay,
        relays: Relays::Many,
        largest_transaction: Some(MAX_ACTIONS),
        publishing: Some(Publishing {
            largest_payload: item::LARGEST_PAYLOAD,
            adds_headers: true,
            counted: publish::COUNTED,
        }),
        lines: Lines::InRelay,
        ids: Ids::Published,
        listing: Listing::ByPlace,
        retention: true,
        batches: false,
        habits: HABITS,
    }
}

#[async_trait]
impl StateOutbox for DynamoDb {
    fn state_capabilities(&self) -> OutboxCapabilities {
        capabilities(self.address())
    }

    fn read_messages(&self) -> &ReadMessages {
        &self.read
    }

    async fn share_state(&self, request: Share) -> Result<Shared, StoreError> {
        self.layout().await?;
        self.share(&request).await
    }

    async fn read_pending(&self, request: PendingRequest) -> Result<Pending, StoreError> {
        self.pending(&request).await
    }

    async fn mark(&self, marks: Marks) -> Result<Settled, StoreError> {
        self.settle(marks).await
    }

    async fn give_back_state(&self, request: GiveBack) -> Result<(), StoreError> {
        self.give_back(&request).await
    }

    async fn note_troubled(&self, note: TroubleNote) -> Result<(), StoreError> {
        self.note(&note).await
    }
}
