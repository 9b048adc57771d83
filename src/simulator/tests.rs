use super::figures::SizeFigures;
use super::trace::{Synthetic, Trace, TraceJob};
use super::workload::Reading;
use super::*;
use std::collections::BTreeMap;

/// Jobs of (submit, run, limit, GPUs).
fn workload(machine: &Machine, jobs: &[(i64, i64, i64, u32)]) -> Workload {
    let job = |&(submit, run, limit, devices): &(i64, i64, i64, u32)| {
        let limit = Some(limit);
        TraceJob { submit, run, limit, devices }
    };
    let trace = Trace { jobs: jobs.iter().map(job).collect(), skipped: BTreeMap::new() };
    Workload::new(&trace, machine, Reading { overestimate: 1.0, low_share: 0.0, seed: 1 })
}

fn all_counts() -> Assumptions {
    Assumptions { warm_up: 0.0, ..Assumptions::default() }
}

fn run(machine: &Machine, workload: &Workload, assumptions: &Assumptions, method: Method) -> Figures {
    simulate(machine, workload, assumptions, method, |_| ())
}

/// How long the job of a size waited that no other has.
fn wait(figures: &Figures, gpus: u32) -> f64 {
    let of_size: Vec<&SizeFigures> = figures.by_size.iter().filter(|size| size.gpus == gpus).collect();
    assert_eq!((of_size.len(), of_size[0].jobs), (1, 1));
    of_size[0].wait_mean_s
}

fn synthetic(machine: &Machine, jobs: usize, load: f64) -> Workload {
    let trace = Synthetic { jobs, load, capacity_devices: machine.gpus(), ..Synthetic::default() }.generate();
    Workload::new(&trace, machine, Reading { overestimate: 2.0, low_share: 0.3, seed: 1 })
}

#[test]
fn jobs_behind_a_reservation_start_only_if_they_do_not_delay_it() {
    let machine = Machine::regular(2, 2, 1, 8);
    let jobs = [
        (0, 100, 100, 8), // on one of two nodes
        (1, 50, 50, 16),  // waits for both, until 100
        (2, 60, 60, 7),   // ends at 62
        (3, 200, 200, 6), // would stand in the way
    ];
    for method in [Method::Lockstep, Method::SlurmTree, Method::FirstFit, Method::Pack] {
        let figures = run(&machine, &workload(&machine, &jobs), &all_counts(), method);
        let waits = [8, 16, 7, 6].map(|gpus| wait(&figures, gpus));
        assert_eq!(waits, [0.0, 99.0, 0.0, 147.0], "{}", figures.name);
        assert_eq!(figures.makespan_s, 350, "{}", figures.name);
    }
}

#[test]
fn pods_of_two_gangs_can_wait_for_each_other() {
    // Four nodes, of which one is in use at first: three workers each of two gangs of four never fit together.
    let machine = Machine::regular(6, 6, 1, 8);
    let jobs = [(0, 100, 100, 8), (1, 1000, 1000, 31), (1, 1000, 1000, 32), (2000, 10, 10, 1)];
    let workload = workload(&machine, &jobs);
    let lockstep = run(&machine, &workload, &all_counts(), Method::Lockstep);
    assert_eq!((wait(&lockstep, 31), wait(&lockstep, 32)), (0.0, 1000.0));
    assert_eq!(lockstep.deadlocked_gpu_hours, 0.0);
    let pods = run(&machine, &workload, &all_counts(), Method::Pods);
    assert_eq!(wait(&pods, 31), 0.0);
    // The second has one node from the start and another from 100 on, gives both back at 601 and takes them again.
    assert!(pods.deadlocked_gpu_hours > 3.0, "{}", pods.deadlocked_gpu_hours);
}

#[test]
fn a_gang_beyond_its_home_level_runs_slower() {
    let machine = Machine::regular(4, 2, 2, 8);
    // One node of each leaf is taken when a pair comes.
    let jobs = [(0, 1000, 1000, 5), (0, 1000, 1000, 6), (0, 1000, 1000, 16), (2000, 1, 1, 1)];
    let workload = workload(&machine, &jobs);
    let first_fit = run(&machine, &workload, &all_counts(), Method::FirstFit);
    let lockstep = run(&machine, &workload, &all_counts(), Method::Lockstep);
    // First fit has the small jobs on nodes 0 and 1, so the pair is on one leaf; Lockstep too.
    assert_eq!((first_fit.gangs_spread_pct, lockstep.gangs_spread_pct), (0.0, 0.0));
    assert_eq!(machine.levels_beyond(&[1, 2]), 1);
    assert_eq!(machine.levels_beyond(&[0, 1, 2]), 0);
    let spread = [(0, 500, 500, 5), (0, 1000, 1000, 16), (0, 1000, 1000, 7), (2000, 1, 1, 1)];
    let spread = run(&machine, &super::tests::workload(&machine, &spread), &all_counts(), Method::FirstFit);
    assert_eq!(spread.gangs_spread_pct, 100.0, "nodes 1 and 2");
    let of_pair = 16.0 * 1000.0;
    let small = 5.0 * 500.0 + 7.0 * 1000.0;
    let utilisation = (of_pair / 0.8 + small) / (32.0 * 2000.0);
    assert!((spread.utilisation - utilisation).abs() < 1e-6);
    assert!((spread.effective_utilisation - (of_pair + small) / (32.0 * 2000.0)).abs() < 1e-6);
}

#[test]
fn every_job_runs_under_every_method_and_the_same_every_time() {
    let machine = Machine::regular(48, 4, 3, 8);
    let workload = synthetic(&machine, 1500, 0.95);
    for method in Method::ALL {
        let figures = run(&machine, &workload, &all_counts(), method);
        assert_eq!(figures.jobs, 1500, "{}", figures.name);
        assert!(figures.utilisation > 0.5 && figures.utilisation <= 1.0, "{}", figures.name);
        assert!(figures.effective_utilisation <= figures.utilisation + 1e-9, "{}", figures.name);
        let again = run(&machine, &workload, &all_counts(), method);
        assert_eq!(serde_json::to_string(&figures).unwrap(), serde_json::to_string(&again).unwrap());
        match method {
            Method::Lockstep | Method::Pack => {
                assert_eq!((figures.gangs_spread_pct, figures.spread), (0.0, 0.0))
            }
            _ => assert!(figures.gangs_spread_pct > 0.0, "{}", figures.name),
        }
    }
}

#[test]
fn what_fails_or_is_preempted_starts_again() {
    let machine = Machine::regular(48, 4, 3, 8);
    let workload = synthetic(&machine, 600, 1.2);
    for method in Method::ALL {
        let rough = Assumptions { mtbf: Some(20_000.0), repair: 60, preempt: true, ..all_counts() };
        let figures = run(&machine, &workload, &rough, method);
        assert!(figures.failures > 0 && figures.lost_gpu_hours > 0.0, "{}", figures.name);
        assert_eq!(figures.jobs, 600, "{}", figures.name);
        assert_eq!(figures.preemptions > 0, method != Method::Pods, "{}", figures.name);
        let sum: usize = figures.by_size.iter().map(|size| size.jobs).sum();
        assert_eq!(sum, figures.jobs);
    }
}
