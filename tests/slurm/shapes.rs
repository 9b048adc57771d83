//! The shapes that requests come in: each is placed as one gang, or left to Slurm on purpose.

use crate::harness::{Cluster, Install, Nodes, Setup};

fn start() -> Cluster {
    Cluster::start(Setup::new(Install::DropIn, Nodes::Cloud(16)).wired(4, 2))
}

/// Submits, waits for the nodes, and frees them again.
fn nodes(cluster: &Cluster, args: &[&str]) -> Vec<String> {
    let job = cluster.submit(600, args);
    cluster.wait(&format!("{args:?} has its nodes"), |c| c.job(job).holds_nodes());
    let nodes = cluster.job(job).nodes;
    cluster.slurm("scancel", &[&job.to_string()]);
    cluster.wait("they are free again", |c| !c.job(job).holds_nodes());
    nodes
}

#[test]
fn the_number_of_nodes_follows_from_tasks_cpus_and_gpus() {
    let cluster = start();
    let wiring = cluster.wiring();
    // A node of the second leaf is taken, so that index-consecutive nodes would cross leaves.
    let blocker = cluster.submit(600, &["-N1", "--exclusive", "-w", "n2"]);
    cluster.wait("the leaf is broken", |c| c.job(blocker).holds_nodes());
    for (args, count) in [
        (&["-n64"][..], 4),
        (&["-n8", "-c8"], 4),
        (&["--gpus=32"], 4),
        (&["-n32", "--gpus-per-task=1", "-c1"], 4),
        (&["-n16", "--ntasks-per-node=4"], 4),
        (&["-N4", "--gpus-per-node=8"], 4),
        (&["-N4", "-n8", "--gpus-per-task=2"], 4),
        (&["-N2-4", "--use-min-nodes", "--exclusive"], 2),
        (&["-N4", "--gres=gpu:4", "--mem=1000"], 4),
    ] {
        let got = nodes(&cluster, args);
        assert_eq!((got.len(), wiring.leaves(&got).len()), (count, 1), "{args:?} is on {got:?}");
    }
    assert_eq!(cluster.logged(&["lockstep: audit"]), Vec::<String>::new());
}

#[test]
fn named_and_excluded_nodes_features_and_arrays() {
    let setup = Setup::new(Install::DropIn, Nodes::Cloud(16)).wired(4, 2);
    let setup = setup.node_option("n[1-8]", "Features=fast").node_option("n[9-16]", "Features=slow");
    let cluster = Cluster::start(setup);
    let wiring = cluster.wiring();
    let with = nodes(&cluster, &["-N3", "--exclusive", "-w", "n7"]);
    assert!(with.contains(&"n7".into()) && wiring.leaves(&with).len() == 1, "{with:?}");
    let without = nodes(&cluster, &["-N3", "--exclusive", "-x", "n[1-2],n[5-6],n9"]);
    assert_eq!(wiring.leaves(&without).into_iter().collect::<Vec<_>>(), ["leaf3"]);
    let slow = nodes(&cluster, &["-N4", "--exclusive", "-C", "slow"]);
    assert!(wiring.leaves(&slow).len() == 1 && ["n9", "n13"].contains(&slow[0].as_str()), "{slow:?}");
    // Counted features are asked part by part: Slurm's own answer.
    let counted = nodes(&cluster, &["-N4", "--exclusive", "-C", "[fast*2&slow*2]"]);
    assert_eq!(counted.len(), 4);
    assert_eq!(cluster.logged(&["goes to cons_tres unchanged: feature counts"]).len(), 1);
    let spread = nodes(&cluster, &["-N4", "-n4", "--spread-job"]);
    assert_eq!(spread.len(), 4);

    let array = cluster.submit(600, &["-a", "1-4", "-N4", "--exclusive"]);
    cluster.wait("all tasks run", |c| c.jobs().iter().filter(|job| job.holds_nodes()).count() == 4);
    for job in cluster.jobs().iter().filter(|job| job.holds_nodes()) {
        assert_eq!(wiring.leaves(&job.nodes).len(), 1, "array {array}: {job:?}");
    }
}
