//! Items → writes, writes → the body of a batch.

use super::{
    config::{Config, ID_FIELD},
    id::PointId,
};
use crate::{
    ConfigError,
    pattern::{Pattern, verbatim},
    record::Record,
};
use std::collections::HashSet;
use tidegate_core::{
    headers::{KEY_USE, OPERATION, ORDER_ONLY},
    sink::Item,
};
use url::Url;

/// Where Qdrant keeps a point's payload, and so do messages in its own form.
const PAYLOAD: &str = "payload";

/// The most bytes in the name of a collection: it names a directory.
const MAX_NAME: usize = 255;

/// How requests are made.
#[derive(Clone, Debug)]
pub struct Form {
    pub collection: Pattern,
    base: Url,
    vector_field: String,
    payload_field: Option<String>,
    id_field: String,
}

/// What is to be done to one point of a collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    pub collection: String,
    id: PointId,
    /// The point in JSON; a point without one is deleted.
    point: Option<String>,
}

/// Whether a write is about a point that must have been there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    New,
    Existing,
}

impl Target {
    fn of(operation: &str) -> Self {
        if operation == "UPDATE" { Self::Existing } else { Self::New }
    }
}

/// The body of a request, and how many answers it must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    pub body: String,
    pub operations: usize,
}

impl Form {
    pub fn new(config: &Config) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            collection: config.collection()?,
            base: config.url()?,
            vector_field: config.vector_field.clone(),
            payload_field: config.payload_field.clone(),
            id_field: config.id_field.clone(),
        })
    }

    /// Qdrant's address.
    pub fn base(&self) -> &Url {
        &self.base
    }

    /// The address of all collections, or of what is below them. No segment is `.` or `..`.
    pub fn at(&self, segments: &[&str]) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().push("collections").extend(segments);
        }
        url
    }

    /// Where a collection's points are written, and visible when the answer comes.
    pub fn batch_at(&self, collection: &str) -> Url {
        let mut url = self.at(&[collection, "points", "batch"]);
        url.set_query(Some("wait=true"));
        url
    }

    /// What an item asks for, or why it cannot be.
    pub fn write(&self, item: &Item<'_>) -> Result<Write, String> {
        let collection = self.collection.fill(item, verbatim)?;
        check_name(&collection)?;
        let operation = item.headers.get(OPERATION).unwrap_or("INSERT");
        let operation = operation.trim().to_ascii_uppercase();
        let (id, point) = match operation.as_str() {
            "INSERT" | "UPDATE" => {
                let record = Record::read(item.text()?)?;
                let (id, own) = match self.id(item, Some(&record), Target::of(&operation)) {
                    Ok(named) => named,
                    // What it lacks first of all may be something else.
                    Err(reason) => return Err(self.vector(&record).err().unwrap_or(reason)),
                };
                (id, Some(self.point(id, own, &record)?))
            }
            "DELETE" => {
                // It needs no payload, but one with an id says more than the key.
                let record = item.text().ok().and_then(|text| Record::read(text).ok());
                (self.id(item, record.as_ref(), Target::Existing)?.0, None)
            }
            _ => return Err("the header `operation` is none of INSERT, UPDATE, DELETE".to_owned()),
        };
        Ok(Write { collection, id, point })
    }

    /// What the item's point is called, and whether a field of the record says so; or why nobody can tell.
    /// A write to a point that nobody meant succeeds in Qdrant, and so does a deletion of one that never
    /// was: so a name is never guessed.
    fn id(
        &self,
        item: &Item<'_>,
        record: Option<&Record<'_>>,
        target: Target,
    ) -> Result<(PointId, bool), String> {
        let field = &self.id_field;
        let own = record.and_then(|record| record.text(field).ok());
        if let Some(id) = own.and_then(|text| PointId::from_field(&text)) {
            return Ok((id, true));
        }
        if item.headers.get(KEY_USE) == Some(ORDER_ONLY) {
            return Err(format!(
                "nothing says which point is meant: field `{field}` is missing or is not a point's id, \
                 and the key only keeps the order"
            ));
        }
        if target == Target::Existing && field != ID_FIELD {
            return Err(format!(
                "nothing says which point is meant: `id_field` says that field `{field}` does, but it is \
                 missing or is not a point's id"
            ));
        }
        let name = match target {
            Target::New => item.key.or(Some(item.id)),
            Target::Existing => item.key,
        };
        let name = name.filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| {
            format!("nothing says which point is meant: it needs a key, or field `{field}`")
        })?;
        Ok((PointId::of(name), false))
    }

    /// The record's vector, or vectors by name.
    fn vector<'r>(&self, record: &'r Record<'_>) -> Result<&'r str, String> {
        let field = &self.vector_field;
        let vector = record.raw(field).unwrap_or("null");
        if vector.starts_with(['[', '{']) {
            return Ok(vector);
        }
        Err(format!("field `{field}` holds no vector: it needs a list or an object"))
    }

    fn point(&self, id: PointId, own: bool, record: &Record<'_>) -> Result<String, String> {
        let vector = self.vector(record)?;
        let mut point = format!("{{\"id\":{},\"vector\":{vector},\"payload\":", id.to_json());
        self.payload(&mut point, own, record)?;
        point.push('}');
        Ok(point)
    }

    /// The point's payload. It is always sent: without one, an old one might stay.
    fn payload(&self, out: &mut String, own: bool, record: &Record<'_>) -> Result<(), String> {
        let (id, vector) = (self.id_field.as_str(), self.vector_field.as_str());
        // What is in Qdrant's own form needs no config to be understood.
        let plain = |payload: &str| payload.starts_with('{') && record.only(&[id, vector, PAYLOAD]);
        let field = match &self.payload_field {
            Some(field) => Some((field.as_str(), record.raw(field).unwrap_or("null"))),
            None => record.raw(PAYLOAD).filter(|it| plain(it)).map(|payload| (PAYLOAD, payload)),
        };
        match field {
            Some((_, payload)) if payload.starts_with('{') => out.push_str(payload),
            Some((_, "null")) => out.push_str("{}"),
            Some((field, _)) => return Err(format!("field `{field}` is no JSON object")),
            // An id that names no point would be lost if it were left out.
            None => record.write(out, &[], |name| name != vector && (name != id || !own)),
        }
        Ok(())
    }
}

/// What Qdrant takes as the name of a collection. A name is part of an address, too.
fn check_name(name: &str) -> Result<(), String> {
    const TAKEN: [char; 9] = ['<', '>', ':', '"', '/', '\\', '|', '?', '*'];
    let unfit = |c: char| TAKEN.contains(&c) || c.is_control();
    if name.len() > MAX_NAME || name.contains(unfit) || matches!(name, "." | "..") {
        return Err("no collection can have the name that the item asks for: it is too long, or \
                    has a control character or one of < > : \" / \\ | ? *"
            .to_owned());
    }
    Ok(())
}

/// The writes in their order: those of one kind that follow each other are one operation, as long
/// as each is to another point. Which of two writes to a point in one operation wins is not said.
pub fn batch<'w>(writes: impl Iterator<Item = &'w Write>) -> Batch {
    let mut body = "{\"operations\":[".to_owned();
    let (mut operations, mut deletes, mut points) = (0, false, HashSet::new());
    for write in writes {
        let same = operations > 0 && deletes == write.point.is_none();
        if same && points.insert(write.id) {
            body.push(',');
        } else {
            body.push_str(if operations == 0 { "" } else { "]}}," });
            body.push_str(match write.point {
                Some(_) => "{\"upsert\":{\"points\":[",
                None => "{\"delete\":{\"points\":[",
            });
            deletes = write.point.is_none();
            points = HashSet::from([write.id]);
            operations += 1;
        }
        match &write.point {
            Some(point) => body.push_str(point),
            None => body.push_str(&write.id.to_json()),
        }
    }
    body.push_str(if operations == 0 { "]}" } else { "]}}]}" });
    Batch { body, operations }
}

#[cfg(test)]
mod tests;
