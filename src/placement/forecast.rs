//! When a gang could start: the earliest moment at which some domain has its nodes, if nobody else comes.
//!
//! Each node has a release time. In a domain, the k-th smallest of them is when k nodes are free: a selection, not a
//! replay of the queue. The earliest domain wins, then the one whose nodes stand idle the shortest while it drains, then
//! the least hole cost at that moment, then the lowest id. Only the nodes of domains that could win are then chosen.

use super::candidates::Home;
use super::choice::Ranked;
use super::pool::Moment;
use super::releases::Table;
use super::verdict::{Placement, Refusal};
use super::{Planner, classes};
use crate::cluster::Ledger;
use crate::fabric::tree::{Fabric, SwitchId};
use crate::nodeset::NodeSet;
use crate::request::{Request, Share, Time};

/// When and where a gang could start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forecast<'a> {
    /// The moment: the `now` that was asked with, or later.
    pub start: Time,
    /// The nodes.
    pub placement: &'a Placement,
    /// Why it does not start now; none if it does.
    pub refusal: Option<Refusal>,
}

impl Planner {
    /// When and where the gang could start on permitted nodes; none if they never suffice.
    ///
    /// A gang that can start now gets the very nodes that [`Planner::place`] gives it. An elastic gang starts as soon as
    /// it has the fewest nodes that will do.
    pub fn forecast(
        &mut self,
        fabric: &Fabric,
        ledger: &Ledger,
        permitted: &NodeSet,
        home: &Home,
        request: &Request,
        now: Time,
    ) -> Option<Forecast<'_>> {
        let mut free = std::mem::take(&mut self.room.free);
        free.clone_from(permitted);
        free.intersect_with(self.free(ledger, permitted.size(), &request.share, now));
        let refusal = self.place(fabric, ledger, &free, home, request, &[]).err();
        self.room.free = free;
        if refusal.is_none() {
            return Some(Forecast { start: now, placement: &self.placement, refusal });
        }
        let Self { releases, chooser, holes, pool, placement, room, .. } = self;
        let Room { free, times, drains, worth, here, candidate } = room;
        let table = releases.of(ledger, permitted.size(), &request.share, now);
        drains.clear();
        for (class, only) in (0..).zip(classes(request)) {
            let allowed = |node| permitted.contains(node) && only.is_none_or(|only| only.contains(node));
            let nodes = request.at_least as usize;
            let drain = |&domain: &SwitchId| Drain::of(fabric, table, allowed, domain, class, nodes, times);
            drains.extend(home.domains.iter().filter_map(drain));
        }
        drains.sort_unstable();
        // Counting suffices, unless the nodes must be certain ones, in a row or in segments: then a domain may have to
        // drain further than its k-th release, and a later one may be earlier.
        let mut best: Option<(Time, Time, Ranked)> = None;
        for drain in drains.iter() {
            if best.is_some_and(|(start, idle, _)| (start, idle) < (drain.enough, drain.idle)) {
                break;
            }
            here.domains.clear();
            here.domains.push(drain.domain);
            (here.level, here.segment_level) = (home.level, home.segment_level);
            let mut next = Some(drain.enough);
            while let Some(moment) = next.filter(|&moment| best.is_none_or(|(start, ..)| moment <= start)) {
                free.clear();
                let is_free = |&node: &u32| table.time(node).is_some_and(|time| time <= moment);
                permitted.iter().filter(is_free).for_each(|node| free.insert(node));
                let only = request.uniform.get(drain.class as usize);
                pool.fill(fabric, ledger, free, only, request, Moment::Later);
                let search = pool.search(fabric, ledger, holes, here, request);
                worth.clear();
                chooser.rank(&search, drain.class, worth);
                if !worth.is_empty() && chooser.choose(&search, drain.domain, candidate) {
                    let this = (moment, drain.idle, worth[0]);
                    if best.is_none_or(|best| this < best) {
                        best = Some(this);
                        std::mem::swap(placement, candidate);
                    }
                    break;
                }
                next = drain.next_release(fabric, table, permitted, moment);
            }
        }
        let (start, ..) = best?;
        Some(Forecast { start, placement: &self.placement, refusal })
    }

    /// When so many permitted nodes can give a share, wherever they are, and which can then; none if they never suffice.
    pub fn first_free(
        &mut self,
        ledger: &Ledger,
        permitted: &NodeSet,
        share: &Share,
        nodes: u32,
        now: Time,
    ) -> Option<(Time, NodeSet)> {
        let table = self.releases.of(ledger, permitted.size(), share, now);
        let mut times: Vec<Time> = permitted.iter().filter_map(|node| table.time(node)).collect();
        let last = (nodes as usize).checked_sub(1).filter(|&last| last < times.len())?;
        let time = *times.select_nth_unstable(last).1;
        let by_then = |&node: &u32| table.time(node).is_some_and(|release| release <= time);
        Some((time, NodeSet::from_nodes(permitted.size(), permitted.iter().filter(by_then))))
    }
}

/// Room to work in, kept from one forecast to the next.
#[derive(Debug, Default)]
pub struct Room {
    free: NodeSet,
    times: Vec<Time>,
    drains: Vec<Drain>,
    worth: Vec<Ranked>,
    here: Home,
    candidate: Placement,
}

/// What it takes to drain a domain for a gang; in the order of preference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Drain {
    /// When enough nodes are free.
    enough: Time,
    /// Node-seconds that those nodes stand idle until then.
    idle: Time,
    domain: SwitchId,
    class: u32,
}

impl Drain {
    fn of(
        fabric: &Fabric,
        table: &Table,
        allowed: impl Fn(u32) -> bool,
        domain: SwitchId,
        class: u32,
        nodes: usize,
        times: &mut Vec<Time>,
    ) -> Option<Self> {
        let under = fabric.nodes_under(domain).iter().copied().filter(|&node| allowed(node));
        times.clear();
        times.extend(under.filter_map(|node| table.time(node)));
        let last = nodes.checked_sub(1).filter(|&last| last < times.len())?;
        let (sooner, &mut enough, _) = times.select_nth_unstable(last);
        let idle = sooner.iter().map(|&time| enough.saturating_sub(time)).fold(0, Time::saturating_add);
        Some(Self { enough, idle, domain, class })
    }

    /// The moment after another one at which a node of the domain is free.
    fn next_release(&self, fabric: &Fabric, table: &Table, permitted: &NodeSet, after: Time) -> Option<Time> {
        let under = fabric.nodes_under(self.domain).iter().copied().filter(|&node| permitted.contains(node));
        under.filter_map(|node| table.time(node)).filter(|&time| time > after).min()
    }
}
