//! The last of what a process wrote to stderr: the reason of its failure, more often than not.

use std::{
    io::Read,
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread,
    time::Duration,
};
use tidegate_core::limits::MAX_REASON_BYTES;

/// What is kept: as much as a stored reason can hold, after what else it says.
const TAIL_BYTES: usize = MAX_REASON_BYTES - 512;

/// How long to wait for the last words of a process that has ended. Something that it started may
/// hold stderr open for ever.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// Follows one stderr until it ends.
#[derive(Debug)]
pub struct Stderr {
    tail: Arc<Mutex<Vec<u8>>>,
    /// Disconnected when stderr has ended.
    open: mpsc::Receiver<()>,
}

impl Stderr {
    /// Reads `stderr` from now on, on a thread of its own.
    pub fn follow(stderr: impl Read + Send + 'static) -> Self {
        let tail = Arc::<Mutex<Vec<u8>>>::default();
        let (closes, open) = mpsc::channel();
        let kept = tail.clone();
        thread::spawn(move || {
            keep_tail(stderr, &kept);
            drop(closes);
        });
        Self { tail, open }
    }

    /// The last lines, for a process that has ended.
    pub fn last_words(&self) -> String {
        // Both answers, the end and the time-out, mean: read what is there.
        let _ = self.open.recv_timeout(LAST_WORDS);
        let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&tail).trim().to_owned()
    }
}

fn keep_tail(mut stderr: impl Read, kept: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 1024];
    while let Ok(count @ 1..) = stderr.read(&mut buffer) {
        let mut tail = kept.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend_from_slice(&buffer[..count]);
        let excess = tail.len().saturating_sub(TAIL_BYTES);
        tail.drain(..excess);
    }
}
