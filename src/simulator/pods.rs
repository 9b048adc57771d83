//! What a scheduler does that knows no gangs: each worker is a pod, placed alone as soon as a node has room.
//!
//! A gang runs only once all its pods are placed; until then those that are hold their nodes for nothing, and gangs can
//! wait for each other for ever. After a time-out an incomplete gang gives its pods back and goes to the end of the queue.
//! Pods that found no room are tried again in the order of the queue, but only after a back-off: when capacity appears,
//! half of the gangs, drawn anew each time, are not there to take it. A pod goes to the emptiest node, as is the default.

use super::Assumptions;
use super::draws::Draws;
use super::machine::Machine;
use super::world::{News, Scheduler, World};
use crate::nodeset::NodeId;
use crate::placement::Planner;
use crate::placement::mix::Mix;
use crate::request::Time;
use std::collections::{BTreeMap, BTreeSet};

/// Places each worker alone.
pub struct Pods {
    planner: Planner,
    depth: usize,
    timeout: Time,
    draws: Draws,
    /// Gangs that have some of their nodes, and until when they wait for the others.
    incomplete: BTreeMap<u32, (Vec<NodeId>, Time)>,
    /// All waiting jobs; those that gave their pods back stand behind.
    queue: BTreeSet<(u64, u32)>,
    turn: u64,
    /// When pods that are in back-off are tried again, if any are.
    retry: Option<Time>,
}

/// Seconds until a pod that found no room is tried again even if nothing happens: the longest back-off there.
const BACK_OFF: Time = 10;

impl Pods {
    /// A scheduler with the time-out that is assumed.
    pub fn new(machine: &Machine, assumptions: &Assumptions) -> Self {
        Self {
            planner: Planner::new(&machine.fabric, &Mix::new([], [])),
            depth: assumptions.depth,
            timeout: assumptions.pod_timeout,
            draws: Draws::new(assumptions.seed),
            incomplete: BTreeMap::new(),
            queue: BTreeSet::new(),
            turn: 0,
            retry: None,
        }
    }

    /// Takes the pods back of gangs that waited too long, and those on failed nodes.
    fn take_back(&mut self, world: &mut World) {
        let (up, now) = (&world.up, world.now);
        let lost =
            |nodes: &[NodeId], until: Time| until <= now || nodes.iter().any(|&node| !up.contains(node));
        let broken = self.incomplete.iter().filter(|(_, (nodes, until))| lost(nodes, *until));
        let broken: Vec<u32> = broken.map(|(&job, _)| job).collect();
        for job in broken {
            let Some((mut nodes, until)) = self.incomplete.remove(&job) else { continue };
            world.give_back(job, nodes.len());
            nodes.retain(|&node| world.up.contains(node) && until > world.now);
            if nodes.is_empty() {
                self.queue.retain(|&(_, other)| other != job);
                self.enqueue(job);
            } else {
                world.set_aside(job, &nodes);
                self.incomplete.insert(job, (nodes, until));
            }
        }
    }

    /// Places as many of a job's missing pods as there is room for; false if there is room for none.
    fn place(&mut self, world: &mut World, job: u32) -> bool {
        let request = world.request(job);
        let held = self.incomplete.get(&job).map_or(0, |(nodes, _)| nodes.len());
        let free = self.planner.free(&world.ledger, world.up.size(), &request.share, world.now);
        let mut room: Vec<NodeId> = free.iter().filter(|&node| world.up.contains(node)).collect();
        if room.is_empty() {
            return false;
        }
        if !request.share.whole_node {
            room.sort_by_key(|&node| std::cmp::Reverse(world.ledger.slots(node).free));
        }
        room.truncate(request.nodes as usize - held);
        let (mut nodes, until) = self.incomplete.remove(&job).unwrap_or((vec![], world.now + self.timeout));
        if !nodes.is_empty() {
            world.give_back(job, nodes.len());
        }
        nodes.extend(room);
        if nodes.len() == request.nodes as usize {
            self.queue.retain(|&(_, other)| other != job);
            world.start(job, nodes);
        } else {
            world.set_aside(job, &nodes);
            self.incomplete.insert(job, (nodes, until));
        }
        true
    }

    fn enqueue(&mut self, job: u32) {
        self.turn += 1;
        self.queue.insert((self.turn, job));
    }
}

impl Scheduler for Pods {
    fn schedule(&mut self, world: &mut World, news: &News) {
        news.submitted.iter().for_each(|&job| self.enqueue(job));
        self.retry = None;
        world.interrupted.drain(..).for_each(|job| self.enqueue(job));
        self.take_back(world);
        let queue: Vec<u32> = self.queue.iter().take(self.depth).map(|&(_, job)| job).collect();
        let mut full = vec![false; world.workload.shapes.len()];
        for job in queue {
            let shape = world.job(job).shape;
            let is_new = news.submitted.contains(&job);
            if full[shape] {
                continue;
            }
            if is_new || self.draws.fraction() < 0.5 {
                full[shape] = !self.place(world, job);
            } else {
                self.retry = Some(world.now + BACK_OFF);
            }
        }
    }

    fn alarm(&self) -> Option<Time> {
        self.incomplete.values().map(|&(_, until)| until).chain(self.retry).min()
    }
}
