use super::*;

const SCENE: Scene<'_> = Scene {
    service: "SQS",
    kind: "queue",
    place: "https://h/1/q",
    region: "eu-west-1",
    right: "sqs:SendMessage",
};

fn said(code: &str, message: &str, status: u16) -> Refusal {
    let (code, message) = (code.to_owned(), message.to_owned());
    Refusal::Said { code, message, status, retry_after: None }
}

fn failed(code: &str, sender_fault: bool) -> Reply {
    let told = Told {
        done: vec!["1".to_owned()],
        failed: vec![Failed {
            id: "0".to_owned(),
            code: code.to_owned(),
            message: "m".to_owned(),
            sender_fault,
        }],
    };
    let Judged::Each(replies) = judge(Ok(told), 2, SCENE) else { panic!() };
    assert_eq!(replies[1], Ok(Verdict::Done));
    replies[0].clone()
}

#[test]
fn an_entry_is_done_if_the_service_says_so_and_not_otherwise() {
    let told = Told { done: vec!["0".to_owned(), "7".to_owned()], failed: Vec::new() };
    let Judged::Each(replies) = judge(Ok(told), 2, SCENE) else { panic!() };
    assert_eq!(replies[0], Ok(Verdict::Done));
    let unsaid = "SQS does not say what became of it".to_owned();
    assert_eq!(replies[1], Err(Failure::Unavailable(unsaid)));
    // Said to be both, it is not done.
    let both = Failed {
        id: "0".to_owned(),
        code: "X".to_owned(),
        message: String::new(),
        sender_fault: true,
    };
    let told = Told { done: vec!["0".to_owned()], failed: vec![both] };
    let expected = Ok(Verdict::Retry("SQS answered X".to_owned()));
    assert_eq!(judge(Ok(told), 1, SCENE), Judged::Each(vec![expected]));
}

#[test]
fn each_failure_of_an_entry_has_its_meaning() {
    assert_eq!(failed("RequestThrottled", true), Ok(Verdict::Throttled { retry_after: None }));
    let text = |code: &str| format!("SQS answered {code}: m");
    assert_eq!(failed("InternalError", false), Err(Failure::Unavailable(text("InternalError"))));
    assert_eq!(failed("NewError", false), Err(Failure::Unavailable(text("NewError"))));
    assert_eq!(failed("NewError", true), Ok(Verdict::Retry(text("NewError"))));
    let invalid = "InvalidMessageContents";
    assert_eq!(failed(invalid, true), Ok(Verdict::Dead(text(invalid))));
    assert!(
        matches!(failed("KmsAccessDenied", true), Err(Failure::Broken(it)) if it.contains("encrypts"))
    );
}

#[test]
fn a_call_that_is_refused_for_all_stops_there() {
    let stop = |refusal| match judge(Err(refusal), 10, SCENE) {
        Judged::Stop(reply) => reply,
        other => panic!("{other:?}"),
    };
    assert_eq!(stop(said("Throttling", "", 400)), Ok(Verdict::Throttled { retry_after: None }));
    assert_eq!(
        stop(said("ServiceUnavailable", "", 503)),
        Err(Failure::Unavailable("SQS answered ServiceUnavailable".to_owned()))
    );
    assert_eq!(stop(Refusal::Failed(Failure::TimedOut)), Err(Failure::TimedOut));
    let advice = [
        ("QueueDoesNotExist", "https://h/1/q does not exist in eu-west-1: create it, or correct"),
        ("InvalidClientTokenId", "check the access key"),
        ("ExpiredToken", "have expired: renew them"),
        ("RequestExpired", "set this machine's clock"),
        ("AccessDenied", "allow sqs:SendMessage"),
        ("InvalidSecurity", "check `queue` and `endpoint`"),
    ];
    for (code, expected) in advice {
        let Err(Failure::Broken(problem)) = stop(said(code, "m", 400)) else { panic!("{code}") };
        assert!(problem.contains(expected), "{problem}");
    }
}

#[test]
fn a_call_that_may_be_refused_for_one_entry_is_halved_until_it_is_alone() {
    for code in ["InvalidParameterValue", "BatchRequestTooLong", "NewError"] {
        assert_eq!(judge(Err(said(code, "m", 400)), 2, SCENE), Judged::Halve, "{code}");
    }
    let alone = |code: &str| judge(Err(said(code, "m", 400)), 1, SCENE);
    let text = |code: &str| format!("SQS answered {code}: m");
    let dead = |code: &str| Judged::Each(vec![Ok(Verdict::Dead(text(code)))]);
    assert_eq!(alone("InvalidParameterValue"), dead("InvalidParameterValue"));
    assert_eq!(alone("BatchRequestTooLong"), dead("BatchRequestTooLong"));
    assert_eq!(alone("NewError"), Judged::Each(vec![Ok(Verdict::Retry(text("NewError")))]));
}

#[test]
fn a_check_says_what_to_do_and_minds_no_throttle() {
    assert_eq!(said("Throttling", "", 400).failure(SCENE), None);
    let broken = said("NewError", "m", 400).failure(SCENE);
    assert_eq!(broken, Some(Failure::Broken("SQS answered NewError: m".to_owned())));
    assert!(said("QueueDoesNotExist", "", 400).is_about_place());
    assert!(said("AccessDenied", "", 403).is_about_place());
    assert!(!said("InvalidClientTokenId", "", 403).is_about_place());
}
