//! When a gang could start: the earliest moment at which some domain has its nodes, if nobody else comes.
//!
//! Each node has a release time. In a domain, the k-th smallest of them is when k nodes are free: a selection, not a
//! replay of the queue. The earliest domain wins, then the one whose nodes stand idle the shortest while it drains, then
//! the lowest id. Only the winner's nodes are then chosen.

use super::Planner;
use super::candidates::{Counts, Home};
use super::choice::Chooser;
use super::releases::Table;
use super::verdict::{Placement, Verdict};
use crate::cluster::Ledger;
use crate::fabric::tree::{Fabric, SwitchId};
use crate::nodeset::NodeSet;
use crate::request::{Request, Time};

/// When and where a gang could start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forecast {
    /// The moment: the `now` that was asked with, or later.
    pub start: Time,
    /// The nodes.
    pub placement: Placement,
}

impl Planner {
    /// When and where the gang could start on permitted nodes; none if they never suffice.
    ///
    /// A gang that can start now gets the very nodes that [`Planner::place`] gives it.
    pub fn forecast(
        &mut self,
        fabric: &Fabric,
        ledger: &Ledger,
        permitted: &NodeSet,
        home: &Home,
        request: &Request,
        now: Time,
    ) -> Option<Forecast> {
        let mut free = permitted.clone();
        free.intersect_with(self.free(ledger, permitted.size(), &request.share, now));
        if let Verdict::Placed(placement) = self.place(fabric, &free, home, request, &[]) {
            return Some(Forecast { start: now, placement });
        }
        let Self { releases, chooser, counts } = self;
        let table = releases.of(ledger, permitted.size(), &request.share, now);
        let mut domains: Vec<Drain> = home
            .domains
            .iter()
            .filter_map(|&domain| Drain::of(fabric, table, permitted, domain, request.nodes as usize))
            .collect();
        domains.sort_unstable();
        // Counting suffices, unless the nodes must be certain ones or stand in a row: then a domain may have to drain
        // further than its k-th release, and a later one may be earlier.
        let mut best: Option<Forecast> = None;
        for drain in domains {
            if best.as_ref().is_some_and(|best| best.start <= drain.enough) {
                break;
            }
            if let Some((start, placement)) = drain.choose(chooser, counts, fabric, table, permitted, request)
                && best.as_ref().is_none_or(|best| start < best.start)
            {
                best = Some(Forecast { start, placement });
            }
        }
        best
    }
}

/// What it takes to drain a domain for a gang; in the order of preference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Drain {
    /// When enough nodes are free.
    enough: Time,
    /// Node-seconds that those nodes stand idle until then.
    idle: Time,
    domain: SwitchId,
}

impl Drain {
    fn of(
        fabric: &Fabric,
        table: &Table,
        permitted: &NodeSet,
        domain: SwitchId,
        nodes: usize,
    ) -> Option<Self> {
        let mut times: Vec<Time> = fabric
            .nodes_under(domain)
            .iter()
            .filter(|&&node| permitted.contains(node))
            .filter_map(|&node| table.time(node))
            .collect();
        let last = nodes.checked_sub(1).filter(|&last| last < times.len())?;
        let (sooner, &mut enough, _) = times.select_nth_unstable(last);
        let idle = sooner.iter().map(|&time| enough.saturating_sub(time)).fold(0, Time::saturating_add);
        Some(Self { enough, idle, domain })
    }

    /// The gang's nodes at the first moment that has them.
    fn choose(
        &self,
        chooser: &mut Chooser,
        counts: &mut Counts,
        fabric: &Fabric,
        table: &Table,
        permitted: &NodeSet,
        request: &Request,
    ) -> Option<(Time, Placement)> {
        let nodes =
            || fabric.nodes_under(self.domain).iter().copied().filter(|&node| permitted.contains(node));
        let mut moments: Vec<Time> = nodes().filter_map(|node| table.time(node)).collect();
        moments.retain(|&time| time >= self.enough);
        moments.sort_unstable();
        moments.dedup();
        moments.into_iter().find_map(|moment| {
            let free = nodes().filter(|&node| table.time(node).is_some_and(|time| time <= moment));
            let free = NodeSet::from_nodes(permitted.size(), free);
            counts.count(fabric, &free);
            Some((moment, chooser.choose(fabric, counts, &free, self.domain, request)?))
        })
    }
}
