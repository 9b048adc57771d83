//! What thousands of jobs leave in slurmctld's memory, beyond what they leave in stock Slurm's.

use crate::harness::{Cluster, Install, Nodes, Setup};
use std::fs;
use std::thread;
use std::time::Duration;

/// Jobs of a round, all of which run at once: an array of each kind.
const RUN: [(usize, &[&str]); 4] = [
    (250, &["-N1", "--gpus=1"]),
    (100, &["-N2", "--gpus-per-node=2"]),
    (40, &["-N3", "--gpus-per-node=4"]),
    (10, &["-N4", "--exclusive"]),
];
/// Gangs of a whole spine, more than there are spines: some wait, with a forecast, until they are cancelled.
const WAIT: (usize, &[&str]) = (12, &["-N32", "--exclusive"]);
/// Rounds that are not counted, and those that are: at least 500 and 2,000 starts.
const WARM_UP: usize = 2;
const ROUNDS: usize = 6;
/// How much more Lockstep may leave, a job. It does leave something: a job's comment says where it was placed.
const BYTES: i64 = 1024;

/// How much of slurmctld is in memory.
fn resident_kib(cluster: &Cluster) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", cluster.controller_pid().unwrap())).unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next());
    resident.unwrap().parse().unwrap()
}

/// slurmctld's memory in KiB after each round, from the end of the warm-up on, and how many jobs started in between.
fn run(install: Install, topology_plugin: &'static str) -> (Vec<u64>, usize) {
    let mut setup = Setup::new(install, Nodes::Cloud(256)).wired(8, 4);
    setup.topology_plugin = topology_plugin;
    // One arena, since how threads share several differs from run to run; and what is large, such as the text of all jobs
    // that is saved now and then, is given back at once.
    let setup = setup.env("MALLOC_ARENA_MAX", "1").env("MALLOC_MMAP_THRESHOLD_", "65536").extra(
        "SlurmctldDebug=info\n\
         SchedulerParameters=bf_interval=1,bf_max_job_test=1000,default_queue_depth=1000,batch_sched_delay=1",
    );
    let cluster = Cluster::start(setup);
    let (mut samples, mut starts) = (Vec::new(), 0);
    for round in 0..WARM_UP + ROUNDS {
        let submit = |name: &str, (count, args): (usize, &[&str])| {
            let array = format!("--array=1-{count}");
            cluster.submit(600, &[&[name, &array, "--time=10"], args].concat());
            count
        };
        let jobs: usize = RUN.into_iter().map(|kind| submit("--job-name=run", kind)).sum();
        submit("--job-name=wait", WAIT);
        let lines = |c: &Cluster, states: &str| {
            let text = c.slurm("squeue", &["-h", "-r", "-t", states, "-o", "%j %S"]);
            text.lines().map(str::to_owned).collect::<Vec<_>>()
        };
        cluster.wait("the round's jobs have started, and the rest have forecasts", |c| {
            let started =
                lines(c, "CONFIGURING,RUNNING").iter().filter(|line| line.starts_with("run")).count();
            let waiting = lines(c, "PENDING");
            started == jobs && !waiting.is_empty() && !waiting.iter().any(|line| line.ends_with("N/A"))
        });
        cluster.slurm("scancel", &["--user", cluster.user()]);
        cluster.wait("all have ended", |c| lines(c, "PENDING,CONFIGURING,RUNNING,COMPLETING").is_empty());
        if round + 1 >= WARM_UP {
            // The least of several: some of the memory is in use for a moment.
            let looks = (0..5).map(|_| {
                thread::sleep(Duration::from_millis(100));
                resident_kib(&cluster)
            });
            samples.push(looks.min().unwrap());
        }
        if round >= WARM_UP {
            starts += jobs;
        }
    }
    (samples, starts)
}

/// By how much memory grew in all rounds, by the straight line closest to all samples: single ones are off by a MiB or so.
fn growth(samples: &[u64]) -> i64 {
    let mean = ROUNDS as f64 / 2.0;
    let from_mean = || (0..=ROUNDS).map(|round| round as f64 - mean);
    let products: f64 = from_mean().zip(samples).map(|(x, &kib)| x * kib as f64).sum();
    let squares: f64 = from_mean().map(|x| x * x).sum();
    (ROUNDS as f64 * products / squares) as i64
}

#[test]
fn two_thousand_job_starts_leave_no_more_than_in_stock_slurm() {
    let (stock, ours) = thread::scope(|scope| {
        let stock = scope.spawn(|| run(Install::Stock, "topology/tree"));
        let ours = run(Install::DropIn, "topology/none");
        (stock.join().unwrap(), ours)
    });
    let ((stock, starts), (ours, _)) = (stock, ours);
    let more = growth(&ours) - growth(&stock);
    println!(
        "KiB after each of {ROUNDS} rounds: stock {stock:?}, Lockstep {ours:?}: {more} more in {starts} starts"
    );
    assert!(starts >= 2000);
    assert!(growth(&stock) > 0, "stock Slurm keeps what it knows of the jobs");
    assert!(more * 1024 < BYTES * starts as i64, "{more} KiB more than in stock Slurm");
}
