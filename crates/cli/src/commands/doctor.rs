//! `tidegate doctor`: what is wrong with the store, and what to do.

use super::outbox::status::troubled;
use crate::{app::App, exit::Exit, out, outbox, show::number::span};
use anyhow::Result;
use serde::Serialize;
use std::time::Duration;
use tidegate::{
    adopted::Preset,
    outbox::{Holder, OutboxStatus, TopicStatus},
};

/// Reports and backups have a snapshot open for a while.
const LONG: Duration = Duration::from_secs(60);

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
    match outbox::open(app, preset).await {
        Ok(opened) => {
            if let Some(protection) = opened.protection {
                app.say(&format!("the connection to PostgreSQL: {protection}"));
            }
            if let Some(own) = &opened.own {
                own.place().await?.iter().for_each(|place| app.say(place));
                let advice = own.advice().await?.into_iter();
                findings.extend(advice.map(|it| finding(it.problem, it.advice)));
            }
            opened.remarks().iter().for_each(|remark| app.say(remark));
            findings.extend(of_status(&opened.store.outbox().await?));
        }
        Err(error) => findings.push(finding(format!("{error:#}"), "mend this first")),
    }
    Ok(findings)
}

fn of_status(status: &OutboxStatus) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(advice) = &status.advice {
        findings.push(finding(&advice.problem, &advice.advice));
    }
    let mut open = |holder: &Holder, advice: &str| {
        let problem = format!("{} has been open for {}", holder.name, span(holder.age));
        findings.push(finding(problem, advice));
    };
    if let Some(holder) = &status.holder {
        open(holder, "younger messages are not read before it ends: end it");
    }
    if let Some(snapshot) = status.oldest_snapshot.as_ref().filter(|it| it.age >= LONG) {
        open(snapshot, "no row that its snapshot may see is removed before it ends: end it");
    }
    let sinks = status.sinks.iter().map(troubled);
    findings
        .extend(sinks.map(|it| finding(it, "its messages wait: mend it, or change its routes")));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(holder: Option<u64>, oldest_snapshot: Option<u64>) -> Vec<String> {
        let open = |name: &str, seconds| Holder {
            name: name.to_owned(),
            age: Duration::from_secs(seconds),
        };
        let status = OutboxStatus {
            holder: holder.map(|seconds| open("writer", seconds)),
            oldest_snapshot: oldest_snapshot.map(|seconds| open("backup", seconds)),
            ..OutboxStatus::default()
        };
        of_status(&status).into_iter().map(|finding| finding.problem).collect()
    }

    #[test]
    fn who_has_something_open_for_long_is_named() {
        assert_eq!(problems(None, Some(59)), [""; 0], "that is not long");
        let after = |seconds| span(Duration::from_secs(seconds));
        let backup = format!("backup has been open for {}", after(7_200));
        assert_eq!(problems(None, Some(7_200)), [&*backup]);
        let writer = format!("writer has been open for {}", after(5));
        assert_eq!(problems(Some(5), Some(7_200)), [writer, backup]);
    }
}
