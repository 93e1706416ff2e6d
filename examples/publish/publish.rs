//! Messages in the same transaction as the data, with sqlx:
//!
//! ```sh
//! cargo run -p tidegate-example-publish -- postgres://user@host/db
//! ```

use serde_json::json;
use sqlx::{Connection, PgConnection};

const ORDERS: &str = "
create table if not exists orders (
    number bigint generated always as identity primary key,
    item text not null,
    shipped boolean not null default false
)";

/// Writes an order and its message: both are there after the commit, or neither.
async fn place(connection: &mut PgConnection, item: &str) -> Result<i64, sqlx::Error> {
    let mut transaction = connection.begin().await?;
    let order = "insert into orders (item) values ($1) returning number";
    let number: i64 = sqlx::query_scalar(order).bind(item).fetch_one(&mut *transaction).await?;
    sqlx::query("select tidegate.publish($1, $2, $3::jsonb, $4::jsonb)")
        .bind("orders.created")
        .bind(number.to_string())
        .bind(json!({ "number": number, "item": item }).to_string())
        .bind(json!({ "ce-source": "/shop" }).to_string())
        .execute(&mut *transaction)
        .await?;
    transaction.commit().await?;
    Ok(number)
}

/// Publishes several messages in one statement, in the order of the arrays.
async fn ship(connection: &mut PgConnection, numbers: &[i64]) -> Result<(), sqlx::Error> {
    let mut transaction = connection.begin().await?;
    let shipped = "update orders set shipped = true where number = any($1)";
    sqlx::query(shipped).bind(numbers).execute(&mut *transaction).await?;
    let keys: Vec<String> = numbers.iter().map(i64::to_string).collect();
    let payload = |number| json!({ "number": number }).to_string();
    let payloads: Vec<String> = numbers.iter().map(payload).collect();
    sqlx::query("select tidegate.publish_many($1, $2, $3::jsonb[])")
        .bind(vec!["orders.shipped"; numbers.len()])
        .bind(keys)
        .bind(payloads)
        .execute(&mut *transaction)
        .await?;
    transaction.commit().await
}

/// Rolled back: no order, no message.
async fn change_of_mind(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    let mut transaction = connection.begin().await?;
    place(&mut transaction, "milk").await?;
    transaction.rollback().await
}

/// Refused: the transaction has failed, and the order is not there either.
async fn refusal(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    let mut transaction = connection.begin().await?;
    sqlx::query("insert into orders (item) values ('sugar')").execute(&mut *transaction).await?;
    let published = sqlx::query("select tidegate.publish($1, $2, $3::jsonb)")
        .bind("orders.*")
        .bind(None::<String>)
        .bind(json!({ "item": "sugar" }).to_string())
        .execute(&mut *transaction)
        .await;
    match published {
        Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some("TG400") => {
            println!("refused with TG400: {}", error.message());
            transaction.rollback().await
        }
        Err(error) => Err(error),
        Ok(_) => transaction.commit().await,
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).ok_or("usage: publish postgres://user@host/db")?;
    let mut connection = PgConnection::connect(&url).await?;
    sqlx::query(ORDERS).execute(&mut connection).await?;
    let tea = place(&mut connection, "tea").await?;
    let coffee = place(&mut connection, "coffee").await?;
    ship(&mut connection, &[tea, coffee]).await?;
    change_of_mind(&mut connection).await?;
    refusal(&mut connection).await?;
    connection.close().await?;
    Ok(())
}
