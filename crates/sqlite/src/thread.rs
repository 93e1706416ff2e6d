//! The threads that own the connections. SQLite blocks, and a connection belongs to one thread at a
//! time; work is sent to it as a closure and answered over a oneshot.

use crate::errors::Failure;
use rusqlite::Connection;
use std::thread::{Builder, JoinHandle};
use tidegate_core::{Class, Kind, StoreError, limits::STORE_DEADLINE};
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};

/// Work that waits for a thread. Each may hold a settlement's pages: the queue is short, and callers
/// wait for a place in it.
const QUEUE: usize = 16;

type Job = Box<dyn FnOnce(&mut Connection) + Send>;

/// A connection on a thread of its own. Dropping it ends the thread after the work that was sent.
pub(crate) struct Thread {
    jobs: Option<mpsc::Sender<Job>>,
    handle: Option<JoinHandle<()>>,
}

impl Thread {
    /// Moves `connection` to a new thread.
    pub fn start(name: &str, mut connection: Connection) -> Result<Self, StoreError> {
        let (jobs, mut queue) = mpsc::channel::<Job>(QUEUE);
        let work = move || {
            while let Some(job) = queue.blocking_recv() {
                job(&mut connection);
            }
        };
        let handle = Builder::new().name(name.to_owned()).spawn(work).map_err(|error| {
            let message = format!("a thread cannot be started: {error}");
            StoreError::new(Kind::Other, Class::Permanent, "open store", message).because(error)
        })?;
        Ok(Self { jobs: Some(jobs), handle: Some(handle) })
    }

    /// Carries out `work` on the connection, within the deadline.
    pub async fn call<T: Send + 'static>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&mut Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move |connection| {
            // Whoever has stopped waiting must not find later that it was done after all.
            if !answer.is_closed() {
                let _ = answer.send(work(connection));
            }
        });
        let call = async {
            self.jobs.as_ref()?.send(job).await.ok()?;
            answered.await.ok()
        };
        match timeout(STORE_DEADLINE, call).await {
            Ok(Some(result)) => result.map_err(|failure| failure.during(operation)),
            Ok(None) => Err(ended(operation)),
            Err(_) => Err(deadline(operation)),
        }
    }
}

impl Drop for Thread {
    /// Waits for the thread, so that the connection is closed, and with the last one the write-ahead
    /// log moved into the file, before the process can end.
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(handle) = self.handle.take() {
            let _ = handle.join();
        }
    }
}

fn ended(operation: &'static str) -> StoreError {
    let message = "the store's thread has ended; open the store again";
    StoreError::new(Kind::Other, Class::Permanent, operation, message)
}

fn deadline(operation: &'static str) -> StoreError {
    let seconds = STORE_DEADLINE.as_secs();
    let message = format!("no answer within {seconds} s; whether it took effect is unknown");
    StoreError::new(Kind::Deadline, Class::Transient, operation, message)
}
