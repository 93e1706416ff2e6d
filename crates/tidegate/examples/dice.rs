//! A workload of your own: `cargo run --example dice -p tidegate`.

use tidegate::*;

struct Dice;

impl Workload for Dice {
    type Prepared = ();
    type Output = u32;

    fn name(&self) -> &str {
        "dice"
    }

    fn prepare(&self, _: &Snapshot) -> Result<(), InvalidSnapshot> {
        Ok(())
    }

    fn run(&self, (): &(), run: &mut Run) -> Result<u32, RunError> {
        let eyes = 1 + (run.seed() % 6) as u32;
        run.number("eyes", f64::from(eyes));
        Ok(eyes)
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = open("sqlite:dice.db", Access::Create).await?;
    let workloads = Workloads::new().with(Dice);
    let batch = submit(&*store, &workloads, BatchSpec::new("dice", 100_000)).await?;
    let options = WorkerOptions { until: Until::Idle, ..WorkerOptions::new(worker_id()) };
    Worker::new(store.source(), workloads, options).run(Stop::new()).await?;
    println!("mean {}", store.aggregates(batch.id).await?.summary().numbers["eyes"].mean);
    Ok(())
}
