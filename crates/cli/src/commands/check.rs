//! `tidegate check`: whether the settings can be used, and every sink is reached.

use crate::{app::App, config::relay, exit::Exit, out, outbox, show::table::table};
use anyhow::Result;
use serde_json::json;
use std::{sync::Arc, time::Duration};
use tidegate::{Access, OutboxStore, adopted::Preset, relay::PlannedSink};
use tokio::time::timeout;

/// How long a sink may take to answer.
const DEADLINE: Duration = Duration::from_secs(10);

/// Reads the settings, opens the store and the outbox, and reaches every sink.
pub async fn run(app: &App, preset: Option<Preset>) -> Result<Exit> {
    let making = relay::Making { protected: &app.protected, preset, store: app.address.url() };
    let sinks = relay::sinks(&app.config, making)?;
    relay::policies(&app.config)?;
    if !app.config.routes.is_empty() {
        relay::plan(&app.config, None, making)?;
    }
    let reached: Vec<_> = sinks.into_iter().map(|sink| tokio::spawn(reach(sink))).collect();
    let mut found = vec![("store".to_owned(), store(app).await)];
    match outbox::table(app, preset).await {
        Ok(None) => {}
        Ok(Some(table)) => {
            let name = format!("table {}", table.table());
            let store: Arc<dyn OutboxStore> = table;
            found.push((name, Ok(store.outbox_capabilities().remarks().join("; "))));
        }
        Err(error) => found.push(("table".to_owned(), Err(format!("{error:#}")))),
    }
    for sink in reached {
        found.push(sink.await?);
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

/// Each sink has the same time, whatever the others take.
async fn reach(planned: PlannedSink) -> (String, Result<String, String>) {
    let answer = match timeout(DEADLINE, planned.sink.check()).await {
        Ok(Ok(_)) => Ok("reached".to_owned()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("no answer within {} s", DEADLINE.as_secs())),
    };
    (format!("sink {}", planned.name), answer)
}

async fn store(app: &App) -> Result<String, String> {
    let look = async {
        let outbox = app.address.open_outbox(Access::Existing).await?;
        let capabilities = outbox.outbox_store().outbox_capabilities();
        let place = outbox.place().await?.map(|place| format!(": {place}"));
        let current =
            format!("{}, schema is current{}", capabilities.name, place.unwrap_or_default());
        let remarks = capabilities.without_batches().into_iter().chain(capabilities.remarks());
        anyhow::Ok([current].into_iter().chain(remarks).collect::<Vec<_>>().join("; "))
    };
    look.await.map_err(|error| format!("{error:#}"))
}
