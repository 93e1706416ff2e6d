//! One record in Dataverse's clothes.

use crate::{
    json::{id_text, pick},
    spec::Spec,
    work::{Refusal, Write, is_unlucky, key},
};

/// A record and the id under which it is stored.
#[derive(Debug)]
pub struct Target {
    pub write: Write,
    pub id: String,
}

impl Target {
    /// A member of `Targets`. Its table is in `@odata.type`; without that nothing can be done.
    pub fn of_bulk(spec: &Spec, text: &str) -> Result<Self, Refusal> {
        let [of_type] = pick(text, ["@odata.type"]).map_err(unreadable)?;
        let of_type = of_type.and_then(id_text).ok_or_else(|| {
            Refusal::bad("each item of Targets must have the property `@odata.type`")
        })?;
        let table = of_type.rsplit('.').next().unwrap_or_default();
        Self::read(spec, text, &format!("{table}id"), None)
    }

    /// The body of a single write to `set(id)`, or to `set` if the id is not known.
    pub fn of_single(spec: &Spec, text: &str, id: Option<&str>) -> Result<Self, Refusal> {
        Self::read(spec, text, "@odata.id", id)
    }

    fn read(
        spec: &Spec,
        text: &str,
        primary_key: &str,
        path_id: Option<&str>,
    ) -> Result<Self, Refusal> {
        let names = [&spec.id_field, &spec.bad_field, primary_key, "@odata.id"];
        let [declared, bad, primary, odata_id] = pick(text, names).map_err(unreadable)?;
        let primary = primary.and_then(id_text);
        let declared = declared.and_then(id_text);
        let odata_id = odata_id.and_then(id_text);
        let ids = [declared.as_deref(), primary.as_deref(), path_id, odata_id.as_deref()];
        let key = key(ids.into_iter().flatten().next().unwrap_or(text));
        let id = primary.as_deref().or(path_id).map_or_else(|| guid(key), str::to_owned);
        let bad = bad.is_some_and(|bad| bad.get() == "true");
        let refused = bad || is_unlucky(key, spec.bad_share, spec.seed);
        Ok(Self { write: Write { key, refusal: refused.then(refusal) }, id })
    }
}

/// The hash of a record as the id that Dataverse would have given it.
pub fn guid(key: u128) -> String {
    let hex = format!("{key:032x}");
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

fn refusal() -> Refusal {
    Refusal::bad("The record is refused, as the spec asks.")
}

fn unreadable(error: serde_json::Error) -> Refusal {
    Refusal::bad(format!("Error identified in Payload provided by the user: {error}"))
}
