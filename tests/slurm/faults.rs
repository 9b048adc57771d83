//! What goes wrong inside of Lockstep stays there.

use crate::harness::{Cluster, Install, Nodes, Setup};

#[test]
fn a_panic_in_job_test_becomes_a_pass_through() {
    let setup =
        Setup::new(Install::DropIn, Nodes::Real(4)).wired(2, 2).env("LOCKSTEP_TEST_PANIC", "job_test");
    let mut cluster = Cluster::start(setup);
    let gangs = [2, 4, 3].map(|size| cluster.submit(1, &[&format!("-N{size}"), "--exclusive"]));
    for id in gangs {
        cluster.wait_state(id, "COMPLETED");
    }
    let lines = cluster.logged(&["internal error in job_test", "cons_tres answers instead"]);
    assert_eq!(lines.len(), 1, "{lines:#?}");
    assert!(lines[0].contains("src/plugin/"), "says where: {lines:#?}");
    assert!(cluster.controller_lives());
    cluster.reconfigure();
    let counted = cluster.logged(&["lockstep: calls decided: 0 placed"]).pop().unwrap();
    assert!(!counted.contains(" 0 internal errors"), "{counted}");
}

#[test]
fn a_job_whose_decision_takes_too_long_is_slurms() {
    let setup = Setup::new(Install::DropIn, Nodes::Cloud(8)).wired(4, 2).env("LOCKSTEP_TEST_SLOW", "300");
    let cluster = Cluster::start(setup);
    let gang = cluster.submit(600, &["-N2", "--exclusive"]);
    cluster.wait("the gang has its nodes", |c| c.job(gang).holds_nodes());
    assert_eq!(
        cluster.logged(&["JobId=1: the decision took", "cons_tres decides for it for 10 minutes"]).len(),
        1
    );
    assert_eq!(cluster.logged(&["goes to cons_tres unchanged: a decision that takes too long"]).len(), 1);
}
