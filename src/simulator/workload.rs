//! The jobs of a trace, as a machine is asked for them.
//!
//! A job of up to as many GPUs as a node has runs on one node, beside others; a larger one is a gang of whole nodes.

use super::draws::Draws;
use super::machine::Machine;
use super::trace::Trace;
use crate::request::{Request, Time};
use std::collections::HashMap;

/// One job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// When it is submitted, in seconds after the first submission.
    pub submit: Time,
    /// How long it runs where nothing slows it down, in seconds.
    pub run: Time,
    /// How long its user says that it runs at most, in seconds.
    pub limit: Time,
    /// GPUs in all.
    pub gpus: u32,
    /// Nodes.
    pub nodes: u32,
    /// Its request, by number.
    pub shape: usize,
    /// Whether jobs that are not may preempt it.
    pub is_low: bool,
}

/// The jobs, and the requests that they make.
#[derive(Clone, Debug)]
pub struct Workload {
    /// The jobs in the order of their submission.
    pub jobs: Vec<Job>,
    /// The different requests: jobs that ask for the same share one.
    pub shapes: Vec<Request>,
    /// Jobs of the trace that no domain of the machine could ever hold; they are left out.
    pub too_large: usize,
}

/// How a trace is read as a workload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// Where the trace gives no time limit, the limit is the run time times this.
    pub overestimate: f64,
    /// The share of jobs that are of low priority.
    pub low_share: f64,
    /// Seed of the draw.
    pub seed: u64,
}

impl Workload {
    /// The jobs of a trace on a machine.
    pub fn new(trace: &Trace, machine: &Machine, reading: Reading) -> Self {
        let mut draw = Draws::new(reading.seed);
        let mut known: HashMap<u32, Option<usize>> = HashMap::new();
        let mut workload =
            Self { jobs: Vec::with_capacity(trace.jobs.len()), shapes: Vec::new(), too_large: 0 };
        let per_node = machine.gpus_per_node;
        let roots = || machine.fabric.switches().filter(|(_, switch)| switch.parent.is_none());
        let largest = roots().map(|(_, root)| root.node_count() as u32).max().unwrap_or(0);
        for job in &trace.jobs {
            let is_low = draw.fraction() < reading.low_share;
            let nodes = job.devices.div_ceil(per_node);
            // Gangs take whole nodes, so what they ask for is a number of nodes.
            let key = if nodes > 1 { nodes * per_node } else { job.devices };
            let shape = known.entry(key).or_insert_with(|| {
                (nodes <= largest).then(|| {
                    workload.shapes.push(Request::new(nodes, machine.share(key)));
                    workload.shapes.len() - 1
                })
            });
            let Some(shape) = *shape else {
                workload.too_large += 1;
                continue;
            };
            let guessed = (job.run as f64 * reading.overestimate).ceil() as Time;
            let limit = job.limit.unwrap_or(guessed).max(1);
            let (submit, run, gpus) = (job.submit, job.run, job.devices);
            workload.jobs.push(Job { submit, run, limit, gpus, nodes, shape, is_low });
        }
        workload
    }
}
