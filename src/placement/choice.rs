//! The best placement inside one domain, and which domain is best.

use super::candidates::{Counts, fewest_leaves, holds, subtree};
use super::cost::Cost;
use super::cover::{Cover, Solution, is_small};
use super::greedy;
use super::leaf::{SlotCosts, touched};
use super::search::Search;
use super::single;
use super::verdict::Placement;
use super::window;
use crate::fabric::tree::{Fabric, Level, SwitchId};
use crate::nodeset::NodeSet;
use std::ops::Range;

/// Chooses domains and nodes over one fabric; keeps its buffers from one decision to the next.
#[derive(Debug, Default)]
pub struct Chooser {
    /// All nodes of the fabric: what an empty, healthy domain has.
    listed: Counts,
    cover: Cover,
    /// Solutions of domains solved in this decision, by the shape of what is usable in them: on an idle machine most
    /// domains look alike.
    solved: Vec<(Range<usize>, Option<Solution>)>,
    /// These shapes, one behind the other: level and usable nodes of each switch.
    shapes: Vec<(Level, u32)>,
    /// The nodes of the best domain that was solved, as it was ranked.
    kept: Option<(u64, SwitchId)>,
    kept_nodes: NodeSet,
    slot_costs: SlotCosts,
    sizes: Vec<u32>,
}

/// A domain that can hold a gang, with what its best choice is worth; the best is the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ranked {
    /// Nodes that the gang wants and does not get.
    short: u32,
    cost: Cost,
    /// Usable nodes of the domain: of equals the tightest is best.
    free: u32,
    /// The domain.
    pub domain: SwitchId,
    /// Which of the gang's uniform sets it is searched in.
    pub class: u32,
}

impl Chooser {
    /// A chooser over a fabric.
    pub fn new(fabric: &Fabric) -> Self {
        let mut listed = Counts::default();
        listed.count(fabric, fabric.listed());
        Self { listed, ..Self::default() }
    }

    /// Adds the domains of the gang's home level that can hold it, with what they are worth.
    ///
    /// Only those that could be the best are solved; of the others it is known that they are worse.
    pub fn rank(&mut self, search: &Search, class: u32, ranked: &mut Vec<Ranked>) {
        let Search { fabric, counts, request, home, .. } = *search;
        self.solved.clear();
        self.shapes.clear();
        self.kept = None;
        let first = ranked.len();
        for &domain in &home.domains {
            if holds(fabric, search.usable, counts, home.segment_level, domain, request, request.at_least) {
                let nodes = counts.of(domain).min(request.nodes);
                let fewest = fewest_leaves(fabric, counts, domain, nodes, &mut self.sizes);
                let (short, cost) = (request.nodes - nodes, Cost::leaves(fewest));
                ranked.push(Ranked { short, cost, free: counts.of(domain), domain, class });
            }
        }
        let ranked = &mut ranked[first..];
        // No domain is worth more than its bound, so once the bounds are worse than the best there is nothing to find.
        ranked.sort_unstable();
        let mut best: Option<Ranked> = None;
        for domain in ranked {
            let bound = (domain.short, domain.cost.leaf_count());
            if best.is_some_and(|best| bound > (best.short, best.cost.leaf_count())) {
                break;
            }
            let (solution, is_fresh) = self.solution(search, domain.domain);
            if let Some(Solution { nodes, cost }) = solution {
                domain.short = request.nodes - nodes;
                domain.cost = match search.shares_nodes {
                    true => cost,
                    false => cost.plus(search.cost_above(domain.domain, nodes)),
                };
                if best.is_none_or(|best| *domain < best) {
                    best = Some(*domain);
                    self.kept = is_fresh.then_some((search.filling, domain.domain));
                    if is_fresh {
                        self.kept_nodes.reset(search.usable.size());
                        self.cover.nodes(search, domain.domain, nodes, &mut self.kept_nodes);
                    }
                }
            }
        }
    }

    /// Puts the best placement of a job that takes a part of one node into `placement`; false if it is not such a job, or
    /// no node is usable.
    pub fn choose_single(&mut self, search: &Search, placement: &mut Placement) -> bool {
        let found = if single::applies(search) { single::best(search, &mut self.slot_costs) } else { None };
        if let Some((node, leaf)) = found {
            placement.nodes.reset(search.usable.size());
            placement.nodes.insert(node);
            (placement.domain, placement.leaves, placement.excess) = (leaf, 1, 0);
        }
        found.is_some()
    }

    /// The best choice inside a domain; none where it is not known, so that all such domains tie. With it, whether its
    /// tables are at hand.
    fn solution(&mut self, search: &Search, domain: SwitchId) -> (Option<Solution>, bool) {
        let fabric = search.fabric;
        if search.request.strictly_contiguous {
            let best = window::best(search, domain);
            return (best.map(|(cost, window)| Solution { nodes: window.len() as u32, cost }), false);
        }
        if !is_small(search, domain) {
            return (None, false);
        }
        if !search.nodes_are_alike() {
            return (self.cover.solve(search, domain), !fabric.switch(domain).is_leaf());
        }
        if fabric.switch(domain).is_leaf() {
            // Nothing to choose among, and on an idle machine there are many leaves to compare.
            let count = search.counts.of(domain);
            let nodes = search.request.nodes.min(count);
            let cost = Cost::leaves(1).plus(Cost::left(count - nodes));
            let hole = Cost::hole(search.holes.of(0, count, nodes));
            return (Some(Solution { nodes, cost: cost.plus(hole) }), false);
        }
        let start = self.shapes.len();
        let shape = subtree(fabric, domain).map(|id| (fabric.switch(id).level, search.counts.of(id)));
        self.shapes.extend(shape);
        let (known, shape) = self.shapes.split_at(start);
        let alike = self.solved.iter().find(|(solved, _)| known[solved.clone()] == *shape);
        if let Some(&(_, solution)) = alike {
            self.shapes.truncate(start);
            return (solution, false);
        }
        let solution = self.cover.solve(search, domain);
        self.solved.push((start..self.shapes.len(), solution));
        (solution, true)
    }

    /// Puts the best placement inside one domain into `placement`; false if its usable nodes do not suffice.
    pub fn choose(&mut self, search: &Search, domain: SwitchId, placement: &mut Placement) -> bool {
        let Search { fabric, usable, request, .. } = *search;
        if request.required.as_ref().is_some_and(|required| !required.is_subset(usable)) {
            return false;
        }
        placement.nodes.reset(usable.size());
        let nodes = &mut placement.nodes;
        let found = if self.kept == Some((search.filling, domain)) {
            nodes.clone_from(&self.kept_nodes);
            true
        } else if request.strictly_contiguous {
            window::choose(search, domain, nodes)
        } else if is_small(search, domain) {
            let solution = self.cover.solve(search, domain);
            solution.into_iter().for_each(|found| self.cover.nodes(search, domain, found.nodes, nodes));
            solution.is_some()
        } else {
            greedy::choose(search, domain, nodes)
        };
        if found {
            let count = placement.nodes.count() as u32;
            placement.domain = domain;
            placement.leaves = touched(search, domain, &placement.nodes);
            let fewest = fewest_leaves(fabric, &self.listed, domain, count, &mut self.sizes);
            placement.excess = placement.leaves.saturating_sub(fewest);
        }
        found
    }
}
