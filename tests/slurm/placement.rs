//! Gangs under contention: whole, inside one domain, on the fewest leaves, or waiting with nothing held.

use crate::harness::{Cluster, Install, Job, Nodes, Setup, Wiring};
use std::time::{Duration, Instant};

/// Watches a cluster until every job has ended, and holds each look at it against what must always be true.
fn watch_until_done(cluster: &Cluster, sizes: &[(u32, usize)]) {
    let wiring = cluster.wiring();
    let start = Instant::now();
    loop {
        let jobs = cluster.jobs();
        for (id, size) in sizes {
            let job = jobs.iter().find(|job| job.id == id.to_string()).unwrap();
            check_gang(job, *size, &wiring);
        }
        if jobs.iter().all(|job| job.is("COMPLETED")) {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(240), "not done in time: {jobs:#?}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// A gang has all of its nodes in its home domain or none at all, and never ends but well.
fn check_gang(job: &Job, size: usize, wiring: &Wiring) {
    if job.is("PENDING") {
        assert!(job.nodes.is_empty(), "a waiting gang holds nodes: {job:?}");
        return;
    }
    if !job.is_ending() {
        assert!(job.is("RUNNING") || job.is("COMPLETED"), "{job:?}");
        assert_eq!(job.nodes.len(), size, "not whole: {job:?}");
    }
    if wiring.fewest_leaves(size) == 1 {
        assert_eq!(wiring.leaves(&job.nodes).len(), 1, "crosses a leaf for nothing: {job:?}");
    } else if size <= 8 {
        assert_eq!(wiring.spines(&job.nodes).len(), 1, "crosses a spine for nothing: {job:?}");
    }
}

#[test]
fn gangs_of_2_to_16_nodes_under_contention_launch_whole_on_the_fewest_leaves() {
    // 16 nodes, 4 a leaf, 2 leaves a spine, and one switch above the spines.
    let topology = "SwitchName=leaf1 Nodes=n[1-4]\nSwitchName=leaf2 Nodes=n[5-8]\nSwitchName=leaf3 Nodes=n[9-12]\n\
                    SwitchName=leaf4 Nodes=n[13-16]\nSwitchName=spine1 Switches=leaf[1-2]\n\
                    SwitchName=spine2 Switches=leaf[3-4]\nSwitchName=core Switches=spine[1-2]\n";
    let cluster = Cluster::start(Setup::new(Install::Named, Nodes::Real(16)).topology(topology));
    let mut gangs = Vec::new();
    for (i, size) in [2, 3, 4, 8, 2, 16, 4, 6, 3, 2, 12, 4].into_iter().enumerate() {
        let nodes = format!("-N{size}");
        let seconds = 1 + i as u32 % 3;
        gangs.push((cluster.submit(seconds, &[&nodes, "--gpus-per-node=8"]), size));
        // Small jobs that would break leaves up.
        cluster.submit(1, &["-n1", "--gpus=1"]);
    }
    watch_until_done(&cluster, &gangs);
    let wiring = cluster.wiring();
    for (id, size) in gangs {
        let job = cluster.job(id);
        // 6 and 12 nodes may need a further leaf on a busy machine; all others fill leaves or sit in one.
        if size != 6 && size != 12 {
            assert_eq!(wiring.excess(&job.nodes), 0, "{job:?}");
        }
        assert!(!cluster.logged(&[&format!("JobId={id} starts on {size} nodes under")]).is_empty());
    }
    assert_eq!(cluster.logged(&["lockstep: audit"]), Vec::<String>::new());
}

#[test]
fn two_gangs_that_compete_for_seven_nodes_never_hold_some_and_wait() {
    // One leaf of 8 nodes, one of them drained: 7 are free, and each gang needs 4.
    let cluster = Cluster::start(Setup::new(Install::Named, Nodes::Real(8)).wired(8, 1));
    cluster.slurm("scontrol", &["update", "NodeName=n8", "State=DRAIN", "Reason=test"]);
    let blocker = cluster.submit(600, &["-N7", "--exclusive"]);
    cluster.wait_state(blocker, "RUNNING");
    let gangs = [cluster.submit(2, &["-N4", "--exclusive"]), cluster.submit(2, &["-N4", "--exclusive"])];
    cluster.slurm("scancel", &[&blocker.to_string()]);
    let mut ran_alone = false;
    cluster.wait("both gangs are done", |c| {
        // One look at both: between two looks one gang can end and the other start.
        let jobs = c.jobs();
        let [first, second] = gangs.map(|id| jobs.iter().find(|job| job.id == id.to_string()).unwrap());
        for job in [first, second] {
            let whole = job.nodes.is_empty() || job.nodes.len() == 4 || job.is_ending();
            assert!(whole, "a part of a gang: {job:?}");
        }
        let holding = [first, second].iter().filter(|job| job.holds_nodes()).count();
        assert!(holding <= 1, "4 + 4 of 7 nodes: {first:?} {second:?}");
        ran_alone |= holding == 1 && second.is("PENDING");
        first.is("COMPLETED") && second.is("COMPLETED")
    });
    assert!(ran_alone, "the gangs never competed");
}

#[test]
fn a_gang_waits_whole_while_scattered_nodes_are_free_and_starts_when_a_leaf_is() {
    let cluster = Cluster::start(Setup::new(Install::DropIn, Nodes::Cloud(16)).wired(4, 2));
    // One node of each leaf is taken: 12 nodes are free, 3 a leaf.
    let blockers = ["n2", "n7", "n9", "n16"].map(|node| cluster.submit(600, &["-w", node, "--exclusive"]));
    for id in blockers {
        cluster.wait("the blocker has its node", |c| c.job(id).nodes.len() == 1);
    }
    let gang = cluster.submit(600, &["-N4", "--gpus-per-node=8"]);
    let three = cluster.submit(600, &["-N3", "--gpus-per-node=8"]);
    cluster.wait("the gang of three has its nodes", |c| c.job(three).nodes.len() == 3);
    assert!(cluster.job(gang).nodes.is_empty());
    // Backfill keeps the first leaf for the larger gang, which came first, so the smaller one gets the second.
    assert_eq!(cluster.job(three).nodes, ["n5", "n6", "n8"]);
    cluster.slurm("scancel", &[&blockers[0].to_string()]);
    cluster.wait("the gang has its leaf", |c| c.job(gang).nodes.len() == 4);
    assert_eq!(cluster.job(gang).nodes, ["n1", "n2", "n3", "n4"]);
}

#[test]
fn a_gang_that_no_domain_could_ever_hold_is_refused_at_submission() {
    let cluster = Cluster::start(Setup::new(Install::Named, Nodes::Cloud(16)).wired(4, 2));
    let output = cluster.try_slurm("sbatch", &["-N12", "--wrap", "true"]);
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("Requested node configuration is not available"), "{said}");
    assert!(!cluster.logged(&["can never start", "12 nodes under one switch"]).is_empty());
}

#[test]
fn a_gang_that_preempts_takes_its_victims_from_one_domain() {
    let partitions = "PreemptType=preempt/partition_prio\nPreemptMode=REQUEUE\n\
                      PartitionName=low Nodes=ALL PriorityTier=1\nPartitionName=high Nodes=ALL PriorityTier=2";
    let setup = Setup::new(Install::DropIn, Nodes::Real(8)).wired(4, 2);
    let cluster = Cluster::start(setup.extra(partitions));
    let low: Vec<u32> = (0..8).map(|_| cluster.submit(600, &["-p", "low", "-N1", "--exclusive"])).collect();
    for &id in &low {
        cluster.wait_state(id, "RUNNING");
    }
    let gang = cluster.submit(600, &["-p", "high", "-N4", "--exclusive"]);
    cluster.wait_state(gang, "RUNNING");
    assert_eq!(cluster.wiring().leaves(&cluster.job(gang).nodes).len(), 1);
    let left = low.iter().filter(|&&id| cluster.job(id).is("RUNNING")).count();
    assert_eq!(left, 4, "only the jobs of one leaf had to go");
}
