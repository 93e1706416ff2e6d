//! One request from its arrival to its answer: arrive → execute → finish → answer.

use crate::{
    answer::{Flavor, dress, problem, throttled},
    app::{App, Slot},
    execution::Fate,
    ledger::{Arrival, End},
    spec::Spec,
    work::{Refusal, Work},
};
use axum::{
    body::{Bytes, to_bytes},
    extract::Request,
    http::{HeaderMap, HeaderValue, StatusCode, header, request::Parts},
    response::Response,
};
use std::{
    future::pending,
    sync::Arc,
    time::{Duration, SystemTime},
};

/// No body is read beyond this, whatever is declared.
const MAX_BODY: usize = 64 << 20;

/// A request whose body has arrived.
pub struct Asked<'a> {
    pub spec: &'a Spec,
    pub head: &'a Parts,
    pub body: &'a [u8],
    /// Whether the body could be read to its end.
    whole: bool,
}

/// Carries a request through. `understand` finds out what it asks for, once it is let in.
pub async fn exchange(
    app: Arc<App>,
    flavor: Flavor,
    request: Request,
    understand: impl FnOnce(&Asked) -> Result<Work, Refusal>,
) -> Response {
    let at = app.now();
    let (head, body) = request.into_parts();
    // Read in any case: a client that is still sending would not see its answer.
    let (body, whole) = match to_bytes(body, MAX_BODY).await {
        Ok(body) => (body, true),
        Err(_) => (Bytes::new(), false),
    };
    let Some(credential) = app.credential(flavor, &head.headers) else {
        app.ledger().turn_away(at, body.len(), app.now());
        return unauthorized(flavor);
    };
    let arrival = Arrival {
        credential: &credential,
        at,
        wall: SystemTime::now(),
        bytes: body.len(),
        affinity: flavor == Flavor::Dataverse && sends_affinity(&head.headers),
        says_when: flavor == Flavor::Dataverse,
    };
    let mut slot = match Slot::take(&app, &arrival) {
        Ok(slot) => slot,
        Err(throttle) => return throttled(flavor, &app.spec, &throttle),
    };
    let asked = Asked { spec: &app.spec, head: &head, body: &body, whole };
    let work = asked.fits().and_then(|()| understand(&asked)).and_then(|work| asked.allows(work));
    pause(slot.execute(work.as_ref().map_or(0, |work| work.writes.len()))).await;
    finish(&app, flavor, slot, work).await
}

async fn finish(
    app: &App,
    flavor: Flavor,
    mut slot: Slot,
    work: Result<Work, Refusal>,
) -> Response {
    let spec = &app.spec;
    let (response, standing) = match (slot.fate(), work) {
        (Fate::Dropped, work) => {
            slot.hang(work.ok().filter(|_| spec.drop_after_storing).as_ref());
            pending().await
        }
        (Fate::Failed, _) => {
            let message = "failed, as the spec asks";
            let response = problem(flavor, StatusCode::INTERNAL_SERVER_ERROR, message);
            (response, slot.leave(None, End::Failed))
        }
        (Fate::Unavailable, _) => {
            let message = "unavailable, as the spec asks";
            let response = problem(flavor, StatusCode::SERVICE_UNAVAILABLE, message);
            (response, slot.leave(None, End::Unavailable))
        }
        (Fate::Answered, Err(refusal)) => {
            let response = problem(flavor, refusal.status, &refusal.message);
            (response, slot.leave(None, End::Refused))
        }
        (Fate::Answered, Ok(work)) => {
            let response = (work.reply)(&work.writes);
            let success = response.status().is_success();
            let end = if success { End::Accepted } else { End::Refused };
            (response, slot.leave(Some(&work), end))
        }
    };
    dress(flavor, spec, standing, response)
}

impl Asked<'_> {
    /// The header's value, if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.headers.get(name)?.to_str().ok()
    }

    /// The body, if it is text.
    pub fn text(&self) -> Result<&str, Refusal> {
        std::str::from_utf8(self.body).map_err(|_| Refusal::bad("the body is not UTF-8"))
    }

    /// The media type of the body, without its parameters.
    pub fn media_type(&self) -> &str {
        let value = self.header(header::CONTENT_TYPE.as_str()).unwrap_or_default();
        value.split(';').next().unwrap_or_default().trim()
    }

    fn fits(&self) -> Result<(), Refusal> {
        let max = self.spec.max_bytes.unwrap_or(MAX_BODY);
        if self.whole && self.body.len() <= max {
            return Ok(());
        }
        let message = format!("more than {max} bytes in one request");
        Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, message))
    }

    fn allows(&self, work: Work) -> Result<Work, Refusal> {
        let (count, max) = (work.writes.len(), self.spec.max_group.unwrap_or(usize::MAX));
        if count <= max {
            return Ok(work);
        }
        let message = format!("{count} records in one request; at most {max}");
        Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, message))
    }
}

fn unauthorized(flavor: Flavor) -> Response {
    let message = "the Authorization header is missing, unknown or expired";
    let mut response = problem(flavor, StatusCode::UNAUTHORIZED, message);
    response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

fn sends_affinity(headers: &HeaderMap) -> bool {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    cookies
        .flat_map(|value| value.split(';'))
        .any(|cookie| cookie.trim().starts_with("ARRAffinity="))
}

async fn pause(duration: Duration) {
    // Not even a turn of the timer's wheel for services without delay.
    if !duration.is_zero() {
        tokio::time::sleep(duration).await;
    }
}
