//! Het jobs: all components start together, near each other, or none.

use crate::harness::{Cluster, Install, Job, Nodes, Setup};
use std::time::{Duration, Instant};

/// `LOCKSTEP_HET_ROUNDS=50` for the long run.
fn rounds() -> u32 {
    std::env::var("LOCKSTEP_HET_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(12)
}

fn submit(cluster: &Cluster, components: &[&[&str]]) -> u32 {
    let mut args = vec!["--parsable", "--time=10", "--output=/dev/null", "--wrap", "sleep 600"];
    for (i, component) in components.iter().enumerate() {
        if i > 0 {
            args.push(":");
        }
        args.extend(*component);
    }
    cluster.slurm("sbatch", &args).trim().parse().unwrap()
}

fn components(cluster: &Cluster, leader: u32) -> Vec<Job> {
    let mut jobs = cluster.jobs();
    jobs.retain(|job| job.id.split('+').next() == Some(&leader.to_string()));
    jobs
}

#[test]
fn three_components_start_together_inside_one_spine() {
    // Three spines of two leaves of four nodes; a core above.
    let mut setup = Setup::new(Install::DropIn, Nodes::Cloud(24)).wired(4, 2);
    setup.topology = setup.topology.map(|spines| {
        spines
            + "SwitchName=core Switches=spine[1-3]
"
    });
    let cluster = Cluster::start(setup.extra("SchedulerParameters=bf_interval=1,bf_resolution=1,sched_interval=1,batch_sched_delay=1,bf_max_job_test=500"));
    let wiring = cluster.wiring();
    for round in 0..rounds() {
        // Gangs and small jobs that were there first, and others that come after.
        let mut others: Vec<u32> = (0..3)
            .map(|i| {
                let nodes = format!("-N{}", 2 + (round + i) % 3);
                cluster.submit(600, &[&nodes, "--exclusive", "-t", "5"])
            })
            .collect();
        let het = submit(
            &cluster,
            &[
                &["-N1", "--gpus-per-node=2"],
                &["-N3", "--gpus-per-node=8", "--exclusive"],
                &["-N2", "--gpus-per-node=8", "--exclusive"],
            ],
        );
        others.extend((0..6).map(|_| cluster.submit(600, &["-N2", "--exclusive", "-t", "5"])));
        let begun = Instant::now();
        let mut ended = 0;
        loop {
            let parts = components(&cluster, het);
            assert_eq!(parts.len(), 3, "{parts:?}");
            let holding = parts.iter().filter(|job| job.holds_nodes()).count();
            if holding == 3 {
                let nodes: Vec<String> = parts.iter().flat_map(|job| job.nodes.clone()).collect();
                assert_eq!(nodes.len(), 6);
                assert_eq!(wiring.spines(&nodes).len(), 1, "round {round}: {parts:?}");
                assert!(parts[1..].iter().all(|job| wiring.leaves(&job.nodes).len() == 1), "{parts:?}");
                break;
            }
            // squeue may look between the starts of two components, which are one after the other under one lock: never.
            assert_eq!(holding, 0, "round {round}: a component runs alone: {parts:?}");
            assert!(begun.elapsed() < Duration::from_secs(100), "round {round}: {parts:?}");
            // One job after the other leaves.
            if begun.elapsed() > Duration::from_secs(2 + ended) && (ended as usize) < others.len() {
                cluster.slurm("scancel", &[&others[ended as usize].to_string()]);
                ended += 1;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let all: Vec<String> = others.iter().chain([&het]).map(u32::to_string).collect();
        cluster.slurm("scancel", &all.iter().map(String::as_str).collect::<Vec<_>>());
        cluster.wait("the cluster is empty", |c| {
            !c.jobs().iter().any(|job| job.holds_nodes() || job.is_ending())
        });
    }
    assert_eq!(cluster.logged(&["lockstep: audit"]), Vec::<String>::new());
}
