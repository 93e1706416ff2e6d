use super::*;

const HOUR: Duration = Duration::from_secs(3600);

fn settle(cache: &mut Cache, lifetime: Duration, now: Instant) -> Arc<Token> {
    cache.settle(Ok((Secret::new("token"), lifetime)), now, now).unwrap()
}

#[test]
fn a_token_is_renewed_before_it_expires() {
    let (mut cache, start) = (Cache::default(), Instant::now());
    assert!(matches!(cache.find(start), Found::Nothing));
    settle(&mut cache, HOUR, start);
    let after = |seconds| start + Duration::from_secs(seconds);
    assert!(matches!(cache.find(after(3299)), Found::Fresh(_)));
    assert!(matches!(cache.find(after(3300)), Found::Due(_)));
    assert!(matches!(cache.find(after(3600)), Found::Nothing));
    settle(&mut cache, Duration::from_secs(10), start);
    assert!(matches!(cache.find(after(7)), Found::Fresh(_)));
    assert!(matches!(cache.find(after(8)), Found::Due(_)));
    settle(&mut cache, Duration::MAX, start);
}

#[test]
fn who_waited_shares_what_the_renewal_brought() {
    let (mut cache, start) = (Cache::default(), Instant::now());
    let later = start + Duration::from_secs(1);
    assert!(cache.settled_since(start, start).is_none());
    let failure = Failure::Broken("no".to_owned());
    cache.settle(Err(failure.clone()), start, later).unwrap_err();
    assert_eq!(cache.settled_since(start, later).unwrap().unwrap_err(), failure);
    assert!(cache.settled_since(later + HOUR, later + HOUR).is_none(), "asked after it");
    settle(&mut cache, HOUR, later);
    assert!(cache.settled_since(start, later).unwrap().is_ok());
}

#[test]
fn a_refused_token_is_replaced_once() {
    let (mut cache, now) = (Cache::default(), Instant::now());
    let first = settle(&mut cache, HOUR, now);
    assert!(!cache.refuse(&first) && !cache.refuse(&first), "by two requests at once");
    let second = settle(&mut cache, HOUR, now);
    assert!(!cache.refuse(&first), "by one that was still under way");
    assert!(matches!(cache.find(now), Found::Fresh(_)), "the new one stays");
    assert!(cache.refuse(&second), "a new one does not help");

    let third = settle(&mut cache, HOUR, now);
    third.accept();
    assert!(!cache.refuse(&third), "it worked: it was withdrawn since");
}

#[test]
fn an_issuers_answer_is_read_without_showing_the_token() {
    let answer = |status, body: &str| {
        issued("app", &Reply { status, body: body.as_bytes().to_vec(), ..Reply::default() })
    };
    let expected = Ok((Secret::new("t"), HOUR));
    assert_eq!(answer(200, r#"{"access_token":"t","expires_in":3600}"#), expected);
    assert_eq!(answer(200, r#"{"access_token":"t","expires_in":"3600"}"#), expected);
    let damaged = answer(200, r#"{"access_tokens":"hunter2"}"#).unwrap_err();
    let problem = "the answer to user `app` holds no token".to_owned();
    assert_eq!(damaged, Failure::Unavailable(problem));
    let wrong = r#"{"error":"invalid_client","error_description":"AADSTS7000215: wrong"}"#;
    let problem =
        "the client id or secret of user `app` is refused: it answered 401: AADSTS7000215: wrong";
    assert_eq!(answer(401, wrong), Err(Failure::Broken(problem.to_owned())));
    assert!(matches!(answer(404, ""), Err(Failure::Broken(_))));
    assert!(matches!(answer(429, ""), Err(Failure::Unavailable(_))));
    assert!(matches!(answer(503, ""), Err(Failure::Unavailable(_))));
}
