//! What a relay would find in a table that was there before.

use super::{
    number::{count, span},
    table::table,
};
use std::time::Duration;
use tidegate::adopted::ShadowReport;

/// A report for people.
pub fn text(report: &ShadowReport) -> String {
    let mut lines = vec![
        format!("table      {}", report.table),
        format!("order      {}", report.order),
        format!("pending    {}{}", count(report.pending), oldest(report)),
        format!("no key     {}", count(report.without_key)),
        format!("ties       {}", count(report.ties)),
        format!("poison     {} of {} examined", count(report.poison), count(report.examined)),
    ];
    let poison = report.poison_rows.iter();
    lines.extend(poison.map(|row| format!("           {}: {}", row.row, row.problem)));
    lines.extend(report.remarks.iter().map(|remark| format!("remark     {remark}")));
    for advice in &report.advice {
        lines.push(format!("missing    {}", advice.problem));
        lines.push(format!("           {}", advice.ddl));
    }
    let topics = report.topics.iter().map(|topic| {
        [topic.topic.clone().unwrap_or_else(|| "(none)".to_owned()), count(topic.messages)]
    });
    format!("{}\n\n{}", lines.join("\n"), table(["topic", "pending"], 1, topics.collect()))
}

fn oldest(report: &ShadowReport) -> String {
    let age = report.oldest_seconds.and_then(|it| Duration::try_from_secs_f64(it.max(0.0)).ok());
    age.map(|age| format!(", the oldest for {}", span(age))).unwrap_or_default()
}
