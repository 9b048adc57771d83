//! A long and busy life: hundreds of gangs and small jobs come and go, nodes drain and return, slurmctld reads its
//! configuration anew and restarts; and what must always hold is looked at all the time.

use crate::harness::{Cluster, Install, Job, Nodes, Setup, Wiring};
use std::collections::BTreeMap;

const LEAF: usize = 8;
const SPINE: usize = 4;
const NODES: usize = 64;

/// The same numbers in each run (xorshift).
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }

    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

/// Jobs with their sizes, and the nodes that they were seen on.
#[derive(Default)]
struct Seen {
    sizes: BTreeMap<u32, usize>,
    nodes: BTreeMap<String, Vec<String>>,
    gangs_started: usize,
}

impl Seen {
    fn submit(&mut self, cluster: &Cluster, dice: &mut Dice) {
        let size = dice.pick(&[1, 1, 1, 2, 2, 3, 4, 4, 5, 8, 8, 12, 16, 24, 32]);
        let gpus = if size == 1 { 1 + dice.below(8) } else { dice.pick(&[8, 8, 8, 4]) };
        let (nodes, gpus) = (format!("-N{size}"), format!("--gpus-per-node={gpus}"));
        let time = format!("--time={}", 1 + dice.below(90));
        self.sizes.insert(cluster.submit(600, &[&nodes, &gpus, &time]), size);
    }

    /// Holds all jobs against what must always be true, and returns those that hold nodes.
    fn check(&mut self, cluster: &Cluster, wiring: &Wiring) -> Vec<u32> {
        let jobs = cluster.jobs();
        assert_eq!(jobs.len(), self.sizes.len(), "a job is lost");
        for job in jobs.iter().filter(|job| !job.nodes.is_empty() && !job.is_ending()) {
            let size = self.sizes[&job.id.parse().unwrap()];
            assert_eq!(job.nodes.len(), size, "not whole: {job:?}");
            if size <= LEAF {
                assert_eq!(wiring.leaves(&job.nodes).len(), 1, "crosses a leaf for nothing: {job:?}");
            } else {
                assert_eq!(wiring.spines(&job.nodes).len(), 1, "crosses a spine for nothing: {job:?}");
            }
            let before = self.nodes.entry(job.id.clone()).or_insert_with(|| {
                self.gangs_started += usize::from(size > 1);
                job.nodes.clone()
            });
            assert_eq!(*before, job.nodes, "moved: {job:?}");
        }
        let holding = jobs.iter().filter(|job| job.holds_nodes());
        holding.map(|job| job.id.parse().unwrap()).collect()
    }
}

fn cancel(cluster: &Cluster, ids: &[u32]) {
    if !ids.is_empty() {
        let ids: Vec<String> = ids.iter().map(u32::to_string).collect();
        cluster.slurm("scancel", &ids.iter().map(String::as_str).collect::<Vec<_>>());
    }
}

#[test]
fn gangs_stay_whole_and_in_their_domains_through_a_busy_life() {
    let mut cluster = Cluster::start(Setup::new(Install::DropIn, Nodes::Cloud(NODES)).wired(LEAF, SPINE));
    let wiring = cluster.wiring();
    let (mut seen, mut dice) = (Seen::default(), Dice(20_260_801));
    for round in 0..45 {
        for _ in 0..2 + dice.below(6) {
            seen.submit(&cluster, &mut dice);
        }
        let mut holding = seen.check(&cluster, &wiring);
        holding.retain(|_| dice.below(4) == 0);
        cancel(&cluster, &holding);
        let node = format!("NodeName=n{}", 1 + dice.below(NODES));
        match dice.below(6) {
            0 => drop(cluster.slurm("scontrol", &["update", &node, "State=DRAIN", "Reason=test"])),
            // Not every node is drained; then there is nothing to resume.
            1 => drop(cluster.try_slurm("scontrol", &["update", &node, "State=UNDRAIN"])),
            _ => {}
        }
        match round {
            15 => cluster.reconfigure(),
            30 => {
                cluster.stop_controller();
                cluster.start_controller();
            }
            _ => {}
        }
        // Let the scheduler have its turn.
        let turns = |c: &Cluster| c.logged(&["_attempt_backfill: beginning"]).len();
        let before = turns(&cluster);
        cluster.wait("backfill runs", |c| turns(c) > before);
        seen.check(&cluster, &wiring);
    }
    assert!(seen.gangs_started > 60, "only {} gangs have started", seen.gangs_started);

    // When all have gone, every node can be given again: nothing is remembered that is not so.
    cluster.slurm("scontrol", &["update", &format!("NodeName=n[1-{NODES}]"), "State=UNDRAIN"]);
    let all: Vec<u32> = seen.sizes.keys().copied().collect();
    cancel(&cluster, &all);
    cluster.wait("all jobs have gone", |c| !c.jobs().iter().any(|job| job.holds_nodes() || job.is_ending()));
    let gangs: Vec<u32> = (0..NODES / LEAF).map(|_| cluster.submit(600, &["-N8", "--exclusive"])).collect();
    for id in gangs {
        seen.sizes.insert(id, LEAF);
        cluster.wait("the gang has a leaf", |c| c.job(id).nodes.len() == LEAF);
    }
    seen.check(&cluster, &wiring);
    let used: usize =
        cluster.jobs().iter().filter(|job| job.holds_nodes()).map(|job: &Job| job.nodes.len()).sum();
    assert_eq!(used, NODES);

    cluster.reconfigure();
    for sums in cluster.logged(&["lockstep: calls decided"]) {
        for none in [" 0 broken promises", " 0 audit breaches", " 0 internal errors"] {
            assert!(sums.contains(none), "{sums}");
        }
    }
}
