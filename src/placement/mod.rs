//! Where a gang is placed: the lowest level with a domain that can hold it, and inside the choice that is exactly the
//! best one.
//!
//! [`candidates`] counts the usable nodes of every domain in one pass. [`choice`] ranks the domains and chooses inside one:
//! by the dynamic programme of [`cover`], which knows what a choice costs the gangs to come ([`hole_cost`]), by [`window`]
//! for gangs that must lie in a row, by [`greedy`] where the programme would take too long, and by [`single`] for jobs of a
//! part of one node. [`forecast`] does the same for a later time, from release times that are remembered between gangs;
//! [`victims`] for nodes that others would have to leave. [`verdict`] is the answer: a placement, or a refusal with its
//! numbers, and [`explain`] says what else people ask. Every tie is broken by the lowest id, so the same input always gives
//! the same placement.

pub mod candidates;
pub mod choice;
mod cost;
mod cover;
pub mod explain;
pub mod forecast;
mod greedy;
pub mod hole_cost;
mod leaf;
pub mod mix;
mod pool;
mod releases;
mod search;
mod single;
pub mod verdict;
pub mod victims;
mod window;

use crate::cluster::Ledger;
use crate::fabric::tree::{Fabric, Level, SwitchId};
use crate::nodeset::NodeSet;
use crate::request::{Request, Share, Time};
use candidates::{Counts, Home};
use choice::{Chooser, Ranked};
use hole_cost::HoleCost;
use mix::Mix;
use pool::{Moment, Pool};
use releases::Releases;
use verdict::{Best, Placement, Refusal};

/// Places gangs over one fabric; keeps its buffers from one decision to the next.
#[derive(Debug, Default)]
pub struct Planner {
    holes: HoleCost,
    chooser: Chooser,
    releases: Releases,
    pool: Pool,
    ranked: Vec<Ranked>,
    placement: Placement,
    room: forecast::Room,
}

impl Planner {
    /// A planner over a fabric that keeps room for a mix of gangs. All its functions must be given the same fabric.
    pub fn new(fabric: &Fabric, mix: &Mix) -> Self {
        Self { holes: HoleCost::new(fabric, mix), chooser: Chooser::new(fabric), ..Self::default() }
    }

    /// Keeps room for another mix from now on.
    pub fn set_mix(&mut self, fabric: &Fabric, mix: &Mix) {
        self.holes = HoleCost::new(fabric, mix);
    }

    /// The level at which a gang is contiguous, and the domains of it that could hold the gang; none if no domain
    /// could.
    ///
    /// `eligible` are the nodes that could ever serve, whatever runs or is down now. Required nodes lift the home to
    /// the lowest level with a domain that holds all of them.
    pub fn home(&mut self, fabric: &Fabric, eligible: &NodeSet, request: &Request) -> Option<Home> {
        self.home_from(fabric, eligible, request, 0)
    }

    /// As [`Self::home`], but not below a level: where a gang may lie that is allowed to spread.
    pub fn home_from(
        &mut self,
        fabric: &Fabric,
        eligible: &NodeSet,
        request: &Request,
        lowest: Level,
    ) -> Option<Home> {
        let ledger = &Ledger::default();
        let Self { holes, chooser, pool, placement, .. } = self;
        // Where wishes meet, counting does not tell whether a domain serves.
        let whole = request.wishes_meet().then(|| Request { at_least: request.nodes, ..request.clone() });
        let segment_level = request.segment.and_then(|_| {
            let levels = classes(request).filter_map(|only| {
                pool.fill(fabric, ledger, eligible, only, request, Moment::Later);
                candidates::segment_level(fabric, pool.counts(), request)
            });
            levels.min()
        });
        let homes = classes(request).filter_map(|only| {
            pool.fill(fabric, ledger, eligible, only, request, Moment::Later);
            candidates::home(fabric, pool.usable(), pool.counts(), request, lowest, segment_level, |domain| {
                let here = Home { level: fabric.switch(domain).level, domains: vec![], segment_level };
                whole.as_ref().is_none_or(|whole| {
                    chooser.choose(&pool.search(fabric, ledger, holes, &here, whole), domain, placement)
                })
            })
        });
        homes.reduce(|a, b| {
            let (mut lower, other) = if b.level < a.level { (b, a) } else { (a, b) };
            if lower.level == other.level {
                lower.domains.extend(other.domains);
                lower.domains.sort_unstable();
                lower.domains.dedup();
            }
            lower
        })
    }

    /// The nodes that can give a share now. Remembered, so that asking for gang after gang is cheap.
    pub fn free(&mut self, ledger: &Ledger, node_count: usize, share: &Share, now: Time) -> &NodeSet {
        self.releases.of(ledger, node_count, share, now).free()
    }

    /// Places a gang on usable nodes inside one domain of its home level.
    ///
    /// `refused` are node sets that were proposed before and turned down; none of them comes again.
    ///
    /// # Errors
    /// The refusal, if no domain has the gang's nodes.
    pub fn place(
        &mut self,
        fabric: &Fabric,
        ledger: &Ledger,
        usable: &NodeSet,
        home: &Home,
        request: &Request,
        refused: &[NodeSet],
    ) -> Result<&Placement, Refusal> {
        let Self { holes, chooser, pool, ranked, placement, .. } = self;
        ranked.clear();
        for (class, only) in (0..).zip(classes(request)) {
            pool.fill(fabric, ledger, usable, only, request, Moment::Now);
            if only.is_none()
                && chooser.choose_single(&pool.search(fabric, ledger, holes, home, request), placement)
                && !refused.contains(&placement.nodes)
            {
                return Ok(&self.placement);
            }
            chooser.rank(&pool.search(fabric, ledger, holes, home, request), class, ranked);
        }
        ranked.sort_unstable();
        let mut filled = request.uniform.len().saturating_sub(1) as u32;
        for &Ranked { domain, class, .. } in ranked.iter() {
            if filled != class {
                let only = request.uniform.get(class as usize);
                pool.fill(fabric, ledger, usable, only, request, Moment::Now);
                filled = class;
            }
            let search = pool.search(fabric, ledger, holes, home, request);
            if chooser.choose(&search, domain, placement) && !refused.contains(&placement.nodes) {
                return Ok(&self.placement);
            }
        }
        Err(self.refusal(fabric, ledger, usable, home, request))
    }

    fn refusal(
        &mut self,
        fabric: &Fabric,
        ledger: &Ledger,
        usable: &NodeSet,
        home: &Home,
        request: &Request,
    ) -> Refusal {
        let mut fullest: Option<(u32, SwitchId)> = None;
        for only in classes(request) {
            if request.uniform.len() > 1 {
                self.pool.fill(fabric, ledger, usable, only, request, Moment::Now);
            }
            for &domain in &home.domains {
                let count = self.pool.counts().of(domain);
                if fullest.is_none_or(|(most, _)| count > most) {
                    fullest = Some((count, domain));
                }
            }
        }
        let best = fullest.map(|(usable, domain)| {
            let size = fabric.switch(domain).node_count() as u32;
            Best { domain, usable, size }
        });
        Refusal { needed: request.at_least, level: home.level, best }
    }
}

/// The sets that all nodes of a gang may come from: each of its uniform sets, or any node.
fn classes(request: &Request) -> impl Iterator<Item = Option<&NodeSet>> {
    let any = request.uniform.is_empty().then_some(None);
    any.into_iter().chain(request.uniform.iter().map(Some))
}

/// The fewest leaves that so many of these nodes could hang on in any one of a gang's domains.
pub fn fewest_leaves(fabric: &Fabric, eligible: &NodeSet, home: &Home, nodes: u32) -> u32 {
    let (mut counts, mut buffer) = (Counts::default(), Vec::new());
    counts.count(fabric, eligible);
    let fewest =
        home.domains.iter().map(|&d| candidates::fewest_leaves(fabric, &counts, d, nodes, &mut buffer));
    fewest.min().unwrap_or(0)
}

/// How many leaves these nodes hang on.
pub fn leaves_used(fabric: &Fabric, nodes: &NodeSet) -> u32 {
    let mut leaves: Vec<_> = nodes.iter().filter_map(|node| fabric.leaf_of(node)).collect();
    leaves.sort_unstable();
    leaves.dedup();
    leaves.len() as u32
}

/// The domains of a gang's home level by how many usable nodes each has, the most first.
pub fn fullest_domains(fabric: &Fabric, usable: &NodeSet, home: &Home) -> Vec<(SwitchId, u32)> {
    let mut counts = Counts::default();
    counts.count(fabric, usable);
    let mut domains: Vec<_> = home.domains.iter().map(|&domain| (domain, counts.of(domain))).collect();
    domains.sort_by_key(|&(domain, count)| (std::cmp::Reverse(count), domain));
    domains
}

/// All nodes of a domain that are in `permitted`.
pub fn domain_nodes(fabric: &Fabric, domain: SwitchId, permitted: &NodeSet) -> NodeSet {
    let under = fabric.nodes_under(domain).iter().copied();
    NodeSet::from_nodes(permitted.size(), under.filter(|&node| permitted.contains(node)))
}

#[cfg(test)]
pub(crate) mod tests;
#[cfg(test)]
mod twins;
