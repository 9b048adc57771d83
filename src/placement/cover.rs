//! Which leaves of one domain, and how many nodes of each: exactly the best choice.
//!
//! Best is, in this order: the most nodes (of an elastic gang), the fewest leaves, the fewest switches on each level above,
//! the least hole cost, the tightest fit, the most gladly given nodes, the lowest ids. Each of these adds up over the tree,
//! so a dynamic programme finds the best: a table for every switch says what k nodes under it cost at least, and a switch's
//! table is its children's, joined one by one. For a gang of n nodes in a domain of N that takes at most n * N steps.
//! Segments are a matter of which k a switch may give: whole segments, and at most once the shorter last one.

use super::candidates::{is_part, subtree};
use super::cost::Cost;
use super::leaf::Leaf;
use super::search::Search;
use crate::fabric::tree::SwitchId;
use crate::nodeset::NodeSet;

/// How many steps the dynamic programme may take: some milliseconds.
pub const EXACT_STEPS: u64 = 1 << 22;

/// The best choice under a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Solution {
    /// How many nodes: as many as are wanted, or the most that fit.
    pub nodes: u32,
    /// What they cost.
    pub cost: Cost,
}

/// The tables of the dynamic programme, kept from one decision to the next.
#[derive(Debug, Default)]
pub struct Cover {
    /// All switches' tables, one behind the other.
    costs: Vec<Cost>,
    /// Where the table of each switch of the domain lies in `costs`, by its number in the domain.
    tables: Vec<std::ops::Range<usize>>,
    /// For each child joined, and each number of nodes: how many of them the child gives.
    gives: Vec<u32>,
    /// The joins of the domain: parent, child, and where their part of `gives` starts.
    joins: Vec<(SwitchId, SwitchId, usize)>,
    /// How many nodes each switch of the domain gives, once chosen.
    chosen: Vec<u32>,
    joined: Vec<Cost>,
    before: Vec<Cost>,
    leaf: Leaf,
}

/// The parts of a gang that has segments.
#[derive(Clone, Copy)]
struct Segments {
    /// Nodes a segment; 1 for a gang without segments.
    size: u32,
    /// Nodes of the last, shorter one; 0 if there is none.
    last: u32,
}

impl Segments {
    fn of(search: &Search) -> Self {
        match (search.request.segment, search.home.segment_level) {
            (Some(size), Some(_)) => Self { size, last: search.request.nodes % size },
            _ => Self { size: 1, last: 0 },
        }
    }

    fn allow(self, nodes: usize) -> bool {
        let rest = nodes as u32 % self.size;
        rest == 0 || rest == self.last
    }

    /// Whether both numbers have the last segment in them, of which there is only one.
    fn clash(self, a: usize, b: usize) -> bool {
        self.last > 0 && !(a as u32).is_multiple_of(self.size) && !(b as u32).is_multiple_of(self.size)
    }
}

/// Whether the dynamic programme may take the steps that a domain needs.
pub fn is_small(search: &Search, domain: SwitchId) -> bool {
    let Segments { size, .. } = Segments::of(search);
    let segments = |nodes: u32| u64::from(nodes / size) + 1;
    segments(search.request.nodes) * segments(search.counts.of(domain)) <= EXACT_STEPS
}

/// Of a domain's table: the most nodes that the gang can have, and what they cost.
fn best_size(search: &Search, table: &[Cost]) -> Option<Solution> {
    let request = search.request;
    let few = |cost: Cost| request.max_leaves.is_none_or(|most| cost.leaf_count() <= most);
    let sizes = (request.at_least..=request.nodes).rev();
    let mut solutions = sizes.filter_map(|nodes| Some(Solution { nodes, cost: *table.get(nodes as usize)? }));
    solutions.find(|&Solution { cost, .. }| cost.is_possible() && few(cost))
}

impl Cover {
    /// The best choice of usable nodes under a domain; none if they do not suffice.
    pub fn solve(&mut self, search: &Search, domain: SwitchId) -> Option<Solution> {
        let (fabric, counts, request) = (search.fabric, search.counts, search.request);
        let segments = Segments::of(search);
        let part_level = search.home.segment_level.filter(|&level| fabric.switch(domain).level > level);
        self.costs.clear();
        self.tables.clear();
        self.gives.clear();
        self.joins.clear();
        if fabric.switch(domain).is_leaf() {
            // No tree to go through, and there are many leaves to compare for a gang of a few nodes.
            self.tables.push(0..0);
            self.leaf.costs(search, domain, domain, counts.of(domain).min(request.nodes), &mut self.joined);
            return best_size(search, &self.joined);
        }
        let switches = subtree(fabric, domain);
        self.tables.resize(switches.clone().count(), 0..0);
        // Children have higher numbers than their parents, so they come first.
        for id in switches.rev() {
            let switch = fabric.switch(id);
            let most = counts.of(id).min(request.nodes);
            if switch.is_leaf() {
                self.leaf.costs(search, domain, id, most, &mut self.joined);
            } else {
                let clashes = part_level.filter(|&level| switch.level > level).map(|_| segments);
                self.join_children(search, domain, id, clashes);
                for (k, cost) in self.joined.iter_mut().enumerate().skip(1) {
                    let hole = match search.shares_nodes {
                        true => Cost::NONE,
                        false => Cost::hole(search.holes.of(switch.level, counts.of(id), k as u32)),
                    };
                    *cost = cost.plus(Cost::switch(switch.level)).plus(hole);
                }
            }
            if part_level.is_some_and(|level| is_part(fabric, id, level)) {
                let broken = self.joined.iter_mut().enumerate().filter(|&(k, _)| !segments.allow(k));
                broken.for_each(|(_, cost)| *cost = Cost::IMPOSSIBLE);
            }
            let start = self.costs.len();
            self.costs.append(&mut self.joined);
            self.tables[(id.0 - domain.0) as usize] = start..self.costs.len();
        }
        best_size(search, &self.costs[self.tables[0].clone()])
    }

    /// Makes a switch's table in `joined` out of its children's.
    fn join_children(
        &mut self,
        search: &Search,
        domain: SwitchId,
        parent: SwitchId,
        clashes: Option<Segments>,
    ) {
        let nodes = search.request.nodes as usize;
        self.joined.clear();
        self.joined.push(Cost::NONE);
        for &child in &search.fabric.switch(parent).children {
            if search.counts.of(child) == 0 {
                continue;
            }
            let table = self.tables[(child.0 - domain.0) as usize].clone();
            std::mem::swap(&mut self.joined, &mut self.before);
            self.joined.clear();
            let most = (self.before.len() + table.len() - 2).min(nodes);
            let start = self.gives.len();
            self.gives.resize(start + most + 1, 0);
            self.joined.resize(most + 1, Cost::IMPOSSIBLE);
            for (k, &cost) in self.before.iter().enumerate().filter(|(_, cost)| cost.is_possible()) {
                let room = (most - k).min(table.len() - 1);
                let targets =
                    self.joined[k..=k + room].iter_mut().zip(&mut self.gives[start + k..=start + k + room]);
                let from = self.costs[table.start..=table.start + room].iter();
                for (given, (&child_cost, (best, gives))) in from.zip(targets).enumerate() {
                    let sum = cost.plus(child_cost);
                    // On a tie the earlier children give more.
                    if (sum < *best || (sum == *best && (given as u32) < *gives))
                        && clashes.is_none_or(|segments| !segments.clash(k, given))
                    {
                        (*best, *gives) = (sum, given as u32);
                    }
                }
            }
            self.joins.push((parent, child, start));
        }
    }

    /// Puts the nodes of the choice that [`Self::solve`] found last, with the same arguments, into an empty set.
    pub fn nodes(&mut self, search: &Search, domain: SwitchId, nodes: u32, into: &mut NodeSet) {
        self.chosen.clear();
        self.chosen.resize(self.tables.len(), 0);
        self.chosen[0] = nodes;
        // Parents before children, the child joined last first: what is left is for those joined before it.
        self.joins.sort_unstable_by_key(|&(parent, child, _)| (parent, std::cmp::Reverse(child)));
        for &(parent, child, start) in &self.joins {
            let left = &mut self.chosen[(parent.0 - domain.0) as usize];
            let given = self.gives[start + *left as usize];
            *left -= given;
            self.chosen[(child.0 - domain.0) as usize] = given;
        }
        for (id, &give) in subtree(search.fabric, domain).zip(&self.chosen) {
            if search.fabric.switch(id).is_leaf() {
                self.leaf.take(search, domain, id, give, into);
            }
        }
    }
}
