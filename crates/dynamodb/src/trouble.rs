//! Sinks that take nothing at the moment, as relays say.

use crate::{
    DynamoDb,
    error::corrupt,
    item::{Item, get_number, get_text, number, text},
    tables::{NAME, SCOPE},
};
use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity};
use std::{collections::BTreeMap, time::Duration};
use tidegate_core::{
    StoreError,
    outbox::{SinkTrouble, TroubleNote},
};

const TROUBLE: &str = "trouble";

impl DynamoDb {
    /// Replaces what a relay has said before.
    pub(crate) async fn note(&self, note: &TroubleNote) -> Result<(), StoreError> {
        const OPERATION: &str = "note sinks";
        let now = self.now();
        let sink = |it: &tidegate_core::outbox::TroubledSink| {
            AttributeValue::M(Item::from([
                ("Sink".to_owned(), text(&it.sink)),
                ("Reason".to_owned(), text(&it.reason)),
                ("SinceMs".to_owned(), number(now.saturating_sub(it.lasts).as_millis())),
            ]))
        };
        let item = Item::from([
            (SCOPE.to_owned(), text(TROUBLE)),
            (NAME.to_owned(), text(&note.relay.0)),
            ("UntilMs".to_owned(), number((now + note.valid).as_millis())),
            ("Sinks".to_owned(), AttributeValue::L(note.sinks.iter().map(sink).collect())),
        ]);
        let request = self
            .client
            .sdk
            .put_item()
            .table_name(&self.address().side_table)
            .set_item(Some(item))
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        let answer = self.client.call(OPERATION, || request.clone().send()).await;
        answer.map(|_| ()).map_err(|failure| failure.into_error(OPERATION))
    }

    /// Sinks that are in trouble, as relays say whose word still counts.
    pub(crate) async fn troubled_sinks(&self) -> Result<Vec<SinkTrouble>, StoreError> {
        const OPERATION: &str = "read outbox";
        let request = self
            .client
            .sdk
            .query()
            .table_name(&self.address().side_table)
            .key_condition_expression("#scope = :scope")
            .expression_attribute_names("#scope", SCOPE)
            .expression_attribute_values(":scope", text(TROUBLE))
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        let answer = self.client.call(OPERATION, || request.clone().send()).await;
        let answer = answer.map_err(|failure| failure.into_error(OPERATION))?;
        let now = self.now();
        let mut sinks: BTreeMap<String, SinkTrouble> = BTreeMap::new();
        for item in answer.items() {
            let until: u64 = get_number(item, "UntilMs").unwrap_or_default();
            if Duration::from_millis(until) > now {
                add(&mut sinks, item, now).ok_or_else(|| {
                    corrupt(OPERATION, "what a relay says of its sinks cannot be read")
                })?;
            }
        }
        Ok(sinks.into_values().collect())
    }
}

fn add(sinks: &mut BTreeMap<String, SinkTrouble>, item: &Item, now: Duration) -> Option<()> {
    for sink in item.get("Sinks")?.as_l().ok()? {
        let sink = sink.as_m().ok()?;
        let lasts = now.saturating_sub(Duration::from_millis(get_number(sink, "SinceMs")?));
        let (name, reason) =
            (get_text(sink, "Sink")?.to_owned(), get_text(sink, "Reason")?.to_owned());
        let known = sinks.entry(name.clone()).or_insert_with(|| SinkTrouble {
            sink: name,
            reason: reason.clone(),
            lasts,
            relays: 0,
        });
        known.relays += 1;
        if lasts > known.lasts {
            (known.lasts, known.reason) = (lasts, reason);
        }
    }
    Some(())
}
