//! Those who publish, whatever happens to their server.

use crate::history::History;
use std::{sync::Arc, time::Duration};
use tidegate_core::NewMessage;
use tidegate_engine::Stop;
use tokio::{task::JoinSet, time::sleep};
use tokio_postgres::{Client, Error, NoTls};

const WRITERS: usize = 4;
/// Each writer has as many of its own.
const KEYS: usize = 5;
/// Between transactions, and between tries to connect.
const PAUSE: Duration = Duration::from_millis(5);

pub async fn run(client: &Client, sql: &str) -> Result<(), Error> {
    client.batch_execute(sql).await
}

/// Publishes a message in the client's transaction. Returns its number.
pub async fn publish(client: &Client, history: &History, key: &str) -> Result<u64, Error> {
    let number = history.attempt(key);
    let sql = "select tidegate.publish('t', $1, to_jsonb($2::bigint))";
    client.execute(sql, &[&key, &(number as i64)]).await?;
    Ok(number)
}

/// A message that says its number.
pub fn message(history: &History, key: &str) -> NewMessage {
    NewMessage {
        topic: "t".to_owned(),
        key: Some(key.to_owned()),
        payload: history.attempt(key).to_string().into_bytes(),
        ..NewMessage::default()
    }
}

/// Writers at work. They go on when their connections break.
pub struct Writers {
    stop: Stop,
    tasks: JoinSet<()>,
}

impl Writers {
    pub fn start(url: &str, history: &Arc<History>) -> Self {
        let (stop, mut tasks) = (Stop::new(), JoinSet::new());
        for writer in 0..WRITERS {
            let (url, history, stop) = (url.to_owned(), history.clone(), stop.clone());
            tasks.spawn(async move {
                while !stop.is_stopped() {
                    // Whatever broke: what became of the transaction is not known.
                    let _ = write(&url, &history, writer, &stop).await;
                    sleep(PAUSE).await;
                }
            });
        }
        Self { stop, tasks }
    }

    pub async fn stop(mut self) {
        self.stop.stop();
        while let Some(ended) = self.tasks.join_next().await {
            ended.unwrap();
        }
    }
}

/// One transaction after the other, until a stop or an error.
async fn write(url: &str, history: &History, writer: usize, stop: &Stop) -> Result<(), Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    for round in 0.. {
        if stop.is_stopped() {
            break;
        }
        run(&client, "begin").await?;
        let mut numbers = Vec::new();
        for key in round..=round + round % 3 {
            let key = format!("key {} of {writer}", key % KEYS);
            numbers.push(publish(&client, history, &key).await?);
        }
        run(&client, "commit").await?;
        history.committed(&numbers);
        sleep(PAUSE).await;
    }
    Ok(())
}
