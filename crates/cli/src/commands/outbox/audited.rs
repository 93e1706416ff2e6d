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
    let mut stretches: Vec<(&MessageId, &MessageId)> = Vec::new();
    for id in ids {
        match stretches.last_mut() {
            Some((_, last)) if is_next(last, id) => *last = id,
            _ => stretches.push((id, id)),
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

/// Whether both are numbers without another between them.
fn is_next(last: &MessageId, id: &MessageId) -> bool {
    last.as_number().is_some_and(|last| last.checked_add(1) == id.as_number())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_told_in_stretches() {
        let of = |ids: &[i64]| {
            stretches(&ids.iter().copied().map(MessageId::number).collect::<Vec<_>>())
        };
        assert_eq!(of(&[2, 3, 4, 7]), "ids 2-4, 7");
        assert_eq!(of(&[i64::MAX - 1, i64::MAX]), format!("ids {}-{}", i64::MAX - 1, i64::MAX));
        let mixed = [MessageId::number(8), MessageId::number(9), MessageId::text("10")];
        assert_eq!(stretches(&mixed), "ids 8-9, 10");
        let many: Vec<i64> = (0..1_000).map(|n| n * 2).collect();
        let text = of(&many);
        assert!(text.ends_with("38, … 1998: 1,000 in all"), "{text}");
    }

    #[test]
    fn a_choice_is_told_in_words() {
        let topic = Some("orders".to_owned());
        let which =
            Selection { ids: Some(vec![MessageId::number(1)]), topic, ..Selection::default() };
        assert_eq!(chosen(&which), "ids 1, topic orders");
        assert_eq!(chosen(&Selection::default()), "all");
    }
}
