use super::*;

fn fate(code: Code, only: bool, trouble: Option<Code>) -> Fate {
    let trouble = trouble.map(|code| Trouble { code, text: "trouble".to_owned() });
    judge(code, &Scene { topic: "orders", only, trouble })
}

fn plain(code: Code) -> Fate {
    fate(code, false, None)
}

#[test]
fn what_a_message_is_to_blame_for_kills_it() {
    for code in [Code::MessageSizeTooLarge, Code::InvalidRecord, Code::InvalidTopic] {
        assert!(matches!(plain(code), Fate::Is(Verdict::Dead(_))), "{code:?}");
    }
    let Fate::Is(Verdict::Dead(reason)) = plain(Code::MessageSizeTooLarge) else { panic!() };
    assert!(reason.starts_with("Kafka says MessageSizeTooLarge: "), "{reason}");
}

#[test]
fn a_missing_topic_is_named() {
    let reason = "topic `orders` does not exist: create it".to_owned();
    for code in [Code::UnknownTopic, Code::UnknownTopicOrPartition, Code::UnknownPartition] {
        assert_eq!(plain(code), Fate::Is(Verdict::Retry(reason.clone())));
    }
}

#[test]
fn what_may_pass_blames_nobody() {
    for code in [Code::BrokerTransportFailure, Code::NotEnoughReplicas, Code::Fatal] {
        assert!(matches!(plain(code), Fate::Is(Verdict::Unavailable(_))), "{code:?}");
    }
    assert_eq!(plain(Code::QueueFull), Fate::Is(Verdict::Throttled { retry_after: None }));
    assert_eq!(plain(Code::MessageTimedOut), Fate::Silent);
    let down = fate(Code::MessageTimedOut, false, Some(Code::AllBrokersDown));
    assert_eq!(down, Fate::Is(Verdict::Unavailable("trouble".to_owned())));
    assert!(matches!(plain(Code::PolicyViolation), Fate::Is(Verdict::Retry(_))));
}

#[test]
fn a_missing_right_breaks_the_sink() {
    assert!(matches!(plain(Code::ClusterAuthorizationFailed), Fate::Broken(_)));
    let denied = fate(Code::MessageTimedOut, false, Some(Code::Authentication));
    assert_eq!(denied, Fate::Broken("trouble".to_owned()));
    // Other topics may be free.
    let one = plain(Code::TopicAuthorizationFailed);
    assert!(matches!(one, Fate::Is(Verdict::Retry(_))), "{one:?}");
    let all = fate(Code::TopicAuthorizationFailed, true, None);
    assert!(matches!(all, Fate::Broken(_)), "{all:?}");
}

#[test]
fn a_sink_that_answers_nothing_is_not_there() {
    let gone = Verdict::Unavailable("gone".to_owned());
    let full = Verdict::Throttled { retry_after: None };
    let absent = Outcome::Unavailable("gone".to_owned());
    assert_eq!(outcome(vec![gone.clone(), Verdict::Behind], false), absent);
    assert_eq!(outcome(vec![gone.clone(), Verdict::Behind], true), Outcome::TimedOut);
    let throttled = outcome(vec![full.clone(), full], false);
    assert!(matches!(throttled, Outcome::Throttled { .. }), "{throttled:?}");
    for other in [Verdict::Done, Verdict::Dead("x".to_owned()), Verdict::Retry("x".to_owned())] {
        let verdicts = vec![gone.clone(), other];
        assert_eq!(outcome(verdicts.clone(), true), Outcome::Answered(verdicts));
    }
}
