//! `$batch`: single writes in one request, each with its own answer.

use super::{
    ROOT, errors,
    multipart::{boundary, finish, parts, push},
    operation::Operation,
    prefers, root,
};
use crate::{
    exchange::Asked,
    work::{Refusal, Rule, Work, Write, key, until_refused},
};
use axum::{
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};

/// As Dataverse documents it.
const MAX_OPERATIONS: usize = 1000;

pub fn understand(asked: &Asked) -> Result<Work, Refusal> {
    let boundary = boundary(asked.header("content-type").unwrap_or_default());
    let boundary = boundary.ok_or_else(|| Refusal::bad("send multipart/mixed with a boundary"))?;
    let parts = parts(asked.text()?, boundary).map_err(Refusal::bad)?;
    if parts.is_empty() || parts.len() > MAX_OPERATIONS {
        let problem = format!("{} operations; send 1 to {MAX_OPERATIONS}", parts.len());
        return Err(Refusal::bad(problem));
    }
    let operations = parts
        .iter()
        .map(|part| Operation::read(asked.spec, part.method, target(part.url), part.body));
    let (writes, entities): (Vec<_>, Vec<_>) =
        operations.map(|operation| (operation.write, operation.entity)).unzip();
    let rule = if prefers(asked, |it| it == "odata.continue-on-error") {
        Rule::Each
    } else {
        Rule::UntilRefused
    };
    let (root, answer_boundary) = (root(asked), format!("batchresponse_{:032x}", key(boundary)));
    let reply = Box::new(move |writes: &[Write]| {
        // The first refusal is the last answer, unless the client wants to go on.
        let answered = match rule {
            Rule::UntilRefused => &writes[..writes.len().min(until_refused(writes) + 1)],
            _ => writes,
        };
        let mut body = String::new();
        for (write, entity) in answered.iter().zip(&entities) {
            answer(&mut body, &answer_boundary, write, entity.as_ref().map(|it| root.clone() + it));
        }
        finish(&mut body, &answer_boundary);
        let failed = rule == Rule::UntilRefused && writes.iter().any(Write::is_refused);
        let status = if failed { StatusCode::BAD_REQUEST } else { StatusCode::OK };
        mixed(status, &answer_boundary, body)
    });
    Ok(Work { writes, rule, reply })
}

/// What comes after the root in an absolute or relative address, without its query.
fn target(url: &str) -> &str {
    let path = url.split('?').next().unwrap_or_default();
    path.split_once(ROOT).map_or(path, |(_, target)| target).trim_start_matches('/')
}

fn answer(body: &mut String, boundary: &str, write: &Write, entity: Option<String>) {
    match (&write.refusal, &entity) {
        (Some(refusal), _) => {
            let headers = [("Content-Type", "application/json; odata.metadata=minimal")];
            let error = errors::body(errors::refusal_code(refusal), &refusal.message);
            push(body, boundary, &refusal.status.to_string(), &headers, &error);
        }
        (None, Some(entity)) => {
            let headers = [("Location", entity.as_str()), ("OData-EntityId", entity)];
            push(body, boundary, "204 No Content", &headers, "");
        }
        (None, None) => push(body, boundary, "204 No Content", &[], ""),
    }
}

fn mixed(status: StatusCode, boundary: &str, body: String) -> Response {
    let content_type = format!("multipart/mixed; boundary={boundary}");
    (status, [(header::CONTENT_TYPE, content_type)], body).into_response()
}
