//! Single writes: `POST set`, `PATCH set(id)`, `DELETE set(id)`, by themselves or in a batch.

use super::{
    errors::{error, refusal_code},
    root,
    target::Target,
};
use crate::{
    exchange::Asked,
    spec::Spec,
    work::{Refusal, Rule, Work, Write, key, key_of_deletion},
};
use axum::{
    http::{HeaderName, StatusCode, header},
    response::{IntoResponse, Response},
};

/// A write that was understood, or is refused.
#[derive(Debug)]
pub struct Operation {
    pub write: Write,
    /// What it wrote, such as `accounts(00000000-0000-0000-0000-000000000001)`.
    pub entity: Option<String>,
}

impl Operation {
    pub fn read(spec: &Spec, method: &str, target: &str, body: &str) -> Self {
        Self::try_read(spec, method, target, body).unwrap_or_else(|refusal| {
            let write = Write { key: key(target), refusal: Some(refusal) };
            Self { write, entity: None }
        })
    }

    fn try_read(spec: &Spec, method: &str, target: &str, body: &str) -> Result<Self, Refusal> {
        match (method, split(target)) {
            ("POST", (set, None)) => {
                let target = Target::of_single(spec, body, None)?;
                Ok(Self { write: target.write, entity: Some(format!("{set}({})", target.id)) })
            }
            ("PATCH", (_, Some(id))) => {
                let write = Target::of_single(spec, body, Some(id))?.write;
                Ok(Self { write, entity: Some(target.to_owned()) })
            }
            ("DELETE", (_, Some(id))) => {
                let write = Write { key: key_of_deletion(key(id)), refusal: None };
                Ok(Self { write, entity: None })
            }
            _ => {
                let problem = format!("The drill does not know {method} of {target}.");
                Err(Refusal::new(StatusCode::NOT_IMPLEMENTED, problem))
            }
        }
    }
}

pub fn understand(asked: &Asked, target: &str) -> Result<Work, Refusal> {
    let method = asked.head.method.as_str();
    let Operation { write, entity } = Operation::read(asked.spec, method, target, asked.text()?);
    let entity = entity.map(|entity| root(asked) + &entity);
    let reply = Box::new(move |writes: &[Write]| reply(writes, entity.as_deref()));
    Ok(Work { writes: vec![write], rule: Rule::Together, reply })
}

fn reply(writes: &[Write], entity: Option<&str>) -> Response {
    if let Some(refusal) = writes.iter().find_map(|write| write.refusal.as_ref()) {
        return error(refusal.status, refusal_code(refusal), &refusal.message);
    }
    let mut response = StatusCode::NO_CONTENT.into_response();
    if let Some(entity) = entity {
        for name in [header::LOCATION, HeaderName::from_static("odata-entityid")] {
            crate::answer::set(&mut response, name, entity.to_owned());
        }
    }
    response
}

/// `set(id)` in its parts.
fn split(target: &str) -> (&str, Option<&str>) {
    match target.split_once('(') {
        Some((set, id)) => (set, Some(id.strip_suffix(')').unwrap_or(id))),
        None => (target, None),
    }
}
