//! Where a gang is placed: the lowest level with a domain that can hold it, and inside the choice that is exactly the
//! best one.
//!
//! [`candidates`] counts the usable nodes of every domain in one pass. [`choice`] ranks the domains and chooses inside one:
//! by the dynamic programme of [`cover`], which knows what a choice costs the gangs to come ([`hole_cost`]), or by
//! [`greedy`] where that would take too long. [`forecast`] does the same for a later time, from release times that are
//! remembered between gangs. [`verdict`] is the answer: a placement, or a refusal with its numbers. Every tie is broken by
//! the lowest id, so the same input always gives the same placement.

pub mod candidates;
pub mod choice;
pub mod cover;
pub mod forecast;
pub mod greedy;
pub mod hole_cost;
mod releases;
pub mod verdict;

use crate::cluster::Ledger;
use crate::fabric::tree::{Fabric, SwitchId};
use crate::nodeset::NodeSet;
use crate::request::{Request, Share, Time};
use candidates::{Counts, Home};
use choice::Chooser;
use hole_cost::Mix;
use releases::Releases;
use verdict::{Refusal, Verdict};

/// Places gangs over one fabric; keeps its buffers from one decision to the next.
#[derive(Debug, Default)]
pub struct Planner {
    counts: Counts,
    chooser: Chooser,
    releases: Releases,
}

impl Planner {
    /// A planner over a fabric that keeps room for a mix of gangs. All its functions must be given the same fabric.
    pub fn new(fabric: &Fabric, mix: &Mix) -> Self {
        Self { chooser: Chooser::new(fabric, mix), ..Self::default() }
    }

    /// The level at which a gang is contiguous, and the domains of it that could hold the gang; none if no domain
    /// could.
    ///
    /// `eligible` are the nodes that could ever serve, whatever runs or is down now. Required nodes lift the home to
    /// the lowest level with a domain that holds all of them.
    pub fn home(&mut self, fabric: &Fabric, eligible: &NodeSet, request: &Request) -> Option<Home> {
        self.counts.count(fabric, eligible);
        candidates::home(fabric, eligible, &self.counts, request)
    }

    /// The nodes that can give a share now. Remembered, so that asking for gang after gang is cheap.
    pub fn free(&mut self, ledger: &Ledger, node_count: usize, share: &Share, now: Time) -> &NodeSet {
        self.releases.of(ledger, node_count, share, now).free()
    }

    /// Places a gang on usable nodes inside one domain of its home level.
    ///
    /// `refused` are node sets that were proposed before and turned down; none of them comes again.
    pub fn place(
        &mut self,
        fabric: &Fabric,
        usable: &NodeSet,
        home: &Home,
        request: &Request,
        refused: &[NodeSet],
    ) -> Verdict {
        let Self { counts, chooser, .. } = self;
        counts.count(fabric, usable);
        let domains = home.domains.iter().copied();
        let mut domains: Vec<SwitchId> =
            domains.filter(|&domain| candidates::holds(fabric, usable, counts, domain, request)).collect();
        chooser.rank(fabric, counts, request, &mut domains);
        let placements =
            domains.into_iter().filter_map(|domain| chooser.choose(fabric, counts, usable, domain, request));
        match placements.into_iter().find(|placement| !refused.contains(&placement.nodes)) {
            Some(placement) => Verdict::Placed(placement),
            None => Verdict::Refused(self.refusal(fabric, home, request)),
        }
    }

    /// The domains of the gang's home level by how many usable nodes each has, the most first.
    pub fn fullest_domains(
        &mut self,
        fabric: &Fabric,
        usable: &NodeSet,
        home: &Home,
    ) -> Vec<(SwitchId, u32)> {
        self.counts.count(fabric, usable);
        let mut domains: Vec<_> =
            home.domains.iter().map(|&domain| (domain, self.counts.of(domain))).collect();
        domains.sort_by_key(|&(domain, count)| (std::cmp::Reverse(count), domain));
        domains
    }

    fn refusal(&self, fabric: &Fabric, home: &Home, request: &Request) -> Refusal {
        let domains = home.domains.iter().map(|&domain| (domain, self.counts.of(domain)));
        let best = domains.max_by_key(|&(domain, count)| (count, std::cmp::Reverse(domain)));
        Refusal {
            needed: request.nodes,
            level: home.level,
            best: best.map(|(domain, usable)| verdict::Best {
                name: fabric.switch(domain).name.clone(),
                usable,
                size: fabric.switch(domain).node_count() as u32,
            }),
        }
    }
}

/// All nodes of a domain that are in `permitted`.
pub fn domain_nodes(fabric: &Fabric, domain: SwitchId, permitted: &NodeSet) -> NodeSet {
    let under = fabric.nodes_under(domain).iter().copied();
    NodeSet::from_nodes(permitted.size(), under.filter(|&node| permitted.contains(node)))
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod twins;
