//! The command line against a running controller.

use crate::harness::{Cluster, Install, Nodes, Setup};

/// Runs lockstep in the cluster's environment: its exit code and stdout.
fn lockstep(cluster: &Cluster, args: &[&str]) -> (Option<i32>, String) {
    let output = cluster.command(env!("CARGO_BIN_EXE_lockstep")).args(args).output().unwrap();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn check_asks_the_running_controller() {
    let mut cluster = Cluster::start(Setup::new(Install::DropIn, Nodes::Cloud(16)).wired(4, 2));
    let (code, said) = lockstep(&cluster, &["check", "--live"]);
    assert_eq!(code, Some(0), "{said}");
    for words in ["drop-in, ", "16 nodes on 4 leaves", "0 errors, 0 warnings"] {
        assert!(said.contains(words), "{words} is missing in:\n{said}");
    }

    // The controller runs on with what it started with.
    cluster.setup.topology_plugin = "topology/tree";
    cluster.write_conf();
    let (code, said) = lockstep(&cluster, &["check", "--live"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("error[C006]: the running controller has TopologyPlugin=topology/none"), "{said}");
}

#[test]
fn check_tells_stock_slurm_from_lockstep() {
    let cluster = Cluster::start(Setup::new(Install::Stock, Nodes::Cloud(4)).wired(2, 2));
    let (code, said) = lockstep(&cluster, &["check", "--live"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("warning[C101]"), "{said}");
}
