//! Where a gang is placed: the lowest level with a domain that can hold it, the fewest leaves inside, the tightest fit.
//!
//! [`candidates`] counts the usable nodes of every domain in one pass, [`cover`] chooses leaves and nodes inside one,
//! [`forecast`] does the same for a later time, from release times that are remembered between gangs, and [`verdict`] is the answer: a placement, or a refusal with its
//! numbers. Every tie is broken by the lowest id, so the same input always gives the same placement.

pub mod candidates;
pub mod cover;
pub mod forecast;
mod releases;
pub mod verdict;

use crate::cluster::Ledger;
use crate::fabric::tree::{Fabric, SwitchId};
use crate::nodeset::NodeSet;
use crate::request::{Request, Share, Time};
use candidates::{Counts, Home};
use releases::Releases;
use verdict::{Refusal, Verdict};

/// Places gangs; keeps its buffers from one decision to the next.
#[derive(Debug, Default)]
pub struct Planner {
    usable: Counts,
    eligible: Counts,
    releases: Releases,
}

impl Planner {
    /// The level at which a gang is contiguous, and the most nodes that any domain of it could give; none if no domain
    /// could hold the gang.
    ///
    /// `eligible` are the nodes that could ever serve, whatever runs or is down now. Required nodes lift the home to
    /// the lowest level with a domain that holds all of them.
    pub fn home(&mut self, fabric: &Fabric, eligible: &NodeSet, request: &Request) -> Option<Home> {
        self.eligible.count(fabric, eligible);
        candidates::home(fabric, &self.eligible, request)
    }

    /// The nodes that can give a share now. Remembered, so that asking for gang after gang is cheap.
    pub fn free(&mut self, ledger: &Ledger, node_count: usize, share: &Share, now: Time) -> &NodeSet {
        self.releases.of(ledger, node_count, share, now).free()
    }

    /// Places a gang on usable nodes inside one domain of its home level.
    ///
    /// `refused` are domains' node sets that were proposed before and turned down; none of them comes again.
    pub fn place(
        &mut self,
        fabric: &Fabric,
        usable: &NodeSet,
        home: &Home,
        request: &Request,
        refused: &[NodeSet],
    ) -> Verdict {
        self.usable.count(fabric, usable);
        let mut domains = candidates::fitting(fabric, &self.usable, home, request);
        // The tightest domain first; a lone one-node leaf never holds a gang, so it cannot win by being tight.
        domains.sort_by_key(|&(leaves, count, domain)| (leaves, count, domain));
        for (_, _, domain) in domains {
            let placement = cover::choose(fabric, &self.usable, usable, domain, request);
            if let Some(placement) = placement
                && !refused.contains(&placement.nodes)
            {
                return Verdict::Placed(placement);
            }
        }
        Verdict::Refused(self.refusal(fabric, home, request))
    }

    /// The domains of the gang's home level by how many usable nodes each has, the most first.
    pub fn fullest_domains(
        &mut self,
        fabric: &Fabric,
        usable: &NodeSet,
        home: &Home,
    ) -> Vec<(SwitchId, u32)> {
        self.usable.count(fabric, usable);
        let mut domains: Vec<_> =
            home.domains.iter().map(|&domain| (domain, self.usable.of(fabric, domain))).collect();
        domains.sort_by_key(|&(domain, count)| (std::cmp::Reverse(count), domain));
        domains
    }

    fn refusal(&self, fabric: &Fabric, home: &Home, request: &Request) -> Refusal {
        let best = home
            .domains
            .iter()
            .map(|&domain| (domain, self.usable.of(fabric, domain)))
            .max_by_key(|&(domain, count)| (count, std::cmp::Reverse(domain)));
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
