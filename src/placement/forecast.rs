//! When a gang could start: the earliest moment at which some domain has its nodes, if nobody else comes.
//!
//! Each node has a release time. In a domain, the k-th smallest of them is when k nodes are free: a selection, not a
//! replay of the queue. The earliest domain wins, then the one whose chosen nodes stand idle the shortest while it
//! drains, then the lowest id.

use super::candidates::{Counts, Home};
use super::verdict::{Placement, Verdict};
use super::{Planner, cover};
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
        ledger.keep_free(&request.share, &mut free);
        if let Verdict::Placed(placement) = self.place(fabric, &free, home, request, &[]) {
            return Some(Forecast { start: now, placement });
        }
        let best = home.domains.iter().filter_map(|&domain| {
            let (start, idle, placement) = earliest(fabric, ledger, permitted, domain, request, now)?;
            Some((start, idle, domain, placement))
        });
        let (start, .., placement) = best.min_by_key(|&(start, idle, domain, _)| (start, idle, domain))?;
        Some(Forecast { start, placement })
    }
}

/// The earliest start in one domain, with the idle node-seconds until then.
fn earliest(
    fabric: &Fabric,
    ledger: &Ledger,
    permitted: &NodeSet,
    domain: SwitchId,
    request: &Request,
    now: Time,
) -> Option<(Time, Time, Placement)> {
    let mut released: Vec<(Time, u32)> = fabric
        .nodes_under(domain)
        .iter()
        .filter(|&&node| permitted.contains(node))
        .filter_map(|&node| Some((ledger.release_time(node, &request.share, now)?, node)))
        .collect();
    released.sort_unstable();
    let enough = released.get((request.nodes as usize).checked_sub(1)?)?.0;

    let mut free = NodeSet::new(permitted.size());
    let mut counts = Counts::default();
    let mut rest = released.iter().peekable();
    // The count suffices at once, unless the nodes must be certain ones or stand in a row: then a later release helps.
    let mut moments: Vec<Time> =
        released.iter().map(|&(time, _)| time).filter(|&time| time >= enough).collect();
    moments.dedup();
    moments.into_iter().find_map(|moment| {
        while let Some(&&(_, node)) = rest.peek().filter(|(time, _)| *time <= moment) {
            free.insert(node);
            rest.next();
        }
        counts.count(fabric, &free);
        let placement = cover::choose(fabric, &counts, &free, domain, request)?;
        let chosen = released.iter().filter(|(_, node)| placement.nodes.contains(*node));
        let idle = chosen.map(|(time, _)| moment - time).sum();
        Some((moment, idle, placement))
    })
}
