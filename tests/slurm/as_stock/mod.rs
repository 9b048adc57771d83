//! What must work as in stock Slurm: each scenario runs on stock Slurm and on Lockstep, and what users see is compared.
//!
//! Which nodes a gang gets may differ, that is what Lockstep is for; so a scenario notes the nodes only where Slurm has
//! no choice or Lockstep no say, and else how many there are and of what kind.

mod events;
mod requests;

use crate::harness::{Cluster, Install, Nodes, Setup};
use std::process::Output;
use std::thread;

/// Runs a scenario on both at the same time and compares its notes. `setup` changes the clusters: 8 nodes of 16 CPUs,
/// 64,000 MB and 8 GPUs, on 2 leaves.
fn as_in_stock(
    install: Install,
    setup: impl Fn(Setup) -> Setup + Sync,
    scenario: impl Fn(&mut Cluster) -> Vec<String> + Sync,
) {
    let run = |install| {
        let mut cluster = Cluster::start(setup(Setup::new(install, Nodes::Real(8)).wired(4, 2)));
        let notes = scenario(&mut cluster);
        assert!(cluster.controller_lives());
        // Lockstep has nothing to complain about: no breach, no internal error.
        assert_eq!(cluster.logged(&["error: lockstep: "]), Vec::<String>::new());
        notes
    };
    let (stock, lockstep) = thread::scope(|scope| {
        let stock = scope.spawn(|| run(Install::Stock));
        let lockstep = run(install);
        (stock.join(), lockstep)
    });
    let stock = stock.expect("the scenario works on stock Slurm");
    assert!(!stock.is_empty());
    assert_eq!(
        stock.join("\n"),
        lockstep.join("\n"),
        "\nabove: stock, below: Lockstep\n{stock:#?}\n{lockstep:#?}"
    );
}

/// A job as its user sees it, but for the names of the nodes, and for the words in which Lockstep says that a gang waits
/// for resources.
fn seen(cluster: &Cluster, id: u32) -> String {
    let field = |key| cluster.job_field(id, key);
    let reason = as_stock_says(&field("Reason"));
    let job = cluster.job(id);
    let held = if job.holds_nodes() { job.nodes.len() } else { 0 };
    format!(
        "{} {}, reason {}, restarts {}, holds {held} nodes, {}",
        field("JobName"),
        field("JobState"),
        reason,
        field("Restarts"),
        field("TRES")
    )
}

fn as_stock_says(reason: &str) -> String {
    if reason.starts_with("lockstep:") { "Resources".into() } else { reason.into() }
}

/// The nodes that it holds or held, as a list.
fn nodes(cluster: &Cluster, id: u32) -> String {
    lockstep::fabric::hostlist::fold(&cluster.job(id).nodes)
}

/// Waits until all of these run, and notes them with or without their nodes.
fn running(cluster: &Cluster, ids: &[u32]) -> Vec<String> {
    ids.iter().for_each(|id| cluster.wait_state(*id, "RUNNING"));
    ids.iter().map(|id| seen(cluster, *id)).collect()
}

/// As [`running`], with the nodes' names.
fn running_on(cluster: &Cluster, ids: &[u32]) -> Vec<String> {
    let notes = running(cluster, ids);
    notes.into_iter().zip(ids).map(|(note, id)| format!("{note}, on {}", nodes(cluster, *id))).collect()
}

/// Waits until a job waits for this reason.
fn waits(cluster: &Cluster, id: u32, reason: &str) -> String {
    cluster.wait(&format!("job {id} waits for {reason}"), |c| {
        let job = c.job(id);
        job.is("PENDING") && as_stock_says(&job.reason) == reason
    });
    seen(cluster, id)
}

/// Submits a job that must be refused, and notes what sbatch says.
fn refused(cluster: &Cluster, args: &[&str]) -> String {
    let Output { status, stderr, .. } =
        cluster.try_slurm("sbatch", &[args, &["-o", "/dev/null", "--wrap", "true"]].concat());
    assert!(!status.success(), "sbatch {args:?} was taken");
    String::from_utf8_lossy(&stderr).into_owned()
}

fn cancel(cluster: &Cluster, ids: &[u32]) {
    for id in ids {
        cluster.slurm("scancel", &[&id.to_string()]);
    }
    for id in ids {
        cluster.wait(&format!("job {id} has ended"), |c| {
            let job = c.job(*id);
            !job.is("PENDING") && !job.holds_nodes() && !job.is_ending()
        });
    }
}
