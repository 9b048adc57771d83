//! What a scheduler does that knows no gangs: each worker is a pod, placed alone as soon as a node has room.
//!
//! A gang runs only once all its pods are placed; until then those that are hold their nodes for nothing, and two gangs
//! can wait for each other for ever. After a time-out an incomplete gang gives its pods back and goes to the end of the
//! queue. A pod goes to the emptiest node, as is the default there.

use super::Assumptions;
use super::machine::Machine;
use super::world::{News, Scheduler, World};
use crate::nodeset::{NodeId, NodeSet};
use crate::placement::Planner;
use crate::placement::mix::Mix;
use crate::request::Time;
use std::collections::{BTreeMap, BTreeSet};

/// Places each worker alone.
pub struct Pods {
    planner: Planner,
    depth: usize,
    timeout: Time,
    /// Gangs that have some of their nodes, and until when they wait for the others.
    incomplete: BTreeMap<u32, (Vec<NodeId>, Time)>,
    /// The queue: those that gave their pods back stand behind.
    queue: BTreeSet<(u64, u32)>,
    turn: u64,
}

impl Pods {
    /// A scheduler with the time-out that is assumed.
    pub fn new(machine: &Machine, assumptions: &Assumptions) -> Self {
        Self {
            planner: Planner::new(&machine.fabric, &Mix::new([], [])),
            depth: assumptions.depth,
            timeout: assumptions.pod_timeout,
            incomplete: BTreeMap::new(),
            queue: BTreeSet::new(),
            turn: 0,
        }
    }

    fn enqueue(&mut self, job: u32) {
        self.turn += 1;
        self.queue.insert((self.turn, job));
    }

    /// Places as many of a job's missing pods as there is room for; false if nothing has room for any.
    fn place(&mut self, world: &mut World, job: u32) -> bool {
        let request = world.request(job);
        let missing = request.nodes as usize - self.incomplete.get(&job).map_or(0, |(nodes, _)| nodes.len());
        let free = self.planner.free(&world.ledger, world.up.size(), &request.share, world.now);
        let mut room: Vec<NodeId> = free.iter().filter(|&node| world.up.contains(node)).collect();
        if room.is_empty() {
            return false;
        }
        if !request.share.whole_node {
            room.sort_by_key(|&node| std::cmp::Reverse(world.ledger.slots(node).free));
        }
        room.truncate(missing);
        let (mut nodes, until) = self.incomplete.remove(&job).unwrap_or((vec![], world.now + self.timeout));
        if !nodes.is_empty() {
            world.give_back(job, nodes.len());
        }
        nodes.extend(room);
        if nodes.len() == request.nodes as usize {
            world.start(job, nodes);
        } else {
            world.set_aside(job, &nodes);
            self.incomplete.insert(job, (nodes, until));
        }
        true
    }

    fn time_out(&mut self, world: &mut World) {
        let late = self.incomplete.iter().filter(|(_, (_, until))| *until <= world.now);
        let late: Vec<u32> = late.map(|(&job, _)| job).collect();
        for job in late {
            let (nodes, _) = self.incomplete.remove(&job).unwrap_or_default();
            world.give_back(job, nodes.len());
            self.queue.retain(|&(_, other)| other != job);
            self.enqueue(job);
        }
    }

    /// Pods on failed nodes are gone.
    fn forget_failed(&mut self, world: &mut World) {
        let broken: Vec<u32> = self
            .incomplete
            .iter()
            .filter(|(_, (nodes, _))| nodes.iter().any(|&node| !world.up.contains(node)))
            .map(|(&job, _)| job)
            .collect();
        for job in broken {
            let Some((mut nodes, until)) = self.incomplete.remove(&job) else { continue };
            world.give_back(job, nodes.len());
            nodes.retain(|&node| world.up.contains(node));
            if !nodes.is_empty() {
                world.set_aside(job, &nodes);
                self.incomplete.insert(job, (nodes, until));
            }
        }
    }
}

impl Scheduler for Pods {
    fn schedule(&mut self, world: &mut World, news: &News) {
        let known: BTreeSet<u32> = self.queue.iter().map(|&(_, job)| job).collect();
        let returned = world.waiting.iter().map(|&(_, job)| job).filter(|job| !known.contains(job));
        let returned: Vec<u32> = if news.freed { returned.collect() } else { news.submitted.clone() };
        returned.into_iter().for_each(|job| self.enqueue(job));
        self.forget_failed(world);
        self.time_out(world);
        let mut idle = NodeSet::new(world.up.size());
        idle.copy_from(world.ledger.idle());
        let queue: Vec<(u64, u32)> = self.queue.iter().take(self.depth).copied().collect();
        let mut full = vec![false; world.workload.shapes.len()];
        for entry @ (_, job) in queue {
            let shape = world.job(job).shape;
            if full[shape] {
                continue;
            }
            full[shape] = !self.place(world, job);
            if world.running(job).is_some() {
                self.queue.remove(&entry);
            }
        }
    }

    fn alarm(&self) -> Option<Time> {
        self.incomplete.values().map(|&(_, until)| until).min()
    }
}
