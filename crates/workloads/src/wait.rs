//! How long a run of `sleep`, `spin` or `flaky` lasts.

use serde::Deserialize;
use std::time::Duration;
use tidegate_core::{InvalidSnapshot, Run, RunError, Snapshot};

/// Longest run, an hour: beyond it a typo is likelier than a wish.
const MAX_MS: f64 = 3_600_000.0;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Setting {
    ms: Option<f64>,
}

/// Reads `{ ms = … }`; a snapshot that says nothing means `default_ms`.
pub fn parse(snapshot: &Snapshot, default_ms: f64) -> Result<Duration, InvalidSnapshot> {
    let setting: Option<Setting> = snapshot.parse()?;
    let ms = setting.and_then(|setting| setting.ms).unwrap_or(default_ms);
    check(ms)?;
    Ok(Duration::from_secs_f64(ms / 1e3))
}

/// Refuses a length that no run may have.
pub fn check(ms: f64) -> Result<(), InvalidSnapshot> {
    if !(0.0..=MAX_MS).contains(&ms) {
        return Err(InvalidSnapshot::at("ms", format!("{ms} is not between 0 and {MAX_MS}")));
    }
    Ok(())
}

/// Passes `time` by calling `pass` with it, but no longer than the run may take.
pub fn pass(run: &Run, time: Duration, pass: impl FnOnce(Duration)) -> Result<(), RunError> {
    match run.timeout().filter(|&timeout| timeout < time) {
        None => pass(time),
        Some(timeout) => {
            pass(timeout);
            return Err(RunError::new(format!("timed out: the run takes {time:?}")));
        }
    }
    Ok(())
}
