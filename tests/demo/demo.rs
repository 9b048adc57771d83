//! The demo: a real Slurm cluster on this machine, with more gangs and small jobs than fit at once.
//!
//! 16 slurmds of 8 fake GPUs on 4 leaf switches under 2 spines. `make demo` runs it with Lockstep; `--stock` runs the
//! same jobs with Slurm's own select/cons_tres and topology/tree, to compare. `KEEP=1` in the environment leaves the
//! cluster up at the end.

#[path = "../slurm/harness/mod.rs"]
mod harness;
mod report;
mod screen;
mod workload;

use harness::{Cluster, Install, Nodes, Setup};
use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long the jobs may take; they need about a minute.
const LIMIT: Duration = Duration::from_secs(300);

fn main() {
    let stock = match std::env::args().nth(1).as_deref() {
        None => false,
        Some("--stock") => true,
        Some(other) => {
            eprintln!("demo: unknown option {other}; the only one is --stock");
            std::process::exit(2);
        }
    };
    let keep = std::env::var("KEEP").is_ok_and(|keep| !["", "0"].contains(&keep.as_str()));
    let mut setup =
        Setup::new(if stock { Install::Stock } else { Install::Named }, Nodes::Real(16)).wired(4, 2);
    if stock {
        setup.topology_plugin = "topology/tree";
    }
    let placer = if stock { "select/cons_tres and topology/tree" } else { "select/cons_tres_lockstep" };
    println!(
        "Starting a Slurm cluster of 16 nodes with 8 GPUs each, 4 leaf switches, 2 spines, {placer} ..."
    );
    let cluster = Cluster::start(setup);

    let works: BTreeMap<u32, _> = workload::jobs().map(|work| (work.submit(&cluster), work)).collect();
    let mut screen = screen::Screen::new();
    let start = Instant::now();
    loop {
        let jobs = cluster.jobs();
        screen.show(&cluster, &works, &jobs);
        if jobs.iter().all(|job| job.is("COMPLETED")) {
            break;
        }
        let failed = jobs.iter().find(|job| job.is("FAILED") || job.is("TIMEOUT") || job.is("NODE_FAIL"));
        assert!(failed.is_none(), "a job failed: {failed:?}");
        assert!(start.elapsed() < LIMIT, "not all jobs ended in {LIMIT:?}");
        sleep(Duration::from_millis(500));
    }
    report::print(&cluster, &works);
    if keep {
        let conf = cluster.conf_path();
        println!("\nThe cluster stays up. To use it:\n");
        println!("    export SLURM_CONF={}", conf.display());
        println!("    sinfo; sbatch --nodes=4 --gpus-per-node=8 --wrap 'srun sleep 60'; squeue");
        println!("    less {}", cluster.path("slurmctld.log").display());
        println!("\nTo stop it and remove its folder:\n\n    {}", cluster.stop_command().display());
        cluster.keep();
    } else if !stock {
        println!("The same jobs on stock Slurm: cargo run --release --example demo -- --stock");
    }
}
