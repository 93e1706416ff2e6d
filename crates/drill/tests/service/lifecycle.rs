use crate::client::{Client, LONG, NDJSON, start};
use std::net::TcpStream;
use tidegate_drill::{Counters, Rate, Service, Spec};

#[tokio::test]
async fn only_loopback_is_served() {
    let error = Service::start(Spec::default(), "0.0.0.0:0".parse().unwrap()).unwrap_err();
    assert!(error.to_string().contains("no loopback address"), "{error}");
    let spec = Spec { jitter: -1.0, ..Spec::default() };
    let error = Service::start(spec, "127.0.0.1:0".parse().unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "`jitter` is -1: use 0 or more");
}

#[test]
fn without_a_runtime_it_does_not_start() {
    assert!(Service::start(Spec::default(), "127.0.0.1:0".parse().unwrap()).is_err());
}

#[tokio::test]
async fn stopping_closes_everything_and_frees_the_port() {
    let it = start(Spec { delay: LONG, ..Spec::default() });
    let (addr, url) = (it.service.addr(), it.service.url());
    let client = Client::new(url.clone());
    let hanging = tokio::spawn(async move { client.lines("{}").await });
    it.until(|seen| seen.in_flight == 1).await;
    it.service.stop().await;
    assert!(hanging.await.is_err(), "its answer never came");
    assert!(TcpStream::connect(addr).is_err());
    let again = Service::start(Spec::default(), addr).unwrap();
    assert_eq!(again.url(), url);
    assert_eq!(Client::new(url).lines("{}").await.status, 200);
}

#[tokio::test]
async fn dropping_stops_it() {
    let it = start(Spec::default());
    let addr = it.service.addr();
    drop(it.service);
    while TcpStream::connect(addr).is_ok() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn counters_are_read_and_start_again_over_http() {
    let rate = Some(Rate { per_second: 1 });
    let it = start(Spec { rate, ..Spec::default() });
    assert_eq!(it.client.send("GET", "/health", &[], "").await.status, 200);
    it.client.lines("{\"id\":1}").await;
    it.client.lines("{\"id\":1}").await;
    let read = it.client.send("GET", "/counters", &[], "").await;
    let read: Counters = serde_json::from_str(&read.body).unwrap();
    assert_eq!(read, it.service.counters());
    assert_eq!((read.requests, read.throttled.total), (2, 1));
    assert_eq!(it.client.send("DELETE", "/counters", &[], "").await.status, 204);
    assert_eq!(it.service.counters().requests, 0);
    assert_eq!(it.client.lines("{\"id\":1}").await.status, 200, "the window is empty again");
    assert_eq!((it.service.counters().records, it.service.counters().duplicates), (1, 0));
}

#[tokio::test]
async fn only_known_credentials_are_let_in() {
    let authorization = vec!["Bearer right".to_owned(), "Basic dTpw".to_owned()];
    let it = start(Spec { authorization, ..Spec::default() });
    let write = async |value| {
        let headers = [NDJSON, ("authorization", value)];
        it.client.send("POST", "/records", &headers, "{}").await.status
    };
    assert_eq!(write("Bearer right").await, 200);
    assert_eq!(write("Basic dTpw").await, 200);
    assert_eq!(write("Bearer wrong").await, 401);
    let nobody = it.client.lines("{}").await;
    assert_eq!((nobody.status, nobody.header("www-authenticate")), (401, Some("Bearer")));
    let seen = it.service.counters();
    assert_eq!((seen.requests, seen.accepted, seen.unauthorized), (4, 2, 2));
}
