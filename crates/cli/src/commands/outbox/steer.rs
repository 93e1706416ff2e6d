//! `tidegate outbox retry`, `drop`, `audit` and `limit`

use super::{find, list::selection};
use crate::{
    app::App,
    args::outbox::SteerArgs,
    exit::Exit,
    out,
    show::{number::count, status::ago, table::table},
    signals::Signals,
    units,
};
use anyhow::{Context, Result, anyhow, bail};
use serde_json::json;
use tidegate::{
    OutboxStore,
    outbox::{AuditLine, Decision, Selection, Steering},
};

/// What the first signal is answered.
const STOPPING: &str = "stopping after the messages in progress; again to end at once";

/// Makes dead messages due again.
pub async fn retry(app: &App, store: &dyn OutboxStore, args: SteerArgs) -> Result<Exit> {
    steer(app, store, args, Decision::Retry).await
}

/// Removes dead messages for good.
pub async fn drop(app: &App, store: &dyn OutboxStore, args: SteerArgs) -> Result<Exit> {
    steer(app, store, args, Decision::Drop).await
}

/// Page by page: what is done when it fails or is stopped stays done, and the same command goes on from there.
async fn steer(
    app: &App,
    store: &dyn OutboxStore,
    args: SteerArgs,
    decision: Decision,
) -> Result<Exit> {
    let by = by(&args);
    let chosen = chosen(store, args).await?;
    let named = chosen.ids.as_ref().map(Vec::len);
    let signals = Signals::listen(Some(STOPPING))?;
    let what = match decision {
        Decision::Retry => "retried",
        Decision::Drop => "dropped",
    };
    let bar = app.draws().then(|| out::counting(what));
    let mut steering = Steering::new(decision, chosen, by);
    let ended = loop {
        let stepped = steering.step(store).await;
        if let Some(bar) = &bar {
            bar.set_position(steering.messages());
        }
        match stepped {
            Ok(true) if signals.code().is_none() => {}
            Ok(more) => break Ok(more),
            Err(error) => break Err(error),
        }
    };
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    let stopped = signals.code().filter(|_| ended.as_ref().is_ok_and(|more| *more));
    if ended.is_ok() || steering.messages() > 0 {
        say(app, what, steering.messages(), named.filter(|_| matches!(ended, Ok(false))))?;
    }
    if let Err(error) = ended {
        return Err(error).context("repeat the command to go on with the rest");
    }
    if stopped.is_some() {
        app.say("stopped: repeat the command to go on with the rest");
    }
    Ok(stopped.map_or(Exit::Done, Exit::Stopped))
}

/// Nothing is chosen by accident.
async fn chosen(store: &dyn OutboxStore, args: SteerArgs) -> Result<Selection> {
    let mut ids = Vec::new();
    for named in &args.ids {
        ids.push(find(store, named).await?);
    }
    let ids = Some(ids).filter(|ids| !ids.is_empty());
    let selection = Selection { ids, ..selection(args.which) };
    if selection == Selection::default() && !args.all {
        bail!("name messages, or choose by --topic, --sink or --reason, or take --all");
    }
    Ok(selection)
}

fn by(args: &SteerArgs) -> AuditLine {
    let user = std::env::var("USER").or_else(|_| std::env::var("LOGNAME"));
    let who = user.unwrap_or_else(|_| "unknown".to_owned());
    AuditLine { who, why: args.why.clone(), ..AuditLine::default() }
}

fn say(app: &App, what: &str, messages: u64, named: Option<usize>) -> Result<Exit> {
    if app.json {
        out::json(&json!({ what: messages }))?;
    }
    app.say(&match messages {
        0 => "no dead message was chosen".to_owned(),
        1 => format!("{what} 1 dead message"),
        _ => format!("{what} {} dead messages", count(messages)),
    });
    let others = named.map_or(0, |named| (named as u64).saturating_sub(messages));
    if others > 0 {
        app.say(&format!(
            "{} of those named are not dead: see `tidegate outbox list`",
            count(others)
        ));
    }
    Ok(Exit::Done)
}

/// Shows who changed what.
pub async fn audit(app: &App, store: &dyn OutboxStore, limit: usize) -> Result<Exit> {
    let lines = store.audit(limit).await?;
    if app.json {
        out::json(&lines)?;
    } else if lines.is_empty() {
        app.say("nothing was retried or dropped");
    } else {
        let rows = lines
            .into_iter()
            .map(|line| [ago(line.at_ms), line.who, line.what, line.why, count(line.messages)]);
        out::data(&table(["age", "who", "what", "why", "messages"], 4, rows.collect()))?;
    }
    Ok(Exit::Done)
}

/// Sets the limit on outstanding messages.
pub async fn limit(app: &App, store: &dyn OutboxStore, most: &str) -> Result<Exit> {
    let most = match most {
        "off" => None,
        text => Some(units::positive(text).map_err(|error| anyhow!("{error}, or `off`"))?),
    };
    store.limit_outstanding(most).await?;
    if app.json {
        out::json(&json!({ "limit": most }))?;
    }
    app.say(&match most {
        Some(most) => format!("messages are refused while {} or more are outstanding", count(most)),
        None => "messages are never refused".to_owned(),
    });
    Ok(Exit::Done)
}
