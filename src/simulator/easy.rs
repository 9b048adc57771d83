//! First come, first served, with EASY backfill: the first job that cannot start gets a reservation, and jobs behind it
//! may start if they do not delay it.
//!
//! They do not if they end before the reservation begins, or keep off its nodes. In one pass things only get fuller, so
//! once a request was refused, its like is not tried again.

use super::placers::Placers;
use super::world::{News, Scheduler, World};
use crate::nodeset::NodeSet;
use crate::placement::victims::{Candidate, lost_work};
use crate::request::{JobId, Time};

/// First come, first served, with EASY backfill.
pub struct Easy {
    placers: Placers,
    depth: usize,
    preempts: bool,
    /// What is promised to the first job that cannot start.
    reservation: Option<Reservation>,
    /// Which requests were refused in this pass: by number, for jobs that may use all nodes and for those that must keep
    /// off the reservation.
    refused: Vec<[bool; 2]>,
    usable: NodeSet,
}

struct Reservation {
    job: u32,
    start: Time,
    nodes: NodeSet,
}

impl Easy {
    /// A scheduler that looks at so many waiting jobs in a pass.
    pub fn new(placers: Placers, depth: usize, preempts: bool) -> Self {
        let (reservation, refused, usable) = (None, Vec::new(), NodeSet::default());
        Self { placers, depth, preempts, reservation, refused, usable }
    }

    /// Tries to start a job now; false if it must wait.
    fn try_start(&mut self, world: &mut World, job: u32) -> bool {
        let (facts, request) = (world.job(job), world.request(job));
        let reserved =
            self.reservation.as_ref().filter(|reservation| world.now + facts.limit > reservation.start);
        let keeps_off = usize::from(reserved.is_some());
        if self.refused[facts.shape][keeps_off] {
            return false;
        }
        let free = self.placers.books().free(&world.ledger, world.up.size(), &request.share, world.now);
        self.usable.clone_from(free);
        self.usable.intersect_with(&world.up);
        if let Some(reservation) = reserved {
            self.usable.subtract(&reservation.nodes);
        }
        match self.placers.place(world, job, &self.usable) {
            Some(nodes) => {
                world.start(job, nodes.iter().collect());
                true
            }
            None => {
                self.refused[facts.shape][keeps_off] = true;
                false
            }
        }
    }

    /// Tries to make room for a job by preempting jobs of low priority.
    fn try_preempt(&mut self, world: &mut World, job: u32) -> bool {
        if !self.preempts || world.job(job).is_low {
            return false;
        }
        let candidates: Vec<Candidate> = world
            .ledger
            .jobs()
            .filter(|&JobId(other)| world.job(other).is_low)
            .filter_map(|JobId(other)| {
                let running = world.running(other)?;
                let lost = lost_work(running.nodes.len(), running.since, world.now);
                Some(Candidate { job: JobId(other), priority: 0, lost })
            })
            .collect();
        let Some((victims, nodes)) = self.placers.preempt(world, job, &candidates) else { return false };
        victims.iter().for_each(|&JobId(victim)| world.preempt(victim));
        world.start(job, nodes.iter().collect());
        true
    }

    fn reserve(&mut self, world: &World, job: u32) {
        self.reservation = self
            .placers
            .forecast(world, job)
            .map(|(start, nodes)| Reservation { job, start, nodes })
            // A job that never fits as things are must not hold up the others for ever.
            .or(Some(Reservation { job, start: Time::MAX, nodes: NodeSet::new(world.up.size()) }));
    }
}

impl Scheduler for Easy {
    fn schedule(&mut self, world: &mut World, news: &News) {
        news.submitted.iter().for_each(|&job| self.placers.learn(world, job));
        self.refused.clear();
        self.refused.resize(world.workload.shapes.len(), [false; 2]);
        if !news.freed && self.reservation.is_some() {
            // Nothing became free: what could not start still cannot.
            let ahead: usize = world.waiting.len().saturating_sub(news.submitted.len());
            for &job in news.submitted.iter().take(self.depth.saturating_sub(ahead)) {
                let _ = self.try_start(world, job) || self.try_preempt(world, job);
            }
            return;
        }
        self.reservation = None;
        let waiting: Vec<u32> = world.waiting.iter().take(self.depth).map(|&(_, job)| job).collect();
        for job in waiting {
            if self.try_start(world, job) || self.try_preempt(world, job) {
                continue;
            }
            if self.reservation.is_none() {
                self.reserve(world, job);
                // Behind a reservation, jobs that end in time may use what others must keep off.
                self.refused.iter_mut().for_each(|refused| refused[1] = refused[0]);
            }
        }
        debug_assert!(self.reservation.as_ref().is_none_or(|r| world.running(r.job).is_none()));
    }
}
