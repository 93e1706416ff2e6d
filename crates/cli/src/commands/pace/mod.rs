//! `tidegate pace`: how fast loads may go, why, which sinks hold relays up, and what the pacer would do elsewhere.

mod simulate;
mod tournament;

use super::outbox::status::troubled;
use crate::{
    app::App,
    args::pace::{PaceArgs, PaceCommand},
    exit::Exit,
    out, outbox,
    show::{pace, status},
    store,
};
use anyhow::{Result, bail};
use tidegate::{Access, load, pace::PaceQuery};

/// The last loads that are shown.
const SHOWN: usize = 3;

/// Shows the pace of loads, or simulates services.
pub async fn run(app: &App, args: PaceArgs) -> Result<Exit> {
    match args.command {
        Some(PaceCommand::Simulate(args)) => simulate::run(app, args),
        Some(PaceCommand::Tournament(args)) => tournament::run(app, &args),
        None => show(app, args).await,
    }
}

async fn show(app: &App, args: PaceArgs) -> Result<Exit> {
    let store = app.address.open(Access::Existing).await?;
    let limit = if args.batch.is_some() { usize::MAX } else { SHOWN };
    let noted =
        load::paces(&store, PaceQuery { batch: args.batch, limit, ..PaceQuery::default() }).await?;
    let sinks = match args.batch {
        Some(_) => Vec::new(),
        None => outbox::open(app, None).await?.store.outbox().await?.sinks,
    };
    if noted.is_empty() && sinks.is_empty() {
        match args.batch {
            Some(batch) => bail!("batch {batch} is no load, or was never worked on"),
            None => bail!("there is no load in this store yet: see `tidegate load --help`"),
        }
    }
    if app.json {
        let loads = noted.iter().map(|(note, pace)| pace::json(note, pace.as_ref()));
        out::json(&loads.chain(sinks.iter().map(pace::of_relays)).collect::<Vec<_>>())?;
    } else {
        let mut texts = Vec::new();
        for (note, pace) in &noted {
            let status = store::status(&store, note.note.batch).await?;
            let progress = status::records(&status.progress, status.batch.runs);
            texts.push(pace::text(note, pace.as_ref(), &progress));
        }
        if !sinks.is_empty() {
            let lines = sinks.iter().map(|sink| format!("  {}\n", troubled(sink)));
            texts.push(format!("{}\n{}", out::strong("relays"), lines.collect::<String>()));
        }
        out::data(&texts.join("\n"))?;
    }
    Ok(Exit::Done)
}
