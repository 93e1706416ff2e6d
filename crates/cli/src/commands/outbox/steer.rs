//! `tidegate outbox retry`, `audit` and `limit`

use super::{audited, find, list::selection};
use crate::{
    app::App,
    args::outbox::SteerArgs,
    exit::Exit,
    out,
    show::{
        number::{self, count},
        status::ago,
        table::table,
    },
    signals::Signals,
    units,
};
use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Value, json};
use tidegate::{
    MessageId, OutboxStore,
    limits::MAX_LISTED,
    outbox::{AuditLine, Decision, Selection, Steering, StuckQuery, StuckState},
};

/// What the first signal is answered.
const STOPPING: &str = "Stopping after the messages in progress. Press Ctrl-C again to stop now.";

/// Makes dead messages due again.
pub async fn retry(app: &App, store: &dyn OutboxStore, args: SteerArgs) -> Result<Exit> {
    let ids = named(store, &args.ids).await?;
    let asked = ids.as_ref().map(Vec::len);
    let which = Selection { ids, ..selection(args.which) };
    if which == Selection::default() && !args.all {
        bail!("name messages, or choose by --topic, --sink or --reason, or take --all");
    }
    let about = match which.ids {
        Some(_) => audited::chosen(&which),
        None => audited::chosen_now(&which, &dead_ids(store, which.clone()).await?),
    };
    let by = audited::line(app, args.why.as_deref().unwrap_or_default(), &about);
    let (decision, more) = (Decision::Retry, json!({}));
    carry_out(app, store, Decided { decision, which, by, asked, more }).await
}

/// A decision about dead messages, and what is said about it.
pub struct Decided {
    pub decision: Decision,
    pub which: Selection,
    pub by: AuditLine,
    /// How many messages were named, if any were.
    pub asked: Option<usize>,
    /// Said beside the count in JSON.
    pub more: Value,
}

/// Page by page: what is done when it fails or is stopped stays done, and the same command goes on from there.
pub async fn carry_out(app: &App, store: &dyn OutboxStore, decided: Decided) -> Result<Exit> {
    let Decided { decision, which, by, asked, more } = decided;
    let signals = Signals::listen((!app.quiet).then_some(STOPPING))?;
    let what = match decision {
        Decision::Retry => "retried",
        Decision::Drop => "dropped",
    };
    let bar = app.draws().then(|| out::counting(what));
    let mut steering = Steering::new(decision, which, by);
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
    let asked = asked.filter(|_| matches!(ended, Ok(false)));
    let said = match ended.is_ok() || steering.messages() > 0 {
        true => say(app, what, steering.messages(), asked, more)?,
        false => Exit::Done,
    };
    if let Err(error) = ended {
        return Err(error).context("repeat the command to go on with the rest");
    }
    if stopped.is_some() {
        app.say("stopped: repeat the command to go on with the rest");
    }
    Ok(stopped.map_or(said, Exit::Stopped))
}

/// The messages that were named, each once; `None` if none was.
pub async fn named(store: &dyn OutboxStore, typed: &[MessageId]) -> Result<Option<Vec<MessageId>>> {
    let mut ids = Vec::new();
    for typed in typed {
        ids.push(find(store, typed).await?);
    }
    ids.sort_unstable();
    ids.dedup();
    Ok(Some(ids).filter(|ids| !ids.is_empty()))
}

/// The dead messages that are chosen.
pub async fn dead_ids(store: &dyn OutboxStore, which: Selection) -> Result<Vec<MessageId>> {
    let (state, mut ids) = (Some(StuckState::Dead), Vec::new());
    let mut query = StuckQuery { state, which, limit: MAX_LISTED, ..StuckQuery::default() };
    loop {
        let page = store.stuck(query.clone()).await?;
        let Some(last) = page.last() else { return Ok(ids) };
        query.after = Some(last.id.clone());
        ids.extend(page.into_iter().map(|stuck| stuck.id));
    }
}

/// Says what was done. If some of those that were named are not dead, the answer is no.
pub fn say(
    app: &App,
    what: &str,
    messages: u64,
    asked: Option<usize>,
    mut more: Value,
) -> Result<Exit> {
    if app.json {
        more[what.replace(' ', "_")] = json!(messages);
        out::json(&more)?;
    }
    app.say(&match messages {
        0 => "no dead message was chosen".to_owned(),
        _ => format!("{what} {}", number::dead_messages(messages)),
    });
    let others = asked.map_or(0, |asked| (asked as u64).saturating_sub(messages));
    if others == 0 {
        return Ok(Exit::Done);
    }
    app.say(&format!(
        "{} of those named are not dead or not there: see `tidegate outbox list`",
        count(others)
    ));
    Ok(Exit::No)
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
