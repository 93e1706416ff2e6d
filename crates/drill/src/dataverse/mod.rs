//! As much of Dataverse's Web API as loading needs, after Microsoft's public documentation: tokens,
//! bulk messages, `$batch`, single writes, service protection limits.

mod batch;
mod errors;
mod headers;
mod multipart;
mod multiple;
mod operation;
mod target;
mod token;
mod tokens;

#[cfg(test)]
mod tests;

pub use errors::{code, error, throttled};
pub use headers::dress;
pub use tokens::Tokens;

use crate::{
    answer::{Flavor, json},
    app::App,
    exchange::{Asked, exchange},
    work::{Rule, Work},
};
use axum::{
    Router,
    extract::{Path, Request, State},
    http::StatusCode,
    response::Response,
    routing::{get, post},
};
use serde_json::json;
use std::sync::Arc;

/// Where the Web API begins.
const ROOT: &str = "/api/data/v9.2/";

pub fn router() -> Router<Arc<App>> {
    let single = post(write_one).patch(write_one).delete(write_one);
    Router::new()
        .route("/oauth/{tenant}/oauth2/v2.0/token", post(token::issue))
        .route("/api/data/v9.2/WhoAmI", get(who_am_i))
        .route("/api/data/v9.2/$batch", post(write_batch))
        .route("/api/data/v9.2/{target}", single)
        .route("/api/data/v9.2/{set}/{message}", post(write_multiple))
}

async fn who_am_i(State(app): State<Arc<App>>, request: Request) -> Response {
    exchange(app, Flavor::Dataverse, request, |asked| {
        let body = json!({
            "@odata.context": format!("{}$metadata#Microsoft.Dynamics.CRM.WhoAmIResponse", root(asked)),
            "BusinessUnitId": target::guid(1),
            "UserId": target::guid(2),
            "OrganizationId": target::guid(3),
        })
        .to_string();
        let reply = Box::new(move |_: &[_]| json(StatusCode::OK, body.clone()));
        Ok(Work { writes: Vec::new(), rule: Rule::Each, reply })
    })
    .await
}

async fn write_multiple(
    State(app): State<Arc<App>>,
    Path((_, message)): Path<(String, String)>,
    request: Request,
) -> Response {
    exchange(app, Flavor::Dataverse, request, |asked| multiple::understand(asked, &message)).await
}

async fn write_batch(State(app): State<Arc<App>>, request: Request) -> Response {
    exchange(app, Flavor::Dataverse, request, batch::understand).await
}

async fn write_one(
    State(app): State<Arc<App>>,
    Path(target): Path<String>,
    request: Request,
) -> Response {
    exchange(app, Flavor::Dataverse, request, |asked| operation::understand(asked, &target)).await
}

/// The Web API's address, as the client wrote it.
fn root(asked: &Asked) -> String {
    #[cfg(feature = "tls")]
    let scheme = if asked.spec.tls.is_some() { "https" } else { "http" };
    #[cfg(not(feature = "tls"))]
    let scheme = "http";
    format!("{scheme}://{}{ROOT}", asked.header("host").unwrap_or("localhost"))
}

/// Whether the client asked for this in a `Prefer` header.
fn prefers(asked: &Asked, wanted: impl Fn(&str) -> bool) -> bool {
    let values =
        asked.head.headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|preference| wanted(preference.trim()))
}
