//! What administrators see of Lockstep in slurmctld, and that its ledger is true.

use crate::harness::{Cluster, Install, Nodes, Setup};

#[test]
fn scontrol_show_config_tells_how_the_machine_is_used() {
    let cluster = Cluster::start(Setup::new(Install::DropIn, Nodes::Cloud(16)).wired(4, 2));
    let gang = cluster.submit(600, &["-N3", "--exclusive"]);
    cluster.wait("the gang runs", |c| c.job(gang).holds_nodes());
    let shown = cluster.slurm("scontrol", &["show", "config"]);
    let value = |name: &str| {
        let line =
            shown.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {shown}"));
        line.split_once('=').unwrap().1.trim().to_owned()
    };
    assert_eq!(value("LockstepVersion"), env!("CARGO_PKG_VERSION"));
    assert!(value("LockstepFabric").starts_with("16 nodes on 4 leaves"));
    assert_eq!(value("LockstepSpread"), "0.000");
    assert_eq!(value("LockstepIdleNodes"), "13");
    assert_eq!(value("LockstepLargestGang"), "8");
    assert!(value("LockstepFragmentation").starts_with("0=0."), "{shown}");
    assert!(value("LockstepCalls").contains("1 placed"));
}

#[test]
fn the_ledger_counts_what_slurm_counts() {
    let setup = Setup::new(Install::DropIn, Nodes::Real(8)).wired(4, 2);
    let cluster = Cluster::start(setup.extra("DebugFlags=NO_CONF_HASH,SelectType"));
    let look = |what: &str| {
        // slurmctld counts anew when somebody asks for nodes and something has changed.
        cluster.slurm("scontrol", &["show", "nodes"]);
        assert_eq!(cluster.logged(&["the ledger has drifted"]), Vec::<String>::new(), "{what}");
    };
    let run = |args: &[&str]| {
        let job = cluster.submit(600, args);
        cluster.wait_state(job, "RUNNING");
        look(&args.join(" "));
        job.to_string()
    };
    let gang = run(&["-N3", "--exclusive"]);
    let tasks = run(&["-n20", "--mem-per-cpu=50"]);
    let gpus = run(&["-n1", "--gpus=3", "--mem=1000", "-c3"]);
    let odd = run(&["-N2", "--ntasks-per-node=3", "--gpus-per-node=1", "--mem=777"]);
    cluster.slurm("scontrol", &["suspend", &tasks]);
    look("suspended");
    cluster.slurm("scontrol", &["resume", &tasks]);
    look("resumed");
    cluster.slurm("scontrol", &["update", &format!("JobId={gang}"), "NumNodes=2"]);
    look("shrunk");
    cluster.reconfigure();
    look("reconfigured");
    for job in [gang, gpus, odd, tasks] {
        cluster.slurm("scancel", &[&job]);
        look("cancelled");
    }
}
