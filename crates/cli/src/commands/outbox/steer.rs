//! `tidegate outbox retry`, `audit` and `limit`

use super::{audited, find, list::selection};
use crate::{
    app::App,
    args::outbox::{Named, SteerArgs},
    exit::Exit,
    out,
    show::{
        number::{self, count},
        status::ago,
        table::table,
    },
    units,
};
use anyhow::{Result, anyhow, bail};
use serde_json::{Value, json};
use tidegate::{
    MessageId, OutboxStore,
    limits::MAX_LISTED,
    outbox::{Selection, StuckQuery, StuckState},
};

/// Makes dead messages due again.
pub async fn retry(app: &App, store: &dyn OutboxStore, args: SteerArgs) -> Result<Exit> {
    let ids = named(store, &args.ids).await?;
    let asked = ids.as_ref().map(Vec::len);
    let which = Selection { ids, ..selection(args.which) };
    if which == Selection::default() && !args.all {
        bail!("name messages, or choose by --topic, --sink or --reason, or take --all");
    }
    let by = audited::line(app, &args.why, &audited::chosen(&which));
    let messages = store.retry_dead(which, &by).await?;
    say(app, "retried", messages, asked, json!({}))
}

/// The messages that were named, each once; `None` if none was.
pub async fn named(store: &dyn OutboxStore, named: &[Named]) -> Result<Option<Vec<MessageId>>> {
    let mut ids = Vec::new();
    for named in named {
        ids.push(find(store, named).await?);
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
        query.after = last.id;
        ids.extend(page.iter().map(|stuck| stuck.id));
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
