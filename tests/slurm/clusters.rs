//! The harness itself, over stock Slurm: what the other tests stand on.

use crate::harness::{Cluster, Install, Nodes, Setup};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

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
    cluster
        .wait("munged, slurmctld, four slurmds, a step and the job run", |_| Cluster::processes_in(&dir) > 8);
    drop(cluster);
    assert_eq!(Cluster::processes_in(&dir), 0);
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

/// Set in the process that this test kills.
const VICTIM: &str = "LOCKSTEP_TEST_VICTIM";

#[test]
fn a_cluster_goes_down_with_a_process_that_is_killed() {
    if std::env::var_os(VICTIM).is_some() {
        let cluster = Cluster::start(Setup::new(Install::Stock, Nodes::Real(2)));
        let job = cluster.submit(600, &["-N2"]);
        cluster.wait_state(job, "RUNNING");
        println!("up in {}", cluster.path("").display());
        std::thread::sleep(Duration::from_secs(600));
    }
    let name = "clusters::a_cluster_goes_down_with_a_process_that_is_killed";
    // SIGINT does the same, unless whoever started the tests ignores it, as a shell does for its background jobs.
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        let mut victim = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env(VICTIM, "1")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(victim.stdout.take().unwrap()).lines().map(Result::unwrap);
        let dir = lines.find_map(|line| Some(line.split_once("up in ")?.1.to_owned())).unwrap();
        let dir = Path::new(&dir).canonicalize().unwrap();
        assert!(Cluster::processes_in(&dir) >= 4, "munged, slurmctld and two slurmds run");
        kill(Pid::from_raw(i32::try_from(victim.id()).unwrap()), signal).unwrap();
        victim.wait().unwrap();
        let start = Instant::now();
        while Cluster::processes_in(&dir) > 0 || dir.exists() {
            assert!(start.elapsed() < Duration::from_secs(60), "{signal}: {dir:?} lives on");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}
