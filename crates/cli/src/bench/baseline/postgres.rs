//! One row per run in PostgreSQL. The statements stand beside the code that they explain: this is a
//! measuring rod, not a store.

use super::{Finished, Session, Table};
use crate::bench::meter::connect;
use tokio_postgres::{Client, Statement};

const CREATE: &str = "
    drop schema if exists tidegate_bench cascade;
    create schema tidegate_bench;
    create table tidegate_bench.run (
        id bigint primary key,
        status text not null default 'pending',
        started_at timestamptz,
        finished_at timestamptz
    );
    create index run_pending on tidegate_bench.run (id) where status = 'pending';
    create table tidegate_bench.result (
        run_id bigint primary key,
        body text not null
    );";

/// Removes everything that the bench made.
pub const REMOVE: &str = "drop schema if exists tidegate_bench cascade";

const ENQUEUE: &str =
    "insert into tidegate_bench.run (id) select generate_series(0::bigint, $1::bigint - 1)";

const LOAD: &str = "select status, started_at::text from tidegate_bench.run where id = $1";

const CLAIM: &str = "
    update tidegate_bench.run set status = 'running', started_at = now()
    where id = $1 and status = 'pending'";

const DELETE: &str = "delete from tidegate_bench.result where run_id = $1";

const INSERT: &str = "insert into tidegate_bench.result (run_id, body) values ($1, $2)";

const COMPLETE: &str =
    "update tidegate_bench.run set status = 'completed', finished_at = now() where id = $1";

const CLAIM_ROWS: &str = "
    update tidegate_bench.run set status = 'running', started_at = now()
    where id in (
        select id from tidegate_bench.run where status = 'pending'
        order by id limit $1 for update skip locked
    )
    returning id";

const INSERT_ROWS: &str = "
    insert into tidegate_bench.result (run_id, body)
    select * from unnest($1::bigint[], $2::text[])";

const COMPLETE_ROWS: &str =
    "update tidegate_bench.run set status = 'completed', finished_at = now() where id = any($1)";

/// Tables in a schema of the bench's own.
pub struct Tables {
    url: String,
    client: Client,
}

impl Tables {
    pub async fn create(url: &str) -> anyhow::Result<Self> {
        let client = connect(url).await?;
        client.batch_execute(CREATE).await?;
        Ok(Self { url: url.to_owned(), client })
    }
}

impl Table for Tables {
    type Session = Connection;

    async fn enqueue(&self, runs: u64) -> anyhow::Result<()> {
        self.client.execute(ENQUEUE, &[&(runs as i64)]).await?;
        self.client.batch_execute("analyze tidegate_bench.run").await?;
        Ok(())
    }

    async fn session(&self) -> anyhow::Result<Connection> {
        Connection::open(&self.url).await
    }

    async fn remove(self) -> anyhow::Result<()> {
        Ok(self.client.batch_execute(REMOVE).await?)
    }
}

/// A connection with its statements prepared.
pub struct Connection {
    client: Client,
    load: Statement,
    claim: Statement,
    delete: Statement,
    insert: Statement,
    complete: Statement,
    claim_rows: Statement,
    insert_rows: Statement,
    complete_rows: Statement,
}

impl Connection {
    async fn open(url: &str) -> anyhow::Result<Self> {
        let client = connect(url).await?;
        Ok(Self {
            load: client.prepare(LOAD).await?,
            claim: client.prepare(CLAIM).await?,
            delete: client.prepare(DELETE).await?,
            insert: client.prepare(INSERT).await?,
            complete: client.prepare(COMPLETE).await?,
            claim_rows: client.prepare(CLAIM_ROWS).await?,
            insert_rows: client.prepare(INSERT_ROWS).await?,
            complete_rows: client.prepare(COMPLETE_ROWS).await?,
            client,
        })
    }
}

impl Session for Connection {
    async fn load(&mut self, id: i64) -> anyhow::Result<()> {
        self.client.query_one(&self.load, &[&id]).await?;
        Ok(())
    }

    async fn claim(&mut self, id: i64) -> anyhow::Result<()> {
        self.client.execute(&self.claim, &[&id]).await?;
        Ok(())
    }

    async fn delete_results(&mut self, id: i64) -> anyhow::Result<()> {
        self.client.execute(&self.delete, &[&id]).await?;
        Ok(())
    }

    async fn insert_result(&mut self, id: i64, result: &str) -> anyhow::Result<()> {
        self.client.execute(&self.insert, &[&id, &result]).await?;
        Ok(())
    }

    async fn complete(&mut self, id: i64) -> anyhow::Result<()> {
        self.client.execute(&self.complete, &[&id]).await?;
        Ok(())
    }

    async fn claim_rows(&mut self, most: i64) -> anyhow::Result<Vec<i64>> {
        let rows = self.client.query(&self.claim_rows, &[&most]).await?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    async fn flush(&mut self, finished: &Finished) -> anyhow::Result<()> {
        let transaction = self.client.transaction().await?;
        transaction.execute(&self.insert_rows, &[&finished.ids, &finished.results]).await?;
        transaction.execute(&self.complete_rows, &[&finished.ids]).await?;
        Ok(transaction.commit().await?)
    }
}
