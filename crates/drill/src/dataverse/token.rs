//! Client credentials for a token, as Microsoft's identity platform gives it.

use crate::{answer::json, app::App};
use axum::{
    Form,
    extract::{State, rejection::FormRejection},
    http::StatusCode,
    response::Response,
};
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

/// What a client sends.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct Wish {
    grant_type: String,
    client_id: String,
    client_secret: String,
    scope: String,
}

/// Never throttled: the identity platform is another service.
pub async fn issue(
    State(app): State<Arc<App>>,
    wish: Result<Form<Wish>, FormRejection>,
) -> Response {
    let Ok(Form(wish)) = wish else {
        return refuse(StatusCode::BAD_REQUEST, "invalid_request", "the body is no form");
    };
    if let Err((status, error, description)) = check(&app, &wish) {
        return refuse(status, error, description);
    }
    let lifetime = app.spec.dataverse.token_lifetime;
    let token = app.tokens().issue(&wish.client_id, lifetime, app.now());
    app.ledger().count_token();
    let expires = lifetime.as_secs();
    let body = json!({
        "token_type": "Bearer",
        "expires_in": expires,
        "ext_expires_in": expires,
        "access_token": token,
    });
    json(StatusCode::OK, body.to_string())
}

fn check(app: &App, wish: &Wish) -> Result<(), (StatusCode, &'static str, &'static str)> {
    if wish.grant_type != "client_credentials" {
        let description = "AADSTS70003: the grant type must be client_credentials";
        return Err((StatusCode::BAD_REQUEST, "unsupported_grant_type", description));
    }
    if wish.client_id.is_empty() || wish.client_secret.is_empty() || wish.scope.is_empty() {
        let description = "AADSTS900144: client_id, client_secret and scope are needed";
        return Err((StatusCode::BAD_REQUEST, "invalid_request", description));
    }
    let users = &app.spec.dataverse.users;
    match users.get(&wish.client_id) {
        None if users.is_empty() => Ok(()),
        None => {
            let description = "AADSTS700016: the client_id is unknown";
            Err((StatusCode::BAD_REQUEST, "unauthorized_client", description))
        }
        Some(secret) if *secret == wish.client_secret => Ok(()),
        Some(_) => {
            let description = "AADSTS7000215: the client_secret is wrong";
            Err((StatusCode::UNAUTHORIZED, "invalid_client", description))
        }
    }
}

fn refuse(status: StatusCode, error: &str, description: &str) -> Response {
    json(status, json!({ "error": error, "error_description": description }).to_string())
}
