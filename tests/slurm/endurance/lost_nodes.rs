//! A node is lost under a running gang.

use crate::harness::{Cluster, Install, Nodes, Setup};

#[test]
fn a_gang_that_loses_a_node_starts_again_whole_and_its_neighbour_runs_on() {
    // Three leaves of three. A slurmd that is only slow must not count as lost.
    let setup = Setup::new(Install::Named, Nodes::Real(9)).wired(3, 3).extra("SlurmdTimeout=12");
    let mut cluster = Cluster::start(setup);
    let wiring = cluster.wiring();
    let gang = ["-N3", "--exclusive", "--requeue"];
    let [lost, neighbour] = [&gang, &gang].map(|args| cluster.submit(600, args));
    let blocker = cluster.submit(600, &["-N1", "--exclusive"]);
    for id in [lost, neighbour, blocker] {
        cluster.wait_state(id, "RUNNING");
    }
    let before = [lost, neighbour, blocker].map(|id| cluster.job(id));
    assert_eq!(wiring.leaves(&before[0].nodes).len(), 1);

    let dead = &before[0].nodes[1];
    cluster.kill_slurmd(dead);
    cluster
        .wait("the node is down", |c| c.slurm("sinfo", &["-h", "-n", dead, "-o", "%T"]).starts_with("down"));
    cluster.wait_state(lost, "PENDING");
    assert!(cluster.job(lost).nodes.is_empty(), "it has left all of its nodes");
    assert_eq!(cluster.job_field(lost, "Restarts"), "1");

    // Two healthy nodes are free on its old leaf and two on the blocker's: more than it has, and no leaf.
    cluster.slurm("scontrol", &["update", &format!("JobId={lost}"), "StartTime=now+1"]);
    cluster.wait("the scheduler has looked at it", |c| {
        let job = c.job(lost);
        assert!(job.nodes.is_empty(), "starts on what is left: {job:?}");
        job.reason.starts_with("lockstep: ")
    });
    cluster.slurm("scancel", &[&blocker.to_string()]);
    cluster.wait_state(lost, "RUNNING");
    let again = cluster.job(lost);
    assert_eq!(again.nodes.len(), 3, "{again:?}");
    assert_eq!(wiring.leaves(&again.nodes), wiring.leaves(&before[2].nodes), "the healthy leaf, whole");

    let after = cluster.job(neighbour);
    assert_eq!(
        (&after.state, &after.nodes, &after.started),
        (&before[1].state, &before[1].nodes, &before[1].started)
    );
    for complaint in ["lockstep: audit", "lockstep: internal error"] {
        assert_eq!(cluster.logged(&[complaint]), Vec::<String>::new());
    }
}
