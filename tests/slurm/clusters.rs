//! The harness itself, over stock Slurm: what the other tests stand on.

use crate::harness::{Cluster, Install, Nodes, Setup, processes_of};

#[test]
fn jobs_launch_and_finish_on_real_slurmds_and_nothing_is_left_behind() {
    let cluster = Cluster::start(Setup::new(Install::Stock, Nodes::Real(4)));
    let done = cluster.path("done");
    let script = format!("srun -l hostname >{}", done.display());
    let args = ["--parsable", "-N4", "--gpus-per-node=8", "-o", "/dev/null", "--wrap", &script];
    let id: u32 = cluster.slurm("sbatch", &args).trim().parse().unwrap();
    cluster.wait_state(id, "COMPLETED");
    assert_eq!(std::fs::read_to_string(&done).unwrap().lines().count(), 4);

    // A job that is in the middle of its work goes down with the cluster.
    let sleeper = cluster.submit(600, &["-N4"]);
    cluster.wait_state(sleeper, "RUNNING");
    let dir = cluster.path("").canonicalize().unwrap();
    cluster.wait("munged, slurmctld, four slurmds, a step and the job run", |_| processes_of(&dir) > 8);
    drop(cluster);
    assert_eq!(processes_of(&dir), 0);
    assert!(!dir.exists());
}

#[test]
fn cloud_nodes_are_allocated_without_a_slurmd() {
    let mut cluster = Cluster::start(Setup::new(Install::Stock, Nodes::Cloud(512)));
    let big = cluster.submit(600, &["-N500", "--exclusive"]);
    cluster.wait("the job has its nodes", |c| c.job(big).nodes.len() == 500);
    cluster.stop_controller();
    cluster.start_controller();
    assert_eq!(cluster.job(big).nodes.len(), 500);
}
