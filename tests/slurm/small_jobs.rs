//! Jobs of one node go where they break least, so that gangs find whole leaves.

use crate::harness::{Cluster, Install, Nodes, Setup};

/// Submits a job and returns its node once it has it.
fn node(cluster: &Cluster, args: &[&str]) -> String {
    let job = cluster.submit(600, args);
    cluster.wait("the job has its node", |c| c.job(job).nodes.len() == 1);
    cluster.job(job).nodes.remove(0)
}

#[test]
fn small_jobs_fill_what_is_broken_and_leave_a_whole_leaf() {
    let cluster = Cluster::start(Setup::new(Install::DropIn, Nodes::Real(8)).wired(4, 2));
    assert_eq!(node(&cluster, &["-N1", "-w", "n6", "--gpus-per-node=1"]), "n6");
    // With or without a node count, with few or many tasks.
    for args in
        [["-N1", "--gpus-per-node=1"], ["--gpus=2", "-n1"], ["-n2", "--gpus-per-task=1"], ["-n1", "-c1"]]
    {
        assert_eq!(node(&cluster, &args), "n6", "{args:?}");
    }
    // Too much for what is left there: another node of the broken leaf.
    assert_eq!(node(&cluster, &["-N1", "--gpus-per-node=4"]), "n5");
    assert_eq!(node(&cluster, &["-N1", "--exclusive"]), "n7");
    let gang = cluster.submit(600, &["-N4", "--gpus-per-node=8"]);
    cluster.wait("the gang has the whole leaf", |c| c.job(gang).nodes == ["n1", "n2", "n3", "n4"]);
    // Tasks that do not fit on one node are still dealt by Slurm.
    let tasks = cluster.submit(600, &["-n20"]);
    cluster.wait("the tasks have their nodes", |c| c.job(tasks).nodes.len() > 1);
}

#[test]
fn light_nodes_still_come_first() {
    let setup = Setup::new(Install::DropIn, Nodes::Real(8)).wired(4, 2);
    let setup = setup.node_option("n[1-4]", "Weight=10").node_option("n[5-8]", "Weight=1");
    let cluster = Cluster::start(setup);
    assert_eq!(node(&cluster, &["-N1", "-w", "n1", "--exclusive"]), "n1");
    assert_eq!(node(&cluster, &["-N1", "--gpus-per-node=1"]), "n5", "not beside the heavy node in use");
}
