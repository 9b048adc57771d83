//! Replays a trace of jobs on a fabric, under Lockstep and under others, so that they can be compared.
//!
//! A [`trace`] (read or made up) becomes a [`workload`]: jobs as a machine of so many GPUs a node would be asked for them.
//! The [`world`] keeps the clock, the ledger and the queue; a scheduler decides what starts: [`easy`] (first come, first
//! served, with EASY backfill) with one of the [`placers`] to say where, or [`pods`], which knows no gangs. What comes of
//! it is gathered in [`figures`]. The placers that are not Lockstep's are in [`baseline`]. Placement itself is the
//! plugin's own core.

pub mod baseline;
mod draws;
pub mod easy;
pub mod figures;
pub mod machine;
pub mod placers;
pub mod pods;
pub mod trace;
pub mod workload;
pub mod world;

use easy::Easy;
use figures::Figures;
use machine::Machine;
use placers::Placers;
use pods::Pods;
use workload::Workload;
use world::World;

/// How jobs are scheduled and placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Lockstep: one domain of the home level, least hole cost.
    Lockstep,
    /// Stock Slurm's topology/tree.
    SlurmTree,
    /// The first free nodes by index.
    FirstFit,
    /// Each worker of a gang alone, as capacity appears.
    Pods,
    /// Lockstep without hole cost: the tightest domain.
    Pack,
}

impl Method {
    /// All methods, in the order in which they are reported.
    pub const ALL: [Self; 5] = [Self::Lockstep, Self::SlurmTree, Self::FirstFit, Self::Pack, Self::Pods];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lockstep => "lockstep",
            Self::SlurmTree => "slurm-tree",
            Self::FirstFit => "first-fit",
            Self::Pods => "pods",
            Self::Pack => "pack",
        }
    }
}

/// What a simulation assumes besides machine and workload.
#[derive(Clone, Debug)]
pub struct Assumptions {
    /// How fast a gang runs whose nodes lie 0, 1, 2, ... levels beyond its home level, against one that does not; the
    /// last entry holds for all further levels.
    pub step_rates: Vec<f64>,
    /// How many waiting jobs a scheduling pass looks at.
    pub depth: usize,
    /// Seconds after which a gang that has only some of its pods gives them back.
    pub pod_timeout: i64,
    /// Whether jobs of high priority may preempt those of low priority.
    pub preempt: bool,
    /// Mean seconds until a node fails, if nodes fail.
    pub mtbf: Option<f64>,
    /// Seconds until a failed node is back.
    pub repair: i64,
    /// Seed of the failures.
    pub seed: u64,
    /// The part of the submissions' span, from its start, that is not counted: the machine starts empty.
    pub warm_up: f64,
}

impl Default for Assumptions {
    /// A gang one level beyond its home runs at 80 % of its speed, further out at 55 %: the loss of up to 45 % that
    /// crossing oversubscribed switches is known to cost, and a guess for half the way. No failures, no preemption.
    fn default() -> Self {
        Self {
            step_rates: vec![1.0, 0.8, 0.55],
            depth: 500,
            pod_timeout: 600,
            preempt: false,
            mtbf: None,
            repair: 4 * 3600,
            seed: 1,
            warm_up: 0.1,
        }
    }
}

/// Runs a workload to its end. `progress` is told now and then how many jobs have ended.
pub fn simulate(
    machine: &Machine,
    workload: &Workload,
    assumptions: &Assumptions,
    method: Method,
    progress: impl FnMut(usize),
) -> Figures {
    let world = World::new(machine, workload, assumptions);
    let easy = |placers: Placers| Easy::new(placers, assumptions.depth, assumptions.preempt);
    match method {
        Method::Pods => world.run(Pods::new(machine, assumptions), method, progress),
        Method::Lockstep => world.run(easy(Placers::lockstep(machine)), method, progress),
        Method::Pack => world.run(easy(Placers::pack(machine)), method, progress),
        Method::SlurmTree => world.run(easy(Placers::slurm_tree(machine)), method, progress),
        Method::FirstFit => world.run(easy(Placers::first_fit(machine)), method, progress),
    }
}

#[cfg(test)]
mod tests;
