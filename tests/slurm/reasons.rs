//! What people see of a waiting gang and of one that started.

use crate::harness::{Cluster, Install, Nodes, Setup};
use std::time::Duration;

/// Two leaves of four nodes, each with a job on its first node: 30 and 60 minutes long.
fn broken_leaves() -> (Cluster, u32, u32) {
    let cluster = Cluster::start(Setup::new(Install::DropIn, Nodes::Cloud(8)).wired(4, 2));
    let on =
        |node: &str, minutes: &str| cluster.submit(600, &["-N1", "--exclusive", "-w", node, "-t", minutes]);
    let (first, second) = (on("n1", "30"), on("n5", "60"));
    for job in [first, second] {
        cluster.wait("the leaves are broken", |c| c.job(job).holds_nodes());
    }
    (cluster, first, second)
}

#[test]
fn a_gang_says_what_it_waits_for_and_where_it_went() {
    let (cluster, first, second) = broken_leaves();
    let gang = cluster.submit(600, &["-N4", "--exclusive"]);
    let says = format!(
        "lockstep: needs 4 nodes under one leaf; best leaf1 has 3 free of 4; waits for {first}; about "
    );
    cluster.wait("backfill has forecast the gang's start", |c| c.job(gang).reason.starts_with(&says));
    let reason = cluster.job(gang).reason;
    let (hour, minute) = reason[says.len()..].split_once(':').unwrap();
    assert!(hour.parse::<u32>().unwrap() < 24 && minute.parse::<u32>().unwrap() < 60, "{reason}");
    // It stays, however often the gang is looked at.
    for _ in 0..20 {
        std::thread::sleep(Duration::from_millis(300));
        let now = cluster.job(gang).reason;
        assert!(now.starts_with(&says), "{now}");
    }
    // Another leaf is nearer now, and the words follow.
    cluster.slurm("scontrol", &["update", &format!("JobId={second}"), "TimeLimit=10"]);
    let says = format!("waits for {second}; about ");
    cluster.wait("the gang waits for the other leaf", |c| c.job(gang).reason.contains(&says));

    cluster.slurm("scontrol", &["hold", &gang.to_string()]);
    cluster.wait("the hold is seen", |c| c.job(gang).reason.starts_with("JobHeld"));
    cluster.slurm("scontrol", &["release", &gang.to_string()]);
    cluster.wait("the gang waits again", |c| c.job(gang).reason.starts_with("lockstep: needs 4 nodes"));

    cluster.slurm("scancel", &[&first.to_string()]);
    cluster.wait("the gang has its leaf", |c| c.job(gang).holds_nodes());
    assert_eq!(cluster.job(gang).reason, "None");
    let shown = cluster.slurm("scontrol", &["show", "job", &gang.to_string()]);
    assert!(shown.contains("SystemComment=lockstep: 4 nodes on leaf1 (1 switch, excess 0)"), "{shown}");
}

#[test]
fn without_a_fabric_slurms_own_reason_is_back() {
    let (mut cluster, ..) = broken_leaves();
    let gang = cluster.submit(600, &["-N7", "--exclusive"]);
    cluster.wait("Lockstep has its say", |c| c.job(gang).reason.starts_with("lockstep: needs 7 nodes"));
    cluster.set_topology(None);
    cluster.stop_controller();
    cluster.start_controller();
    cluster.wait("Slurm has its say", |c| c.job(gang).reason == "Resources");
}
