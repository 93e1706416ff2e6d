//! Where a drill takes place: a store of its own, a directory, and a private server if faults of it are wanted.

use super::report::StoreKind;
use crate::{app::App, args::drill::FaultFlags, bench::Database};
use anyhow::{Context, Result, anyhow, bail};
use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tidegate::{Access, OpenStore, sqlite_file};
use tidegate_drill::{
    Guard,
    history::Moment,
    plan::{Plan, Wishes},
    postgres::{Cluster, Options},
};

/// Commits are acknowledged before they are durable. By itself the server makes them durable as late as it can.
const SETTINGS: &str = "synchronous_commit = off\nwal_writer_delay = 10s\nmax_wal_size = 4GB";

const DEFAULT_CRASH_EVERY: Duration = Duration::from_secs(20);

/// Where a drill takes place.
pub struct Stage {
    pub kind: StoreKind,
    /// The store of the drill.
    pub url: String,
    pub store: OpenStore,
    /// For settings and logs.
    pub directory: PathBuf,
    /// Processes are started in this group, and end with the drill.
    pub group: i32,
    pub plan: Plan,
    /// Moments are counted from here.
    pub start: Instant,
    cluster: Option<Arc<Mutex<Cluster>>>,
    /// On a server that the user named.
    database: Option<Database>,
    _guard: Option<Guard>,
}

/// A private server that is shared by those who disturb it.
#[derive(Clone)]
pub struct SharedCluster(Arc<Mutex<Cluster>>);

impl SharedCluster {
    /// Does something that blocks to the cluster.
    pub async fn change<T: Send + 'static>(
        &self,
        change: impl FnOnce(&mut Cluster) -> T + Send + 'static,
    ) -> Result<T> {
        let cluster = self.0.clone();
        let changed = tokio::task::spawn_blocking(move || change(&mut lock(&cluster)));
        changed.await.context("a step of the drill failed")
    }
}

impl Stage {
    pub async fn set(app: &App, flags: &FaultFlags, processes: u8) -> Result<Self> {
        flags.keep_data.as_deref().map_or(Ok(()), check_empty)?;
        let wishes = wishes(flags, processes);
        let plan = Plan::draw(flags.seed, &wishes);
        if flags.postgres {
            return Self::with_cluster(flags, plan).await;
        }
        let guard = match &flags.keep_data {
            Some(directory) => Guard::keeping(directory),
            None => Guard::temporary(),
        };
        let guard = guard.context("cannot make a directory for the drill")?;
        let (directory, group) = (guard.directory().to_owned(), guard.group());
        let (kind, url, database) = match app.address.url() {
            url if tidegate::is_postgres(url) => {
                let database = Database::create(url, "tidegate_drill").await?;
                (StoreKind::Postgres, database.url.clone(), Some(database))
            }
            _ if app.address.is_default() => (StoreKind::Sqlite, file(&directory), None),
            url => match sqlite_file(url) {
                Some(path) => (StoreKind::Sqlite, new_file(path)?, None),
                None => {
                    bail!("a drill needs a store that processes share: sqlite:FILE or postgres://…")
                }
            },
        };
        let store = tidegate::open(&url, Access::Create).await?;
        let (start, guard) = (Instant::now(), Some(guard));
        let cluster = None;
        Ok(Self {
            kind,
            url,
            store,
            directory,
            group,
            plan,
            start,
            cluster,
            database,
            _guard: guard,
        })
    }

    async fn with_cluster(flags: &FaultFlags, plan: Plan) -> Result<Self> {
        let (programs, directory) = (flags.postgres_bin.clone(), flags.keep_data.clone());
        let with_standby = flags.failovers > 0;
        let started = tokio::task::spawn_blocking(move || {
            let (programs, directory) = (programs.as_deref(), directory.as_deref());
            let mut cluster = Cluster::start(Options { programs, settings: SETTINGS, directory })?;
            // It is copied while it is small.
            if with_standby {
                cluster.add_standby()?;
            }
            Ok::<_, tidegate_drill::postgres::Failed>(cluster)
        });
        let cluster = started.await.context("a step of the drill failed")??;
        let (url, directory) = (cluster.url(), cluster.guard().directory().to_owned());
        let group = cluster.guard().group();
        let store = tidegate::open(&url, Access::Create).await?;
        // The schema is there whatever crashes.
        cluster.query("checkpoint")?;
        let cluster = Some(Arc::new(Mutex::new(cluster)));
        let (kind, start, database) = (StoreKind::PrivatePostgres, Instant::now(), None);
        Ok(Self {
            kind,
            url,
            store,
            directory,
            group,
            plan,
            start,
            cluster,
            database,
            _guard: None,
        })
    }

    pub fn cluster(&self) -> Option<SharedCluster> {
        self.cluster.clone().map(SharedCluster)
    }

    pub fn now(&self) -> Moment {
        moment(self.start)
    }

    /// Removes what a guard does not.
    pub async fn clear(self) -> Result<()> {
        match self.database {
            Some(database) => database.drop().await,
            None => Ok(()),
        }
    }
}

/// The log of a process in the directory of a drill.
pub fn log(directory: &Path, number: u32) -> PathBuf {
    directory.join(format!("process-{number}.log"))
}

pub fn moment(start: Instant) -> Moment {
    start.elapsed().as_micros() as Moment
}

fn wishes(flags: &FaultFlags, processes: u8) -> Wishes {
    let crash_every = match (flags.postgres, flags.crash_every) {
        (false, _) => None,
        (true, Some(every)) => every.0,
        (true, None) => Some(DEFAULT_CRASH_EVERY),
    };
    Wishes {
        duration: Duration::from_secs(flags.seconds.into()),
        processes: processes.into(),
        kill_every: flags.kill_every.0,
        crash_every,
        failovers: flags.failovers,
        lease: flags.lease.0,
    }
}

/// What is in a directory of the user's must not be mixed up with the drill's, nor change its owner.
fn check_empty(directory: &Path) -> Result<()> {
    let mut entries = fs::read_dir(directory).into_iter().flatten();
    if entries.next().is_some() {
        bail!("`{}` is not empty: name a new directory with --keep-data", directory.display());
    }
    Ok(())
}

fn file(directory: &Path) -> String {
    format!("sqlite:{}", directory.join("drill.db").display())
}

/// A file that is not there yet: relays deliver whatever they find, and must not find a user's.
fn new_file(path: &Path) -> Result<String> {
    let shown = path.display();
    // A link that leads nowhere is somebody's, too.
    if path.symlink_metadata().is_ok() {
        bail!("`{shown}` exists: a drill needs a store of its own, name another file");
    }
    let path = std::path::absolute(path).map_err(|error| anyhow!("`{shown}`: {error}"))?;
    Ok(format!("sqlite:{}", path.display()))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
