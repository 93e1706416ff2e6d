//! `tidegate doctor`: what is wrong with the store, and what to do.

use crate::{app::App, exit::Exit, out, outbox, show::number::span};
use anyhow::Result;
use serde::Serialize;
use tidegate::{
    Access,
    adopted::Preset,
    outbox::{OutboxStatus, TopicStatus},
};

/// Something that is wrong.
#[derive(Debug, Serialize)]
struct Finding {
    problem: String,
    /// What to do.
    advice: String,
}

/// Looks at the store and its outbox.
pub async fn run(app: &App, preset: Option<Preset>) -> Result<Exit> {
    let findings = look(app, preset).await?;
    if app.json {
        out::json(&findings)?;
    } else if findings.is_empty() {
        app.say("nothing is wrong");
    } else {
        let text = findings.iter().map(|it| format!("{}\n  {}\n", it.problem, it.advice));
        out::data(&text.collect::<String>())?;
    }
    Ok(if findings.is_empty() { Exit::Done } else { Exit::No })
}

async fn look(app: &App, preset: Option<Preset>) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    if let Some(table) = outbox::table(app, preset).await? {
        let advice = table.advice().into_iter();
        findings.extend(advice.map(|it| finding(it.problem, it.ddl)));
    }
    match app.address.open(Access::Existing).await {
        Ok(_) => {
            let opened = outbox::open(app, preset).await?;
            findings.extend(of_status(&opened.store.outbox().await?));
        }
        Err(error) => findings.push(finding(format!("{error:#}"), "mend this first")),
    }
    Ok(findings)
}

fn of_status(status: &OutboxStatus) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(holder) = &status.holder {
        findings.push(finding(
            format!("{} has been open for {}", holder.name, span(holder.age)),
            "younger messages are not read, and dead rows not removed, before it ends: end it",
        ));
    }
    let sum = |of: fn(&TopicStatus) -> u64| status.topics.iter().map(of).sum::<u64>();
    let unattended = if status.relays.is_empty() { sum(|topic| topic.outstanding) } else { 0 };
    for (messages, what, advice) in [
        (unattended, "wait, and no relay is running", "start one with `tidegate relay`"),
        (sum(|topic| topic.dead), "are dead", "see `tidegate outbox dead`"),
        (sum(|topic| topic.unrouted), "have no route", "add [[routes]] for their topics"),
    ] {
        if messages > 0 {
            findings.push(finding(format!("{messages} messages {what}"), advice));
        }
    }
    findings
}

fn finding(problem: impl Into<String>, advice: impl Into<String>) -> Finding {
    Finding { problem: problem.into(), advice: advice.into() }
}
