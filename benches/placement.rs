//! How long a decision takes: usable nodes to placement, "it cannot fit", and a forecast.
//!
//! Run `cargo bench --no-default-features --bench placement`. Fabrics of 16 nodes a leaf and 16 leaves a spine. Besides
//! times it prints what each decision allocates.

use divan::{AllocProfiler, Bencher, black_box};
use lockstep::cluster::{Capacity, Held, Holding, Ledger};
use lockstep::fabric::tree::{Below, Declared, Fabric};
use lockstep::nodeset::NodeSet;
use lockstep::placement::Planner;
use lockstep::placement::mix::Mix;
use lockstep::request::{GresKind, JobId, Memory, Request, Share};

#[global_allocator]
static ALLOC: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

const SIZES: [usize; 3] = [1_024, 10_240, 102_400];
const LEAF: usize = 16;
const SPINE: usize = 16;

fn fabric(nodes: usize) -> Fabric {
    let leaves = nodes / LEAF;
    let spines = leaves.div_ceil(SPINE);
    let under = |spine: usize| (spine * SPINE..((spine + 1) * SPINE).min(leaves)).collect();
    let leaf = |leaf: usize| (leaf * LEAF..(leaf + 1) * LEAF).map(|node| node as u32).collect();
    let mut declared: Vec<Declared> =
        (0..leaves).map(|l| Declared { name: format!("leaf{l}"), below: Below::Nodes(leaf(l)) }).collect();
    declared.extend(
        (0..spines).map(|s| Declared { name: format!("spine{s}"), below: Below::Switches(under(s)) }),
    );
    declared
        .push(Declared { name: "core".into(), below: Below::Switches((leaves..leaves + spines).collect()) });
    Fabric::new(nodes, &declared)
}

fn gang(nodes: u32) -> Request {
    let share = Share { whole_node: true, cpus: 1, memory: Memory::Megabytes(0), gres: vec![] };
    Request::new(nodes, share)
}

/// A busy machine: every tenth leaf is free, and a fifth of the other nodes.
fn busy(nodes: usize) -> NodeSet {
    let is_free = |node: &u32| node / LEAF as u32 % 10 == 3 || node.is_multiple_of(5);
    NodeSet::from_nodes(nodes, (0..nodes as u32).filter(is_free))
}

fn place(bencher: Bencher, nodes: usize, usable: &NodeSet, gang: &Request, fits: bool) {
    let fabric = fabric(nodes);
    let mut planner = Planner::new(&fabric, &Mix::default());
    let home = planner.home(&fabric, fabric.listed(), gang).expect("some domain could hold it");
    let ledger = Ledger::new(nodes);
    bencher.bench_local(|| {
        let placed = planner.place(&fabric, &ledger, black_box(usable), &home, gang, &[]);
        assert_eq!(placed.is_ok(), fits);
    });
}

/// A gang of 8 on a busy machine: a leaf among all leaves.
#[divan::bench(args = SIZES)]
fn a_leaf_on_a_busy_machine(bencher: Bencher, nodes: usize) {
    place(bencher, nodes, &busy(nodes), &gang(8), true);
}

/// A gang of 8 on an idle machine, where every leaf would do.
#[divan::bench(args = SIZES)]
fn a_leaf_on_an_idle_machine(bencher: Bencher, nodes: usize) {
    place(bencher, nodes, &NodeSet::full(nodes), &gang(8), true);
}

/// A gang of 64 under one spine of a busy machine: the dynamic programme over its leaves.
#[divan::bench(args = SIZES)]
fn a_spine_on_a_busy_machine(bencher: Bencher, nodes: usize) {
    place(bencher, nodes, &busy(nodes), &gang(64), true);
}

/// A gang of 64 on an idle machine, where every spine would do.
#[divan::bench(args = SIZES)]
fn a_spine_on_an_idle_machine(bencher: Bencher, nodes: usize) {
    place(bencher, nodes, &NodeSet::full(nodes), &gang(64), true);
}

/// A gang of 16 where every leaf has one node too few.
#[divan::bench(args = SIZES)]
fn it_cannot_fit(bencher: Bencher, nodes: usize) {
    let broken = NodeSet::from_nodes(nodes, (0..nodes as u32).filter(|node| node % LEAF as u32 != 5));
    place(bencher, nodes, &broken, &gang(16), false);
}

/// One GPU of eight, on a machine where every other node is in use.
#[divan::bench(args = SIZES)]
fn one_gpu_on_a_busy_machine(bencher: Bencher, nodes: usize) {
    let fabric = fabric(nodes);
    let gpu = GresKind(0);
    let mut ledger = Ledger::new(nodes);
    ledger.set_slot_kind(gpu);
    for node in 0..nodes as u32 {
        ledger.set_capacity(node, Capacity { cpus: 64, memory_mb: 0, gres: vec![(gpu, 8)] });
        if node % 2 == 0 {
            let held = Held { cpus: 8, memory_mb: 0, gres: vec![(gpu, u64::from(node % 8 + 1))] };
            ledger.hold(JobId(node), Holding { nodes: vec![(node, held)], end: 1_000, suspended: false });
        }
    }
    let share = Share { whole_node: false, cpus: 8, memory: Memory::Megabytes(0), gres: vec![(gpu, 1)] };
    let request = Request::new(1, share);
    let mut planner = Planner::new(&fabric, &Mix::default());
    let usable = planner.free(&ledger, nodes, &request.share, 500).clone();
    let home = planner.home(&fabric, fabric.listed(), &request).expect("a leaf");
    bencher.bench_local(|| {
        let placed = planner.place(&fabric, &ledger, black_box(&usable), &home, &request, &[]);
        assert!(placed.is_ok());
    });
}

/// When a gang of 64 could start on a full machine; the release times are known from the gang before.
#[divan::bench(args = SIZES)]
fn forecast_on_a_full_machine(bencher: Bencher, nodes: usize) {
    let fabric = fabric(nodes);
    let mut ledger = Ledger::new(nodes);
    for node in 0..nodes as u32 {
        ledger.set_capacity(node, Capacity { cpus: 64, memory_mb: 0, gres: vec![] });
    }
    for job in 0..(nodes / 32) as u32 {
        let held = (job * 32..job * 32 + 32).map(|node| (node, Held { cpus: 64, ..Held::default() }));
        let end = 1_000 + i64::from(job.wrapping_mul(2_654_435_761) % 10_000);
        ledger.hold(JobId(job), Holding { nodes: held.collect(), end, suspended: false });
    }
    let gang = gang(64);
    let mut planner = Planner::new(&fabric, &Mix::default());
    let home = planner.home(&fabric, fabric.listed(), &gang).expect("some domain could hold it");
    bencher.bench_local(|| {
        let forecast = planner.forecast(&fabric, &ledger, fabric.listed(), &home, &gang, black_box(500));
        forecast.map(|forecast| forecast.start)
    });
}
