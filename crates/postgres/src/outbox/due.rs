//! Reads what was set aside and is due.

use super::claim::message;
use crate::{
    decode::{get, stuck_state},
    pool::Pool,
};
use tidegate_core::{
    Message, StoreError,
    limits::MAX_BEHIND,
    outbox::{ClaimRequest, Origin},
};
use tokio_postgres::{Row, types::Type};

const OPERATION: &str = "claim messages that were set aside";

pub(super) async fn due(
    pool: &Pool,
    name: &str,
    request: &ClaimRequest,
) -> Result<Vec<Message>, StoreError> {
    let lanes: Vec<i16> = request.lanes.iter().map(|lane| lane.0 as i16).collect();
    let under_way: Vec<i64> = request.under_way.iter().map(|id| id.0).collect();
    let rows = pool
        .query(
            OPERATION,
            include_str!("../sql/outbox/due.sql"),
            &[
                (&lanes, Type::INT2_ARRAY),
                (&under_way, Type::INT8_ARRAY),
                (&request.closed, Type::TEXT_ARRAY),
                (&(request.most_due as i64), Type::INT8),
                (&(MAX_BEHIND as i64), Type::INT8),
                (&(request.most_bytes as i64), Type::INT8),
            ],
        )
        .await?;
    let read = |row: &Row| message(name, row, origin(row)?);
    let mut due: Vec<Message> = rows.iter().map(read).collect::<Result<_, _>>()?;
    due.sort_unstable_by_key(|message| message.id);
    Ok(due)
}

fn origin(row: &Row) -> Result<Origin, StoreError> {
    let attempts: i32 = get(OPERATION, row, "attempts")?;
    let (attempts, sink) = (attempts.unsigned_abs(), get(OPERATION, row, "sink")?);
    Ok(Origin::Aside { attempts, sink, waited_for: stuck_state(OPERATION, row)? })
}
