//! The clock, the ledger and the queue of a simulated machine.
//!
//! Time jumps from event to event: jobs are submitted, end, nodes fail and come back. After all events of a moment the
//! scheduler is asked once what starts. A job that is stopped before its end (its node failed, it was preempted) waits
//! again and starts from the beginning.

use super::draws::Draws;
use super::figures::{Figures, Gathering};
use super::machine::{GPU, Machine};
use super::workload::{Job, Workload};
use super::{Assumptions, Method};
use crate::cluster::{Held, Holding, Ledger};
use crate::nodeset::{NodeId, NodeSet};
use crate::request::{JobId, Request, Time};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// What happened at a moment, for the scheduler to look at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// Whether anything became free.
    pub freed: bool,
    /// Jobs that were submitted, in order.
    pub submitted: Vec<u32>,
}

/// Decides what starts.
pub trait Scheduler {
    /// Starts what can start now.
    fn schedule(&mut self, world: &mut World, news: &News);

    /// When it wants to be asked even if nothing happens.
    fn alarm(&self) -> Option<Time> {
        None
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A job ends, if it still is the start of that number.
    End(u32, u32),
    /// A node fails.
    Failure(NodeId),
    /// A node is back.
    Repair(NodeId),
}

/// A job on its nodes.
#[derive(Clone, Debug)]
pub struct Running {
    /// Its nodes.
    pub nodes: Vec<NodeId>,
    /// Since when.
    pub since: Time,
    /// The share of its speed that it runs at.
    pub rate: f64,
}

/// A simulated machine.
pub struct World<'a> {
    /// The switches and nodes.
    pub machine: &'a Machine,
    /// All jobs.
    pub workload: &'a Workload,
    /// Who holds what.
    pub ledger: Ledger,
    /// The nodes that have not failed.
    pub up: NodeSet,
    /// The jobs that wait, by priority (low ones last) and number.
    pub waiting: BTreeSet<(bool, u32)>,
    /// Jobs that were stopped before their end, for a scheduler that keeps a queue of its own.
    pub interrupted: Vec<u32>,
    /// The time.
    pub now: Time,
    assumptions: &'a Assumptions,
    running: Vec<Option<Running>>,
    starts: Vec<u32>,
    events: BinaryHeap<Reverse<(Time, Event)>>,
    draws: Draws,
    gathering: Gathering<'a>,
}

impl<'a> World<'a> {
    /// An empty machine before its first job.
    pub fn new(machine: &'a Machine, workload: &'a Workload, assumptions: &'a Assumptions) -> Self {
        let jobs = workload.jobs.len();
        let mut world = Self {
            machine,
            workload,
            ledger: machine.ledger(),
            up: machine.fabric.listed().clone(),
            waiting: BTreeSet::new(),
            interrupted: Vec::new(),
            now: 0,
            assumptions,
            running: vec![None; jobs],
            starts: vec![0; jobs],
            events: BinaryHeap::new(),
            draws: Draws::new(assumptions.seed),
            gathering: Gathering::new(machine, workload, assumptions),
        };
        machine.fabric.listed().iter().for_each(|node| world.plan_failure(node));
        world
    }

    /// Runs all jobs to their end.
    pub fn run(
        mut self,
        mut scheduler: impl Scheduler,
        method: Method,
        mut progress: impl FnMut(usize),
    ) -> Figures {
        let jobs = &self.workload.jobs;
        let (mut next, mut ended, mut told) = (0, 0, 0);
        while ended < jobs.len() {
            let submission = jobs.get(next).map(|job| job.submit);
            let event = self.events.peek().map(|Reverse((time, _))| *time);
            let alarm = scheduler.alarm();
            let Some(time) = [submission, event, alarm].into_iter().flatten().min() else { break };
            self.gathering.pass(&self.ledger, &self.up, &self.waiting, time);
            self.now = time;
            let mut news = News { freed: alarm.is_some_and(|alarm| alarm <= time), submitted: Vec::new() };
            while let Some(&Reverse((at, event))) = self.events.peek()
                && at == time
            {
                self.events.pop();
                match event {
                    Event::End(job, start) if self.starts[job as usize] == start => {
                        self.stop(job, true);
                        ended += 1;
                        news.freed = true;
                    }
                    Event::End(..) => {}
                    // Failures go on for ever, but a simulation without jobs has an end.
                    Event::Failure(node) => self.fail(node),
                    Event::Repair(node) => {
                        self.up.insert(node);
                        self.plan_failure(node);
                        news.freed = true;
                    }
                }
            }
            while next < jobs.len() && jobs[next].submit <= time {
                self.waiting.insert((jobs[next].is_low, next as u32));
                news.submitted.push(next as u32);
                next += 1;
            }
            scheduler.schedule(&mut self, &news);
            self.interrupted.clear();
            if ended >= told + 1000 {
                told = ended;
                progress(ended);
            }
        }
        progress(ended);
        self.gathering.finish(method)
    }

    /// A job's facts.
    pub fn job(&self, job: u32) -> &'a Job {
        &self.workload.jobs[job as usize]
    }

    /// A job's request.
    pub fn request(&self, job: u32) -> &'a Request {
        &self.workload.shapes[self.job(job).shape]
    }

    /// The job on its nodes, if it runs.
    pub fn running(&self, job: u32) -> Option<&Running> {
        self.running[job as usize].as_ref()
    }

    /// Gives nodes to a job without starting it: it waits for more of them.
    pub fn set_aside(&mut self, job: u32, nodes: &[NodeId]) {
        self.gathering.set_aside(self.job(job), nodes.len());
        self.hold(job, nodes);
    }

    /// Takes back what a job held that never started.
    pub fn give_back(&mut self, job: u32, nodes: usize) {
        self.gathering.give_back(self.job(job), nodes);
        self.ledger.release(JobId(job));
    }

    fn hold(&mut self, job: u32, nodes: &[NodeId]) {
        let share = &self.request(job).share;
        let gpus = share.gres.first().map_or(0, |&(_, count)| count);
        let held = Held { cpus: share.cpus, memory_mb: 0, gres: vec![(GPU, gpus)] };
        let nodes = nodes.iter().map(|&node| (node, held.clone())).collect();
        let end = self.now + self.job(job).limit;
        self.ledger.hold(JobId(job), Holding { nodes, end, suspended: false });
    }

    /// Starts a waiting job on its nodes.
    pub fn start(&mut self, job: u32, nodes: Vec<NodeId>) {
        let facts = self.job(job);
        self.waiting.remove(&(facts.is_low, job));
        self.hold(job, &nodes);
        let rates = &self.assumptions.step_rates;
        let beyond = self.machine.levels_beyond(&nodes);
        let rate = rates.get(beyond).or(rates.last()).copied().unwrap_or(1.0);
        let end = self.now + (facts.run as f64 / rate).ceil() as Time;
        self.events.push(Reverse((end, Event::End(job, self.starts[job as usize]))));
        let running = Running { nodes, since: self.now, rate };
        self.gathering.start(facts, &running, beyond, self.starts[job as usize] == 0);
        self.running[job as usize] = Some(running);
    }

    /// Stops a running job before its end; it waits again.
    pub fn preempt(&mut self, job: u32) {
        self.gathering.preempted();
        self.interrupt(job);
    }

    fn interrupt(&mut self, job: u32) {
        self.stop(job, false);
        self.waiting.insert((self.job(job).is_low, job));
        self.interrupted.push(job);
    }

    fn stop(&mut self, job: u32, is_done: bool) {
        self.starts[job as usize] += 1;
        self.ledger.release(JobId(job));
        if let Some(running) = self.running[job as usize].take() {
            self.gathering.stop(self.job(job), &running, is_done, self.now);
        }
    }

    fn fail(&mut self, node: NodeId) {
        self.up.remove(node);
        self.gathering.failed();
        let victims: Vec<JobId> = self.ledger.holders(node).collect();
        for JobId(job) in victims {
            if self.running(job).is_some() {
                self.interrupt(job);
            }
        }
        self.events.push(Reverse((self.now + self.assumptions.repair, Event::Repair(node))));
    }

    fn plan_failure(&mut self, node: NodeId) {
        let Some(mtbf) = self.assumptions.mtbf else { return };
        // Exponential: the time to the next failure does not depend on how long the node has been up.
        let time = self.now + (mtbf * self.draws.exponential()).ceil() as Time;
        self.events.push(Reverse((time, Event::Failure(node))));
    }
}
