//! `CreateMultiple`, `UpdateMultiple`, `UpsertMultiple`, `DeleteMultiple`.

use super::{
    errors::{REFUSED, error},
    prefers, root,
    target::Target,
};
use crate::{
    answer::json,
    exchange::Asked,
    json::pick,
    work::{Refusal, Rule, Work, Write, key_of_deletion},
};
use axum::{
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde_json::{json, value::RawValue};

const NAMESPACE: &str = "Microsoft.Dynamics.CRM.";
const DETAILS: &str = "@Microsoft.PowerApps.CDS.ErrorDetails.Plugin.BulkApiErrorDetails";

/// How a bulk message is answered.
struct Manners {
    created: bool,
    elastic: bool,
    /// Whether the client asked for the errors' details.
    annotated: bool,
    context: String,
    ids: Vec<String>,
}

pub fn understand(asked: &Asked, message: &str) -> Result<Work, Refusal> {
    let elastic = asked.spec.dataverse.elastic;
    let deletes = match message.strip_prefix(NAMESPACE) {
        Some("CreateMultiple" | "UpdateMultiple" | "UpsertMultiple") => false,
        Some("DeleteMultiple") if elastic => true,
        Some("DeleteMultiple") => {
            let problem = "DeleteMultiple has not yet been implemented.";
            return Err(Refusal::new(StatusCode::NOT_IMPLEMENTED, problem));
        }
        _ => {
            let problem = format!("Resource not found for the segment '{message}'.");
            return Err(Refusal::new(StatusCode::NOT_FOUND, problem));
        }
    };
    let targets = targets(asked)?;
    let (mut writes, mut ids) = (Vec::new(), Vec::new());
    for target in targets {
        ids.push(target.id);
        let key = target.write.key;
        let key = if deletes { key_of_deletion(key) } else { key };
        writes.push(Write { key, ..target.write });
    }
    let manners = Manners {
        created: message.ends_with("CreateMultiple"),
        elastic,
        annotated: prefers(asked, wants_details),
        context: format!("{}$metadata#{message}Response", root(asked)),
        ids,
    };
    let rule = if elastic { Rule::Each } else { Rule::Together };
    Ok(Work { writes, rule, reply: Box::new(move |writes| manners.reply(writes)) })
}

fn targets(asked: &Asked) -> Result<Vec<Target>, Refusal> {
    let unreadable = |error| Refusal::bad(format!("could not read the Targets: {error}"));
    let [targets] = pick(asked.text()?, ["Targets"]).map_err(unreadable)?;
    let targets = targets.ok_or_else(|| Refusal::bad("the parameter Targets is missing"))?;
    let targets: Vec<&RawValue> = serde_json::from_str(targets.get()).map_err(unreadable)?;
    if targets.is_empty() {
        return Err(Refusal::bad("the parameter Targets is empty"));
    }
    targets.into_iter().map(|text| Target::of_bulk(asked.spec, text.get())).collect()
}

fn wants_details(preference: &str) -> bool {
    let Some(wanted) = preference.strip_prefix("odata.include-annotations=") else { return false };
    let wanted = wanted.trim_matches('"');
    wanted == "*" || wanted == "Microsoft.PowerApps.CDS.ErrorDetails.*"
}

impl Manners {
    fn reply(&self, writes: &[Write]) -> Response {
        match writes.iter().find_map(|write| write.refusal.as_ref()) {
            None if self.created => {
                let body = json!({ "@odata.context": self.context, "Ids": self.ids });
                json(StatusCode::OK, body.to_string())
            }
            None => StatusCode::NO_CONTENT.into_response(),
            Some(_) if self.elastic && self.annotated => self.partly(writes),
            Some(refusal) => error(StatusCode::BAD_REQUEST, REFUSED, &refusal.message),
        }
    }

    /// Some are stored, some are not: the details tell which.
    fn partly(&self, writes: &[Write]) -> Response {
        let details = writes.iter().zip(&self.ids).enumerate().map(|(index, (write, id))| {
            let status = write.refusal.as_ref().map_or(self.stored(), |refusal| refusal.status);
            json!({ "RequestIndex": index, "Id": id, "StatusCode": status.as_u16() })
        });
        let details = serde_json::Value::from_iter(details).to_string();
        let message = "One or more records could not be written; see the details.";
        let error = json!({ "code": REFUSED, "message": message, DETAILS: details });
        json(StatusCode::BAD_REQUEST, json!({ "error": error }).to_string())
    }

    fn stored(&self) -> StatusCode {
        if self.created { StatusCode::CREATED } else { StatusCode::NO_CONTENT }
    }
}
