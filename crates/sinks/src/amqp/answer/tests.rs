use super::*;

fn error(code: u16, text: &str) -> Error {
    ErrorKind::ProtocolError(AMQPError::from_id(code, text.into()).unwrap()).into()
}

fn item(id: &'static str, payload: &'static str) -> Item<'static> {
    Item { topic: "t", ..Item::record(id, payload) }
}

#[test]
fn what_closed_the_channel_is_said_of_all_that_were_on_it() {
    let gone: Error = ErrorKind::ChannelsLimitReached.into();
    let fates = vec![
        Fate::Answered { has_it: true, returned: None },
        Fate::Failed(gone),
        Fate::Failed(error(404, "NOT_FOUND - no exchange 'x' in vhost '/'")),
        Fate::Known(Ok(Verdict::Dead("no".to_owned()))),
    ];
    let items = [item("1", ""), item("2", ""), item("3", ""), item("4", "")];
    let replies = judge(fates, &items, "x");
    assert_eq!(replies[0], Ok(Verdict::Done));
    for reply in &replies[1..3] {
        let Err(Failure::Broken(problem)) = reply else { panic!("{reply:?}") };
        assert!(problem.starts_with("there is no exchange `x`: create it"), "{problem}");
    }
    assert_eq!(replies[3], Ok(Verdict::Dead("no".to_owned())));
}

#[test]
fn a_message_that_is_too_large_is_alone_at_fault() {
    let text = "PRECONDITION_FAILED - message size 6 is larger than configured max size 3";
    let fates = vec![Fate::Failed(error(406, text)), Fate::Failed(error(406, text))];
    let replies = judge(fates, &[item("1", "abc"), item("2", "abcdef")], "");
    assert!(matches!(replies[0], Err(Failure::Unavailable(_))), "{replies:?}");
    assert!(matches!(&replies[1], Ok(Verdict::Dead(it)) if it.contains("size 6")), "{replies:?}");
}

#[test]
fn a_refused_message_is_tried_again() {
    let fates = vec![Fate::Answered { has_it: false, returned: None }];
    let replies = judge(fates, &[item("1", "")], "");
    assert!(matches!(&replies[0], Ok(Verdict::Retry(it)) if it.contains("nack")), "{replies:?}");
}

#[test]
fn refusals_to_connect_are_told_from_absence() {
    let of = |code, text| unconnected(&error(code, text), "h:1");
    assert!(matches!(of(403, "ACCESS_REFUSED - Login was refused"), Failure::Broken(_)));
    assert!(matches!(of(530, "NOT_ALLOWED - vhost x not found"), Failure::Broken(_)));
    let full = of(530, "NOT_ALLOWED - connection limit (1) is reached");
    assert!(matches!(full, Failure::Unavailable(_)));
    assert!(matches!(of(541, "INTERNAL_ERROR - vhost is down"), Failure::Unavailable(_)));
}

#[test]
fn a_queue_of_another_kind_is_its_messages_problem() {
    let Ok(Verdict::Retry(reason)) = undeclared(&error(406, "inequivalent arg"), "q") else {
        panic!()
    };
    assert!(reason.starts_with("the queue `q` is there, but is no durable quorum"), "{reason}");
    assert!(matches!(undeclared(&error(403, "no"), "q"), Err(Failure::Broken(_))));
}

#[test]
fn a_returned_message_is_known_by_its_id_whichever_answer_it_came_with() {
    let returned =
        Returned { id: "2".to_owned(), exchange: "e".to_owned(), routing_key: "k".to_owned() };
    let fates = vec![
        Fate::Answered { has_it: true, returned: Some(returned) },
        Fate::Answered { has_it: true, returned: None },
    ];
    let replies = judge(fates, &[item("1", ""), item("2", "")], "e");
    let reason = "no queue is bound to the exchange `e` for the routing key `k`: bind one";
    assert_eq!(replies, [Ok(Verdict::Done), Ok(Verdict::Retry(reason.to_owned()))]);
}
