//! What one acquire and release of the gate costs, alone and with others.

use criterion::{Criterion, criterion_group, criterion_main};
use std::{
    hint::black_box,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};
use tidegate_pacer::{Gate, Hint, Options, Outcome, Pacer};

fn gate(connections: usize) -> Gate {
    let options = Options { max: 64, start: Some(64), ..Options::default() };
    let names = (0..connections).map(|n| n.to_string());
    Pacer::new(options, names).expect("options are in range").gate("bench")
}

fn turn(gate: &Gate, origin: Instant) {
    if let Ok(permit) = gate.try_start(origin.elapsed()) {
        permit.end(Outcome::Succeeded, Hint::default(), origin.elapsed());
    }
}

fn alone(criterion: &mut Criterion) {
    let origin = Instant::now();
    for connections in [1, 4] {
        let gate = gate(connections);
        let name = format!("acquire and release, {connections} connections");
        criterion.bench_function(&name, |b| b.iter(|| turn(black_box(&gate), origin)));
    }
}

fn contended(criterion: &mut Criterion) {
    let (gate, origin) = (gate(1), Instant::now());
    let over = Arc::new(AtomicBool::new(false));
    let others: Vec<_> = (0..3)
        .map(|_| {
            let (gate, over) = (gate.clone(), over.clone());
            thread::spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    turn(&gate, origin);
                }
            })
        })
        .collect();
    criterion.bench_function("acquire and release, against 3 threads", |b| {
        b.iter(|| turn(black_box(&gate), origin));
    });
    over.store(true, Ordering::Relaxed);
    others.into_iter().for_each(|thread| drop(thread.join()));
}

criterion_group! {
    name = benches;
    config = Criterion::default().measurement_time(Duration::from_secs(2)).warm_up_time(Duration::from_secs(1));
    targets = alone, contended
}
criterion_main!(benches);
