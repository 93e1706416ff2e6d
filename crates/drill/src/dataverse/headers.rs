//! What each of Dataverse's answers carries: what is left of the budgets, and the affinity cookie.

use crate::{answer::set, limits::Standing};
use axum::{
    http::{HeaderName, HeaderValue, header},
    response::Response,
};
use std::time::Duration;

/// Names the web server. There is only one here, so that its value never changes.
const AFFINITY: HeaderValue =
    HeaderValue::from_static("ARRAffinity=7469646567617465; Path=/; HttpOnly");

pub fn dress(standing: Standing, response: &mut Response) {
    let headers = response.headers_mut();
    headers.insert(HeaderName::from_static("odata-version"), HeaderValue::from_static("4.0"));
    headers.insert(header::SET_COOKIE, AFFINITY);
    if let Some(left) = standing.requests {
        let name = HeaderName::from_static("x-ms-ratelimit-burst-remaining-xrm-requests");
        set(response, name, left.to_string());
    }
    if let Some(left) = standing.execution {
        let name = HeaderName::from_static("x-ms-ratelimit-time-remaining-xrm-requests");
        set(response, name, grouped(left));
    }
}

/// Seconds as Dataverse writes them, such as `1,199.37`.
pub fn grouped(left: Duration) -> String {
    let hundredths = left.as_millis() / 10;
    let (mut seconds, hundredths) = (hundredths / 100, hundredths % 100);
    let mut text = format!(".{hundredths:02}");
    while seconds >= 1000 {
        text.insert_str(0, &format!(",{:03}", seconds % 1000));
        seconds /= 1000;
    }
    format!("{seconds}{text}")
}
