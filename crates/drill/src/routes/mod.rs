//! Which handler answers which path.

mod records;

use crate::{answer::json, app::App, dataverse};
use axum::{
    Router,
    extract::{DefaultBodyLimit, State},
    http::StatusCode,
    response::Response,
    routing::get,
};
use std::sync::Arc;

/// All routes.
pub fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/health", get(health))
        .route("/counters", get(counters).delete(reset))
        .merge(records::router())
        .merge(dataverse::router())
        // `exchange` has its own.
        .layer(DefaultBodyLimit::disable())
        .with_state(app)
}

async fn health() -> Response {
    json(StatusCode::OK, r#"{"status":"ok"}"#.to_owned())
}

async fn counters(State(app): State<Arc<App>>) -> Response {
    match serde_json::to_string(&app.counters()) {
        Ok(body) => json(StatusCode::OK, body),
        Err(error) => json(StatusCode::INTERNAL_SERVER_ERROR, format!("\"{error}\"")),
    }
}

async fn reset(State(app): State<Arc<App>>) -> StatusCode {
    app.ledger().reset();
    StatusCode::NO_CONTENT
}
