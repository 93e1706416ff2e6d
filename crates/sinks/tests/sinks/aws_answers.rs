//! What SQS and SNS answer, and what follows from it.

use crate::{
    aws_stub::{Bodies, Say, Stub},
    brokers::{send, verdicts},
};
use std::{io::Write, process::Command, time::Duration};
use tidegate_core::sink::{Item, Outcome, Sink, Verdict};

/// Items with keys of their own; their payloads are their places.
fn items(payloads: &[&'static str]) -> Vec<Item<'static>> {
    let item =
        |text: &&'static str| Item { topic: "t", key: Some(text), ..Item::record(text, text) };
    payloads.iter().map(item).collect()
}

fn done(bodies: &Bodies) -> Say {
    Say::Each(vec![None; bodies.len()])
}

#[tokio::test]
async fn a_throttle_is_for_the_pacer_and_nothing_is_sent_twice() {
    for (status, code) in [
        (400, "ThrottlingException"),
        (403, "RequestThrottled"),
        (429, "Other"),
        (400, "OverLimit"),
    ] {
        let stub = Stub::start(move |_| Say::All(status, code)).await;
        for sink in stub.both("") {
            let Outcome::Throttled { retry_after: None, reason } =
                send(&*sink, &items(&["1", "2"])).await
            else {
                panic!("{code}")
            };
            assert!(reason.ends_with("asks for a slower pace"), "{reason}");
        }
        assert_eq!(stub.calls().len(), 2, "{code}");
    }
    let stub = Stub::start(|_| Say::Later(503, "ThrottlingException", 7)).await;
    for sink in stub.both("") {
        let outcome = send(&*sink, &items(&["1"])).await;
        let seven = Some(Duration::from_secs(7));
        assert!(matches!(outcome, Outcome::Throttled { retry_after, .. } if retry_after == seven));
    }
}

#[tokio::test]
async fn each_message_of_a_batch_has_a_fate_of_its_own() {
    let stub = Stub::start(|bodies| {
        let fate = |body: &String| match body.as_str() {
            "throttled" => Some(("ThrottledException", true)),
            "internal" => Some(("InternalError", false)),
            "invalid" => Some(("InvalidMessageContents", true)),
            "other" => Some(("SomethingElse", true)),
            _ => None,
        };
        Say::Each(bodies.iter().map(fate).collect())
    })
    .await;
    for sink in stub.both("") {
        let all = items(&["1", "throttled", "internal", "invalid", "other", "6"]);
        let found = verdicts(&*sink, &all).await;
        assert_eq!((&found[0], &found[5]), (&Verdict::Done, &Verdict::Done));
        assert_eq!(found[1], Verdict::Throttled { retry_after: None });
        assert!(
            matches!(&found[2], Verdict::Unavailable(it) if it.ends_with("InternalError: said so"))
        );
        assert!(matches!(&found[3], Verdict::Dead(it) if it.contains("InvalidMessageContents")));
        assert!(matches!(&found[4], Verdict::Retry(it) if it.contains("SomethingElse")));
    }
}

#[tokio::test]
async fn nothing_is_done_that_the_service_did_not_say() {
    let all = items(&["1", "2", "3"]);
    let stub = Stub::start(|_| Say::Each(vec![None])).await;
    for sink in stub.both("") {
        let found = verdicts(&*sink, &all).await;
        assert_eq!(found[0], Verdict::Done);
        let unsaid =
            |it: &Verdict| matches!(it, Verdict::Unavailable(why) if why.contains("does not say"));
        assert!(found[1..].iter().all(unsaid), "{found:?}");
    }
    for say in
        [|| Say::Nothing, || Say::Lost, || Say::All(500, "InternalError"), || Say::All(502, "")]
    {
        let stub = Stub::start(move |_| say()).await;
        for sink in stub.both("") {
            let outcome = send(&*sink, &all).await;
            assert!(matches!(outcome, Outcome::Unavailable(_)), "{outcome:?}");
        }
        assert_eq!(stub.calls().len(), 2);
    }
    let stub = Stub::start(|_| Say::Hang).await;
    for sink in stub.both("timeout = 0.2") {
        assert_eq!(send(&*sink, &all).await, Outcome::TimedOut);
    }
}

#[tokio::test]
async fn a_message_for_whose_sake_a_batch_is_refused_is_found() {
    let stub = Stub::start(|bodies| match bodies.iter().any(|body| body == "bad") {
        true => Say::All(400, "InvalidParameterValue"),
        false => done(bodies),
    })
    .await;
    for sink in stub.both("") {
        let found = verdicts(&*sink, &items(&["1", "2", "bad", "4", "5", "6", "7", "8"])).await;
        assert!(matches!(&found[2], Verdict::Dead(it) if it.contains("InvalidParameterValue")));
        assert_eq!(found.iter().filter(|it| **it == Verdict::Done).count(), 7);
    }
}

#[tokio::test]
async fn what_is_the_same_for_all_says_what_to_do() {
    let cases = [
        (403, "AccessDenied", "Send"),
        (403, "InvalidClientTokenId", "check the access key"),
        (403, "ExpiredToken", "renew them"),
        (400, "KmsDisabled", "the key that encrypts"),
    ];
    for (status, code, expected) in cases {
        let stub = Stub::start(move |_| Say::All(status, code)).await;
        for sink in stub.both("") {
            let Outcome::Broken(problem) = send(&*sink, &items(&["1", "2"])).await else {
                panic!("{code}")
            };
            let right = if expected == "Send" {
                problem.contains("allow sqs:SendMessage") || problem.contains("allow sns:Publish")
            } else {
                problem.contains(expected)
            };
            assert!(right, "{problem}");
        }
        assert_eq!(stub.calls().len(), 2, "one call each, {code}");
    }
    let stub = Stub::start(|_| Say::All(403, "AccessDenied")).await;
    let error = stub.sqs("").check().await.unwrap_err().to_string();
    assert!(error.contains("allow sqs:GetQueueAttributes"), "{error}");
}

/// Carries out one of the tests below with an environment in which the SDK finds nothing but `env`.
fn in_an_empty_environment(test: &str, env: &[(&str, &str)]) {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "--ignored", "--nocapture"]).arg(format!("aws_answers::{test}"));
    child.env_clear().env("AWS_EC2_METADATA_DISABLED", "true").env("HOME", "/nowhere");
    let output = child.envs(env.iter().copied()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
fn a_check_without_credentials_or_region_says_what_to_set() {
    in_an_empty_environment("without_credentials", &[]);
    in_an_empty_environment("without_region", &[]);
}

#[test]
fn credentials_are_those_of_the_config_or_of_a_profile_or_of_the_environment() {
    let mut files = tempfile::NamedTempFile::new().unwrap();
    let profile = "[other]\naws_access_key_id = of-profile\naws_secret_access_key = s\n";
    files.write_all(profile.as_bytes()).unwrap();
    let environment = [
        ("AWS_ACCESS_KEY_ID", "of-environment"),
        ("AWS_SECRET_ACCESS_KEY", "s"),
        ("AWS_REGION", "eu-west-1"),
        ("AWS_SHARED_CREDENTIALS_FILE", files.path().to_str().unwrap()),
    ];
    in_an_empty_environment("with_credentials", &environment);
}

/// A sink to a service that has nothing against anybody; all that is not declared is looked for.
async fn lookup(stub: &Stub, rest: &str) -> Result<(), String> {
    let queue = "queue = 'http://127.0.0.1/1/q'\nallow = ['127.0.0.1']";
    let config = format!("endpoint = '{}'\n{queue}\n{rest}", stub.url());
    let sink =
        tidegate_sinks::sqs::Sqs::new(&toml::from_str(&config).unwrap(), &|_| Some("s".to_owned()))
            .unwrap();
    sink.check().await.map(drop).map_err(|error| error.to_string())
}

#[tokio::test]
#[ignore = "needs an environment of its own"]
async fn without_credentials() {
    let stub = Stub::start(done).await;
    let error = lookup(&stub, "region = 'eu-west-1'").await.unwrap_err();
    assert!(error.starts_with("no AWS credentials were found: set AWS_ACCESS_KEY_ID"), "{error}");
    let error = lookup(&stub, "region = 'eu-west-1'\nprofile = 'nobody'").await.unwrap_err();
    assert!(error.starts_with("the profile nobody has no AWS credentials: add them"), "{error}");
}

#[tokio::test]
#[ignore = "needs an environment of its own"]
async fn without_region() {
    let stub = Stub::start(done).await;
    let error = lookup(&stub, "").await.unwrap_err();
    assert!(error.starts_with("no AWS region is known: set `region`, or AWS_REGION"), "{error}");
}

#[tokio::test]
#[ignore = "needs an environment of its own"]
async fn with_credentials() {
    let stub = Stub::start(done).await;
    let keys = "access_key_id = 'of-config'\nsecret_access_key = { env = 'SECRET' }";
    for rest in ["", "profile = 'other'", keys] {
        assert_eq!(lookup(&stub, rest).await, Ok(()));
    }
    assert_eq!(stub.signers(), ["of-environment", "of-profile", "of-config"]);
}
