//! What Redis says → what became of an entry, or of the connection.

use crate::{broker::Reply, failure::Failure, reason::clean};
use ::redis::{ErrorKind, RedisError};
use tidegate_core::sink::Verdict;

/// What a name must stand for in Redis.
pub const STREAM: &str = "stream";
pub const LIST: &str = "list or set as Brighter has them";

/// What became of an entry that was not appended to what has this name and should be of this kind.
pub fn refused(error: &RedisError, name: &str, kind: &str) -> Reply {
    match error.code() {
        Some("WRONGTYPE") => Ok(Verdict::Retry(format!(
            "`{name}` is there, but is no {kind}: remove it or use another name"
        ))),
        Some("ERR") if !is_general(error) => Ok(Verdict::Retry(said(error))),
        _ => Err(failure(error)),
    }
}

/// Nothing may be larger than `largest`: Redis would hang up.
pub fn fits(size: usize, largest: usize) -> Result<(), String> {
    if size > largest {
        return Err(format!("it is larger than Redis takes (proto-max-bulk-len {largest})"));
    }
    Ok(())
}

/// Why Redis does nothing, for whatever it is asked.
pub fn failure(error: &RedisError) -> Failure {
    let text = said(error);
    match error.code() {
        Some("NOAUTH" | "WRONGPASS" | "NOPERM") => {
            Failure::Broken(format!("Redis refuses the credentials: {text}"))
        }
        Some("MOVED" | "ASK" | "CROSSSLOT") => Failure::Broken(
            "this Redis is a part of a cluster, which this sink cannot follow".to_owned(),
        ),
        // OOM, READONLY, LOADING, BUSY, MISCONF, CLUSTERDOWN, MASTERDOWN, NOREPLICAS and the like.
        Some("ERR") if unknown(error) => {
            Failure::Broken("Redis knows no streams: use Redis 5 or newer".to_owned())
        }
        Some(_) => Failure::Unavailable(format!("Redis cannot work now: {text}")),
        None if error.kind() == ErrorKind::AuthenticationFailed => {
            Failure::Broken(format!("Redis refuses the credentials: {text}"))
        }
        None => Failure::Unavailable(format!("the connection to Redis was lost: {text}")),
    }
}

/// Why there is no connection.
pub fn unconnected(error: &RedisError, place: &str) -> Failure {
    match failure(error) {
        Failure::Unavailable(_) if error.code().is_none() => {
            Failure::of_connecting(error, place, "redis")
        }
        failure => failure,
    }
}

/// An error that is not about this entry.
fn is_general(error: &RedisError) -> bool {
    unknown(error) || error.detail().is_some_and(|text| text.contains("max number of clients"))
}

fn unknown(error: &RedisError) -> bool {
    error.detail().is_some_and(|text| text.contains("unknown command"))
}

/// What Redis said. It repeats what it was asked in one case only, where it does not know the
/// command: that is a payload.
fn said(error: &RedisError) -> String {
    if unknown(error) {
        return "unknown command".to_owned();
    }
    match (error.code(), error.detail()) {
        (Some(code), Some(detail)) => clean(&format!("{code} {detail}")),
        _ => clean(&error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::redis::{Value, parse_redis_value};

    fn error(line: &str) -> RedisError {
        let value = parse_redis_value(format!("-{line}\r\n").as_bytes());
        match value.and_then(Value::extract_error) {
            Err(error) => error,
            Ok(value) => panic!("{value:?}"),
        }
    }

    fn of(line: &str) -> Reply {
        refused(&error(line), "orders", STREAM)
    }

    #[test]
    fn a_server_that_cannot_work_blames_nobody() {
        for line in [
            "OOM command not allowed when used memory > 'maxmemory'.",
            "READONLY You can't write against a read only replica.",
            "LOADING Redis is loading the dataset in memory",
            "BUSY Redis is busy running a script.",
            "MISCONF Redis is configured to save RDB snapshots",
            "NOREPLICAS Not enough good replicas to write.",
            "CLUSTERDOWN The cluster is down",
            "ERR max number of clients reached",
        ] {
            let Err(Failure::Unavailable(reason)) = of(line) else { panic!("{line}") };
            let code = line.split(' ').next().unwrap();
            assert!(reason.contains(code), "{reason}");
        }
    }

    #[test]
    fn what_is_wrong_with_the_user_breaks_the_sink() {
        for line in [
            "NOAUTH Authentication required.",
            "WRONGPASS invalid username-password pair",
            "NOPERM this user has no permissions to run the 'xadd' command",
            "MOVED 1234 10.0.0.1:6379",
        ] {
            assert!(matches!(of(line), Err(Failure::Broken(_))), "{line}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_stream_is_its_entries_problem() {
        let Ok(Verdict::Retry(reason)) = of("WRONGTYPE Operation against a key") else { panic!() };
        assert_eq!(reason, "`orders` is there, but is no stream: remove it or use another name");
        let full = of("ERR The stream has exhausted the last possible ID");
        assert!(matches!(&full, Ok(Verdict::Retry(it)) if it.contains("exhausted")), "{full:?}");
    }

    #[test]
    fn a_payload_that_redis_repeats_is_not_shown() {
        let old = of("ERR unknown command 'XADD', with args beginning with: 'a' 'hunter2' ");
        let Err(Failure::Broken(problem)) = old else { panic!("{old:?}") };
        assert_eq!(problem, "Redis knows no streams: use Redis 5 or newer");
    }
}
