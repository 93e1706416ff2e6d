use crate::client::{Answer, Client, start};
use tidegate_drill::Spec;

const KIND: (&str, &str) = ("content-type", "multipart/mixed; boundary=\"batch_1\"");
const CONTINUE: (&str, &str) = ("prefer", "odata.continue-on-error");

fn batch(operations: &[(&str, &str)]) -> String {
    let part = |(line, body): &(&str, &str)| {
        format!(
            "--batch_1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
             {line} HTTP/1.1\r\nContent-Type: application/json\r\n\r\n{body}\r\n"
        )
    };
    operations.iter().map(part).collect::<String>() + "--batch_1--\r\n"
}

async fn send(client: &Client, headers: &[(&str, &str)], body: &str) -> Answer {
    client.send("POST", "/api/data/v9.2/$batch", headers, body).await
}

/// The status lines in a batch's answer, in order.
fn statuses(answer: &Answer) -> Vec<&str> {
    answer.body.lines().filter_map(|line| line.strip_prefix("HTTP/1.1 ")).collect()
}

const SOME: [(&str, &str); 4] = [
    ("POST /api/data/v9.2/tasks", "{\"id\":1}"),
    ("PATCH /api/data/v9.2/tasks(2)", "{\"bad\":true}"),
    ("PATCH http://127.0.0.1/api/data/v9.2/tasks(3)?x=y", "{\"name\":\"z\"}"),
    ("DELETE tasks(4)", ""),
];

#[tokio::test]
async fn each_operation_has_its_answer_in_order() {
    let it = start(Spec::default());
    let answer = send(&it.client, &[KIND, CONTINUE], &batch(&SOME)).await;
    assert_eq!(answer.status, 200);
    let expected = ["204 No Content", "400 Bad Request", "204 No Content", "204 No Content"];
    assert_eq!(statuses(&answer), expected);
    let kind = answer.header("content-type").unwrap();
    let boundary = kind.strip_prefix("multipart/mixed; boundary=").unwrap();
    assert!(answer.body.starts_with(&format!("--{boundary}\r\n")));
    assert!(answer.body.ends_with(&format!("--{boundary}--\r\n")));
    assert!(answer.body.contains(r#"{"error":{"code":"0x80040237","#));
    let place = format!("OData-EntityId: {}/api/data/v9.2/tasks(3)\r\n", it.service.url());
    assert!(answer.body.contains(&place), "{}", answer.body);
    let seen = it.service.counters();
    assert_eq!((seen.requests, seen.records, seen.refused_records, seen.accepted), (1, 3, 1, 1));
}

#[tokio::test]
async fn without_continue_on_error_the_first_failure_is_the_last_answer() {
    let it = start(Spec::default());
    let answer = send(&it.client, &[KIND], &batch(&SOME)).await;
    assert_eq!(answer.status, 400);
    assert_eq!(statuses(&answer), ["204 No Content", "400 Bad Request"]);
    assert_eq!(it.service.counters().records, 1, "what came before it stays");
    let good = send(&it.client, &[KIND], &batch(&SOME[2..])).await;
    assert_eq!((good.status, statuses(&good).len()), (200, 2));
}

#[tokio::test]
async fn what_is_no_batch_is_refused() {
    let it = start(Spec::default());
    let too_many = batch(&vec![SOME[0]; 1001]);
    let nested =
        "--batch_1\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c--\r\n--batch_1--";
    for body in [too_many.as_str(), &batch(&[]), "", nested] {
        assert_eq!(send(&it.client, &[KIND], body).await.status, 400);
    }
    let unknown = send(&it.client, &[], &batch(&SOME)).await;
    assert_eq!(unknown.status, 400);
    let read =
        send(&it.client, &[KIND, CONTINUE], &batch(&[("GET /api/data/v9.2/tasks", "")])).await;
    assert_eq!(statuses(&read), ["501 Not Implemented"]);
}
