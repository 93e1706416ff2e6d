//! `tidegate check`: whether the settings can be used, and every sink is reached.

use crate::{app::App, config::relay, exit::Exit, out, show::table::table};
use anyhow::Result;
use serde_json::json;
use std::time::Duration;
use tidegate::Access;
use tokio::time::timeout;

/// How long a sink may take to answer.
const DEADLINE: Duration = Duration::from_secs(10);

/// Reads the settings, opens the store, and reaches every sink.
pub async fn run(app: &App) -> Result<Exit> {
    let sinks = relay::sinks(&app.config)?;
    if !app.config.routes.is_empty() {
        relay::plan(&app.config, None)?;
    }
    let mut found = vec![("store".to_owned(), store(app).await)];
    for planned in sinks {
        let answer = match timeout(DEADLINE, planned.sink.check()).await {
            Ok(Ok(_)) => Ok("reached".to_owned()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("no answer within {} s", DEADLINE.as_secs())),
        };
        found.push((format!("sink {}", planned.name), answer));
    }
    let failed = found.iter().any(|(_, answer)| answer.is_err());
    if app.json {
        let rows = found.iter().map(|(name, answer)| match answer {
            Ok(text) => json!({ "name": name, "ok": true, "text": text }),
            Err(text) => json!({ "name": name, "ok": false, "text": text }),
        });
        out::json(&rows.collect::<Vec<_>>())?;
    } else {
        let rows = found.into_iter().map(|(name, answer)| {
            let (word, text) = match answer {
                Ok(text) => ("ok", text),
                Err(text) => ("FAILED", text),
            };
            [name, word.to_owned(), text]
        });
        out::data(&table(["", "", ""], 3, rows.collect()))?;
    }
    Ok(if failed { Exit::No } else { Exit::Done })
}

async fn store(app: &App) -> Result<String, String> {
    match app.address.open(Access::Existing).await {
        Ok(store) => Ok(format!("{}, schema is current", crate::store::kind(&store))),
        Err(error) => Err(format!("{error:#}")),
    }
}
