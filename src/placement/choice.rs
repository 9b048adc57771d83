//! The best placement inside one domain, and which domain is best.

use super::candidates::{Counts, fewest_leaves, subtree};
use super::cover::{Cost, Cover};
use super::greedy;
use super::hole_cost::{HoleCost, Mix};
use super::verdict::Placement;
use crate::fabric::tree::{Fabric, SwitchId};
use crate::nodeset::NodeSet;
use crate::request::Request;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Chooses domains and nodes over one fabric; keeps what depends on the fabric alone, and its buffers.
#[derive(Debug, Default)]
pub struct Chooser {
    holes: HoleCost,
    /// All nodes of the fabric: what an empty, healthy domain has.
    listed: Counts,
    cover: Cover,
    /// Costs of domains solved in this decision, by the shape of what is usable in them: on an idle machine most
    /// domains look alike.
    solved: Vec<(u64, Option<Cost>)>,
}

impl Chooser {
    /// A chooser over a fabric that keeps room for a mix of gangs.
    pub fn new(fabric: &Fabric, mix: &Mix) -> Self {
        let mut listed = Counts::default();
        listed.count(fabric, fabric.listed());
        Self { holes: HoleCost::new(fabric, mix), listed, ..Self::default() }
    }

    /// Orders domains that can hold a gang from the best to the worst: by the cost of the best choice inside and the
    /// hole cost above, then the tightest, then the lowest id.
    pub fn rank(&mut self, fabric: &Fabric, counts: &Counts, request: &Request, domains: &mut Vec<SwitchId>) {
        self.solved.clear();
        let mut ranked: Vec<(u32, Cost, u32, SwitchId)> = domains
            .drain(..)
            .map(|domain| {
                (fewest_leaves(fabric, counts, domain, request.nodes), Cost::NONE, counts.of(domain), domain)
            })
            .collect();
        // Fewer leaves win over all else, so only the domains that need the fewest are worth solving.
        let fewest = ranked.iter().map(|&(leaves, ..)| leaves).min().unwrap_or(0);
        for (leaves, cost, _, domain) in &mut ranked {
            let above = self.cost_above(fabric, counts, *domain, request);
            *cost = if *leaves == fewest {
                self.cost(fabric, counts, *domain, request).plus(above)
            } else {
                above
            };
        }
        ranked.sort_unstable();
        domains.extend(ranked.into_iter().map(|(.., domain)| domain));
    }

    /// The best placement inside one domain; none if its usable nodes do not suffice.
    pub fn choose(
        &mut self,
        fabric: &Fabric,
        counts: &Counts,
        usable: &NodeSet,
        domain: SwitchId,
        request: &Request,
    ) -> Option<Placement> {
        if request.required.as_ref().is_some_and(|required| !required.is_subset(usable)) {
            return None;
        }
        let nodes = if request.strictly_contiguous {
            greedy::unbroken_run(fabric, usable, domain, request)?
        } else if self.cover.solve(fabric, counts, &self.holes, domain, request).is_some() {
            self.cover.nodes(fabric, usable, domain, request)
        } else {
            greedy::fullest_leaves(fabric, counts, usable, domain, request)?
        };
        let fewest = fewest_leaves(fabric, &self.listed, domain, request.nodes);
        Some(Placement::new(fabric, domain, nodes, fewest))
    }

    /// What the best choice inside a domain costs; nothing where that is not known, so that all such domains tie.
    fn cost(&mut self, fabric: &Fabric, counts: &Counts, domain: SwitchId, request: &Request) -> Cost {
        let solve = |cover: &mut Cover, holes| cover.solve(fabric, counts, holes, domain, request);
        if request.strictly_contiguous {
            return Cost::NONE;
        }
        if request.required.is_some() || fabric.switch(domain).is_leaf() {
            return solve(&mut self.cover, &self.holes).unwrap_or(Cost::NONE);
        }
        let mut hasher = DefaultHasher::new();
        for id in subtree(fabric, domain) {
            (fabric.switch(id).level, counts.of(id)).hash(&mut hasher);
        }
        let shape = hasher.finish();
        let known = self.solved.iter().find(|(solved, _)| *solved == shape).map(|&(_, cost)| cost);
        let cost = known.unwrap_or_else(|| {
            let cost = solve(&mut self.cover, &self.holes);
            self.solved.push((shape, cost));
            cost
        });
        cost.unwrap_or(Cost::NONE)
    }

    /// The hole cost of taking the gang's nodes from the domains above.
    fn cost_above(&self, fabric: &Fabric, counts: &Counts, domain: SwitchId, request: &Request) -> Cost {
        let above = std::iter::successors(fabric.switch(domain).parent, |&id| fabric.switch(id).parent);
        above.fold(Cost::NONE, |sum, id| {
            sum.plus(Cost::hole(self.holes.of(fabric.switch(id).level, counts.of(id), request.nodes)))
        })
    }
}
