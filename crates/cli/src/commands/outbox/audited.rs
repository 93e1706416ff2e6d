//! What a decision leaves in the audit log.

use crate::{app::App, show::number::count, who::who};
use tidegate::{
    MessageId,
    outbox::{AuditLine, Selection},
};

/// More stretches of ids than this are summed up: a line is read by people.
const MOST_STRETCHES: usize = 20;

/// A line that says who decides, why, and about which messages.
pub fn line(app: &App, why: &str, about: &str) -> AuditLine {
    let why = match why {
        "" => about.to_owned(),
        why => format!("{why} ({about})"),
    };
    AuditLine { who: who(app.address.url()), why, ..AuditLine::default() }
}

/// What was chosen, in words.
pub fn chosen(which: &Selection) -> String {
    let ids = which.ids.as_ref().map(|ids| stretches(ids));
    let of = |what: &str, value: &Option<String>| value.as_ref().map(|it| format!("{what} {it}"));
    let more = [of("topic", &which.topic), of("sink", &which.sink), of("reason", &which.reason)];
    let all: Vec<String> = ids.into_iter().chain(more.into_iter().flatten()).collect();
    if all.is_empty() { "all".to_owned() } else { all.join(", ") }
}

/// The selection, and the messages that it chooses now. Messages that die before it is carried out are chosen, too.
pub fn chosen_now(which: &Selection, ids: &[MessageId]) -> String {
    match ids {
        [] => chosen(which),
        ids => format!("{}: {}", chosen(which), stretches(ids)),
    }
}

/// Ids as people write them: `ids 2-4, 7`. They are sorted.
pub fn stretches(ids: &[MessageId]) -> String {
    let mut stretches: Vec<(i64, i64)> = Vec::new();
    for id in ids {
        match stretches.last_mut() {
            Some((_, last)) if *last + 1 == id.0 => *last = id.0,
            _ => stretches.push((id.0, id.0)),
        }
    }
    let shown = stretches.iter().take(MOST_STRETCHES).map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    let text = shown.collect::<Vec<_>>().join(", ");
    match stretches.last() {
        Some((_, last)) if stretches.len() > MOST_STRETCHES => {
            format!("ids {text}, … {last}: {} in all", count(ids.len() as u64))
        }
        _ => format!("ids {text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_told_in_stretches() {
        let of = |ids: &[i64]| stretches(&ids.iter().copied().map(MessageId).collect::<Vec<_>>());
        assert_eq!(of(&[2, 3, 4, 7]), "ids 2-4, 7");
        let many: Vec<i64> = (0..1_000).map(|n| n * 2).collect();
        let text = of(&many);
        assert!(text.ends_with("38, … 1998: 1,000 in all"), "{text}");
    }

    #[test]
    fn a_choice_is_told_in_words() {
        let topic = Some("orders".to_owned());
        let which = Selection { ids: Some(vec![MessageId(1)]), topic, ..Selection::default() };
        assert_eq!(chosen(&which), "ids 1, topic orders");
        assert_eq!(chosen(&Selection::default()), "all");
    }
}
