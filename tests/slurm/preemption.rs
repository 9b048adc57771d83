//! Gangs that preempt: whom, how many, and that the nodes go to the gang for which they were emptied.

use crate::harness::{Cluster, Install, Nodes, Setup};
use std::collections::BTreeSet;
use std::time::Duration;

fn setup(install: Install, mode: &str) -> Setup {
    // Jobs in `low` are put where the tests want them.
    let setup = Setup::new(install, Nodes::Cloud(16)).wired(4, 2);
    let setup = setup.policy("[[rule]]\nmatch = { partition = 'low' }\nmode = 'off'\n");
    setup.extra(&format!(
        "PreemptType=preempt/partition_prio\nPreemptMode={mode}\n\
         PartitionName=low Nodes=ALL PriorityTier=1\nPartitionName=high Nodes=ALL PriorityTier=2"
    ))
}

/// A number that looks random, the same for the same input.
fn draw(seed: u64, salt: u64) -> u64 {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ salt.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^= x >> 29;
    x = x.wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 32
}

/// The nodes in a random order, dealt to jobs of 1 to 3 nodes.
fn state(seed: u64) -> Vec<Vec<String>> {
    let mut nodes: Vec<String> = (1..=16).map(|node| format!("n{node}")).collect();
    nodes.sort_by_key(|node| draw(seed, node[1..].parse().unwrap()));
    let mut jobs = Vec::new();
    while !nodes.is_empty() {
        let size = (1 + draw(seed, 100 + jobs.len() as u64) as usize % 3).min(nodes.len());
        jobs.push(nodes.split_off(nodes.len() - size));
    }
    jobs
}

/// What a preempting gang cost.
#[derive(Debug, Default)]
struct Cost {
    victims: usize,
    /// Nodes that the victims had.
    nodes: usize,
    gangs_on_one_leaf: usize,
}

/// Fills the cluster by a state, sends in a gang of four, and counts who had to go.
fn preempt(cluster: &Cluster, seed: u64, cost: &mut Cost) {
    let jobs: Vec<(u32, Vec<String>)> = state(seed)
        .into_iter()
        .map(|nodes| {
            let (count, list) = (format!("-N{}", nodes.len()), nodes.join(","));
            (cluster.submit(600, &["-p", "low", "--exclusive", &count, "-w", &list]), nodes)
        })
        .collect();
    cluster.wait("the cluster is full", |c| {
        c.jobs().iter().filter(|job| job.holds_nodes()).count() == jobs.len()
    });
    let gang = cluster.submit(600, &["-p", "high", "-N4", "--exclusive"]);
    cluster.wait("the gang has its nodes", |c| c.job(gang).holds_nodes());
    let (now, placed) = (cluster.jobs(), cluster.job(gang).nodes);
    let is_gone = |id: u32| now.iter().any(|job| job.id == id.to_string() && !job.holds_nodes());
    let victims: Vec<&Vec<String>> =
        jobs.iter().filter(|(id, _)| is_gone(*id)).map(|(_, nodes)| nodes).collect();
    let leaves = cluster.wiring().leaves(&placed).len();
    cost.victims += victims.len();
    cost.nodes += victims.iter().map(|nodes| nodes.len()).sum::<usize>();
    cost.gangs_on_one_leaf += usize::from(leaves == 1);
    if cluster.setup.install != Install::Stock {
        let fewest = |leaf: &Vec<String>| {
            jobs.iter().filter(|(_, nodes)| nodes.iter().any(|node| leaf.contains(node))).count()
        };
        let best = cluster.wiring().members().values().map(fewest).min().unwrap();
        assert_eq!((leaves, victims.len()), (1, best), "state {seed}: {placed:?}, {jobs:?}");
    }
    let all = [jobs.iter().map(|(id, _)| id.to_string()).collect(), vec![gang.to_string()]].concat();
    cluster.slurm("scancel", &all.iter().map(String::as_str).collect::<Vec<_>>());
    cluster
        .wait("the cluster is empty", |c| !c.jobs().iter().any(|job| job.holds_nodes() || job.is_ending()));
}

#[test]
fn victims_are_the_fewest_in_any_one_domain() {
    let run = |install| {
        move || {
            let cluster = Cluster::start(setup(install, "CANCEL"));
            let mut cost = Cost::default();
            (0..20).for_each(|seed| preempt(&cluster, seed, &mut cost));
            cost
        }
    };
    let stock = std::thread::spawn(run(Install::Stock));
    let ours = run(Install::DropIn)();
    let stock = stock.join().unwrap();
    // Stock takes any four nodes; ours must be those of one leaf.
    println!("20 states, a gang of 4 preempts; stock: {stock:?}; Lockstep: {ours:?}");
    assert_eq!(ours.gangs_on_one_leaf, 20);
}

#[test]
fn nodes_go_to_the_gang_that_they_were_emptied_for() {
    let cluster = Cluster::start(setup(Install::DropIn, "REQUEUE"));
    let low: BTreeSet<u32> =
        (0..16).map(|_| cluster.submit(600, &["-p", "low", "-N1", "--exclusive"])).collect();
    cluster.wait("the cluster is full", |c| c.jobs().iter().filter(|job| job.holds_nodes()).count() == 16);
    let gang = cluster.submit(600, &["-p", "high", "-N8", "--exclusive"]);
    // Small jobs that would take what becomes free.
    for _ in 0..8 {
        cluster.submit(600, &["-p", "high", "-N1", "-n1"]);
    }
    cluster.wait("the gang has its nodes", |c| c.job(gang).holds_nodes());
    let wiring = cluster.wiring();
    assert_eq!(wiring.spines(&cluster.job(gang).nodes).len(), 1);
    cluster.wait("the small jobs run too", |c| {
        let jobs = c.jobs();
        jobs.iter().filter(|job| job.holds_nodes() && !low.contains(&job.id.parse().unwrap())).count() == 9
    });
    // Whoever was requeued is still there.
    let known: BTreeSet<u32> = cluster.jobs().iter().filter_map(|job| job.id.parse().ok()).collect();
    assert!(low.is_subset(&known));
    let pending = cluster.jobs().iter().filter(|job| job.is("PENDING")).count();
    assert!((8..=12).contains(&pending), "{pending} low jobs were requeued");
}

#[test]
fn suspended_victims_run_again() {
    let suspend = "SUSPEND,GANG\nDefMemPerCPU=1";
    let setup = Setup { nodes: Nodes::Real(8), ..setup(Install::DropIn, suspend) }.wired(4, 2);
    let cluster = Cluster::start(setup);
    let low: Vec<u32> = ["n[1-4]", "n[5-8]"]
        .map(|nodes| {
            cluster.submit(600, &["-p", "low", "-N4", "--ntasks-per-node=16", "-w", nodes, "--mem=10"])
        })
        .into();
    for &job in &low {
        cluster.wait_state(job, "RUNNING");
    }
    let gang = cluster.submit(5, &["-p", "high", "-N4", "--ntasks-per-node=16", "--mem=10"]);
    cluster.wait_state(gang, "RUNNING");
    assert_eq!(cluster.wiring().leaves(&cluster.job(gang).nodes).len(), 1);
    cluster
        .wait("one job is suspended", |c| low.iter().filter(|&&job| c.job(job).is("SUSPENDED")).count() == 1);
    cluster.wait_state(gang, "COMPLETED");
    cluster.wait_for(Duration::from_secs(60), "all run again", |c| {
        low.iter().all(|&job| c.job(job).is("RUNNING"))
    });
}
