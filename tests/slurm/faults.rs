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
