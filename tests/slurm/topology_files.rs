//! Without a usable topology.conf slurmctld runs, jobs run as under stock, and one line says what to do; a mended file
//! and a reconfigure switch Lockstep on.

use crate::harness::{Cluster, Install, Nodes, Setup};

const GOOD: &str =
    "SwitchName=leaf1 Nodes=n[1-4]\nSwitchName=leaf2 Nodes=n[5-8]\nSwitchName=spine Switches=leaf[1-2]\n";

/// Starts with a bad file, sees jobs run by pass-through and one line with these words, then mends it.
fn runs_without_and_with(topology: Option<&str>, said: &[&str]) {
    let mut setup = Setup::new(Install::Named, Nodes::Cloud(8));
    setup.topology = topology.map(str::to_owned);
    let mut cluster = Cluster::start(setup);

    // Scattered nodes are free: stock takes them, Lockstep would wait.
    let blockers = ["n1", "n5"].map(|node| cluster.submit(600, &["-w", node, "--exclusive"]));
    for id in blockers {
        cluster.wait("the blocker has its node", |c| c.job(id).nodes.len() == 1);
    }
    let scattered = cluster.submit(600, &["-N4", "--exclusive"]);
    cluster.wait("the gang runs by pass-through", |c| c.job(scattered).nodes.len() == 4);
    let lines = cluster.logged(&[&["error: lockstep: "], said].concat());
    assert_eq!(lines.len(), 1, "{lines:#?}");
    assert!(lines[0].contains("scontrol reconfigure"), "{lines:#?}");
    assert_eq!(cluster.logged(&["error: lockstep: "]).len(), 1, "one line says it");

    cluster.slurm("scancel", &[&scattered.to_string()]);
    cluster.wait("the nodes are free again", |c| !c.job(scattered).holds_nodes());
    cluster.set_topology(Some(GOOD));
    cluster.reconfigure();
    assert!(!cluster.logged(&["lockstep: fabric: 8 nodes on 2 leaves"]).is_empty());
    let gang = cluster.submit(600, &["-N4", "--exclusive"]);
    cluster.wait("backfill has looked at the gang", |c| c.job(gang).started.starts_with("20"));
    assert!(cluster.job(gang).nodes.is_empty(), "six scattered nodes are no leaf of four");
    cluster.slurm("scancel", &[&blockers[1].to_string()]);
    cluster.wait("the gang has its leaf", |c| c.job(gang).nodes == ["n5", "n6", "n7", "n8"]);
}

#[test]
fn no_file() {
    runs_without_and_with(None, &["topology.conf"]);
}

#[test]
fn an_empty_file() {
    runs_without_and_with(Some("\n"), &["topology.conf", "no switch"]);
}

#[test]
fn a_broken_file() {
    let broken = "SwitchName=leaf1 Nodes=n[1-4]\nSwitchName=spine Switches=leaf[1-2]\n";
    runs_without_and_with(Some(broken), &["topology.conf:2:", "leaf2"]);
}

#[test]
fn a_file_that_breaks_later_leaves_the_last_good_fabric_in_use() {
    let mut cluster = Cluster::start(Setup::new(Install::DropIn, Nodes::Cloud(8)).topology(GOOD));
    cluster.set_topology(Some("SwitchName=leaf1 Nodes=n[1-4\n"));
    cluster.reconfigure();
    assert_eq!(cluster.logged(&["error: lockstep: ", "topology.conf:1:", "last good fabric stays"]).len(), 1);
    let gang = cluster.submit(600, &["-N4", "--exclusive"]);
    cluster.wait("the gang has a leaf", |c| c.job(gang).nodes.len() == 4);
    assert!(!cluster.logged(&[&format!("JobId={gang} starts on 4 nodes under leaf1")]).is_empty());
}

#[test]
fn nodes_that_the_file_does_not_list_run_all_but_gangs() {
    let topology = "SwitchName=leaf1 Nodes=n[1-4]\n";
    let setup = Setup::new(Install::DropIn, Nodes::Cloud(8)).topology(topology);
    let cluster = Cluster::start(setup.extra("PartitionName=off Nodes=n[5-8]"));
    let gang = cluster.submit(600, &["-N4", "--exclusive"]);
    cluster.wait("the gang has the leaf", |c| c.job(gang).nodes == ["n1", "n2", "n3", "n4"]);
    let single = cluster.submit(600, &["-N1", "--exclusive"]);
    cluster.wait("a single node is found off the fabric", |c| c.job(single).nodes.len() == 1);
    let off = cluster.submit(600, &["-p", "off", "-N2"]);
    cluster.wait("a partition off the fabric runs gangs by pass-through", |c| c.job(off).nodes.len() == 2);
    assert_eq!(
        cluster.logged(&["goes to cons_tres unchanged", "no permitted node is in topology.conf"]).len(),
        1
    );
}
