//! A connection to Redis, over which many commands go at the same time.

use super::answer;
use crate::{dialer::Stream, failure::Failure};
use ::redis::{
    AsyncConnectionConfig, Cmd, Pipeline, RedisConnectionInfo, RedisError, Value,
    aio::MultiplexedConnection, cmd,
};
use tokio::task::JoinHandle;

/// What Redis takes in one piece if it does not say.
const LARGEST: usize = 512 << 20;

/// An open connection.
pub struct Connection {
    inner: MultiplexedConnection,
    /// What moves the bytes.
    driver: JoinHandle<()>,
    largest: usize,
}

impl Connection {
    pub async fn open(
        stream: Stream,
        info: &RedisConnectionInfo,
        place: &str,
    ) -> Result<Self, Failure> {
        // Deliveries have deadlines of their own.
        let config = AsyncConnectionConfig::new().set_response_timeout(None);
        let (inner, driver) = MultiplexedConnection::new_with_config(info, stream, config)
            .await
            .map_err(|error| answer::unconnected(&error, place))?;
        let driver = tokio::spawn(driver);
        let mut connection = Self { inner, driver, largest: LARGEST };
        connection.largest = connection.ask_largest().await?;
        Ok(connection)
    }

    /// Whether it has not ended.
    pub fn is_alive(&self) -> bool {
        !self.driver.is_finished()
    }

    /// The most that Redis takes in one piece. If it is sent more, it hangs up.
    pub fn largest(&self) -> usize {
        self.largest
    }

    /// The answer to one command; an error that Redis answers is an error.
    pub async fn ask(&self, command: Cmd) -> Result<Value, RedisError> {
        self.inner.clone().send_packed_command(&command).await.and_then(Value::extract_error)
    }

    /// The answers to commands that are carried out together; if Redis answers one with an error, that error.
    pub async fn ask_all(&self, commands: &Pipeline) -> Result<Vec<Value>, RedisError> {
        // Only the answer to the last one, EXEC, tells what became of them.
        let sent = self.inner.clone().send_packed_commands(commands, commands.len() + 1, 1).await?;
        sent.into_iter().map(Value::extract_error).collect()
    }

    /// Not everybody may ask for settings; whoever is refused for another reason is told so early.
    async fn ask_largest(&self) -> Result<usize, Failure> {
        let mut command = cmd("CONFIG");
        command.arg("GET").arg("proto-max-bulk-len");
        match self.ask(command).await {
            Ok(Value::Array(pair)) => Ok(pair.get(1).and_then(number).unwrap_or(LARGEST)),
            Ok(_) => Ok(LARGEST),
            Err(error) if matches!(error.code(), Some("NOPERM" | "ERR")) => Ok(LARGEST),
            Err(error) => Err(answer::failure(&error)),
        }
    }
}

fn number(value: &Value) -> Option<usize> {
    match value {
        Value::BulkString(bytes) => str::from_utf8(bytes).ok()?.parse().ok(),
        _ => None,
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}
