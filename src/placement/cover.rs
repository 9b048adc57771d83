//! Which leaves of one domain, and how many nodes of each: exactly the best choice.
//!
//! Best is, in this order: the fewest leaves, the fewest switches on each level above, the least hole cost, the tightest
//! fit (the fewest free nodes left on the leaves it touches), the lowest ids. Each of these adds up over the tree, so a
//! dynamic programme finds the best: a table for every switch says what k nodes under it cost at least, and a switch's
//! table is its children's, joined one by one. For a gang of n nodes in a domain of N that takes at most n * N steps.
//! Beyond [`EXACT_STEPS`] of them the fullest leaves are taken first, which still gives the fewest leaves.

use super::candidates::{Counts, subtree};
use super::hole_cost::HoleCost;
use crate::fabric::tree::{Fabric, Level, SwitchId};
use crate::nodeset::NodeSet;
use crate::request::Request;

/// How many steps the dynamic programme may take: some milliseconds.
pub const EXACT_STEPS: u64 = 1 << 22;

/// What a choice costs: its parts packed into one number, the most important highest.
///
/// From the top: leaves (17 bits), switches of level 1 (14), 2 (12), 3 (10), all higher ones together (10), hole cost
/// (40), free nodes left (20).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost(u128);

impl Cost {
    /// No cost.
    pub const NONE: Self = Self(0);
    /// More than any real cost, and small enough that two of them add up.
    const IMPOSSIBLE: Self = Self(u128::MAX / 4);
    const HOLE_BITS: u32 = 40;
    const LEFT_BITS: u32 = 20;

    /// One switch of a level.
    pub fn switch(level: Level) -> Self {
        let above_hole = match level {
            0 => 46,
            1 => 32,
            2 => 20,
            3 => 10,
            _ => 0,
        };
        Self(1 << (above_hole + Self::HOLE_BITS + Self::LEFT_BITS))
    }

    /// So many weighted gangs that no longer fit.
    pub fn hole(gangs: u64) -> Self {
        // One domain's cost is capped far below the field, so that the sum over a fabric stays inside.
        Self(u128::from(gangs.min(1 << 28)) << Self::LEFT_BITS)
    }

    /// So many free nodes left on the leaves that are touched.
    pub fn left(nodes: u32) -> Self {
        Self(u128::from(nodes))
    }

    /// Both together.
    pub fn plus(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }

    fn is_possible(self) -> bool {
        self < Self::IMPOSSIBLE
    }
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
}

impl Cover {
    /// What the best choice of `request.nodes` usable nodes under a domain costs; none if they do not suffice, or if
    /// finding out takes more than [`EXACT_STEPS`].
    pub fn solve(
        &mut self,
        fabric: &Fabric,
        counts: &Counts,
        holes: &HoleCost,
        domain: SwitchId,
        request: &Request,
    ) -> Option<Cost> {
        let nodes = request.nodes;
        if u64::from(nodes) * u64::from(counts.of(domain)) > EXACT_STEPS {
            return None;
        }
        self.costs.clear();
        self.tables.clear();
        self.gives.clear();
        self.joins.clear();
        let switches = subtree(fabric, domain);
        self.tables.resize(switches.clone().count(), 0..0);
        if fabric.switch(domain).is_leaf() {
            // Nothing to choose among, and on an idle machine there are many leaves to compare.
            let enough = (required_under(fabric, domain, request)..=counts.of(domain)).contains(&nodes);
            let hole = Cost::hole(holes.of(0, counts.of(domain), nodes));
            return enough.then(|| Cost::left(counts.of(domain) - nodes).plus(Cost::switch(0)).plus(hole));
        }
        // Children have higher numbers than their parents, so they come first.
        for id in switches.rev() {
            let level = fabric.switch(id).level;
            let most = counts.of(id).min(nodes);
            if fabric.switch(id).is_leaf() {
                let required = required_under(fabric, id, request);
                self.joined.clear();
                self.joined.extend((0..=most).map(|k| match k {
                    _ if k < required => Cost::IMPOSSIBLE,
                    0 => Cost::NONE,
                    _ => Cost::left(counts.of(id) - k),
                }));
            } else {
                self.join_children(fabric, counts, domain, id, nodes);
            }
            for (k, cost) in self.joined.iter_mut().enumerate().skip(1) {
                let hole = Cost::hole(holes.of(level, counts.of(id), k as u32));
                *cost = cost.plus(Cost::switch(level)).plus(hole);
            }
            let start = self.costs.len();
            self.costs.append(&mut self.joined);
            self.tables[(id.0 - domain.0) as usize] = start..self.costs.len();
        }
        let best = self.costs[self.tables[0].clone()].get(nodes as usize).copied()?;
        best.is_possible().then_some(best)
    }

    /// Makes a switch's table in `joined` out of its children's.
    fn join_children(
        &mut self,
        fabric: &Fabric,
        counts: &Counts,
        domain: SwitchId,
        parent: SwitchId,
        nodes: u32,
    ) {
        self.joined.clear();
        self.joined.push(Cost::NONE);
        for &child in &fabric.switch(parent).children {
            if counts.of(child) == 0 {
                continue;
            }
            let table = self.tables[(child.0 - domain.0) as usize].clone();
            std::mem::swap(&mut self.joined, &mut self.before);
            self.joined.clear();
            let most = (self.before.len() + table.len() - 2).min(nodes as usize);
            let start = self.gives.len();
            self.gives.resize(start + most + 1, 0);
            self.joined.resize(most + 1, Cost::IMPOSSIBLE);
            for (k, &cost) in self.before.iter().enumerate().filter(|(_, cost)| cost.is_possible()) {
                let room = (most - k).min(table.len() - 1);
                for (given, &child_cost) in self.costs[table.start..=table.start + room].iter().enumerate() {
                    let sum = cost.plus(child_cost);
                    // On a tie the earlier children give more.
                    if sum < self.joined[k + given]
                        || (sum == self.joined[k + given] && (given as u32) < self.gives[start + k + given])
                    {
                        self.joined[k + given] = sum;
                        self.gives[start + k + given] = given as u32;
                    }
                }
            }
            self.joins.push((parent, child, start));
        }
    }

    /// The nodes of the choice that [`Self::solve`] found last, with the same arguments.
    pub fn nodes(
        &mut self,
        fabric: &Fabric,
        usable: &NodeSet,
        domain: SwitchId,
        request: &Request,
    ) -> NodeSet {
        self.chosen.clear();
        self.chosen.resize(self.tables.len(), 0);
        self.chosen[0] = request.nodes;
        // Parents before children, the child joined last first: what is left is for those joined before it.
        self.joins.sort_unstable_by_key(|&(parent, child, _)| (parent, std::cmp::Reverse(child)));
        for &(parent, child, start) in &self.joins {
            let left = &mut self.chosen[(parent.0 - domain.0) as usize];
            let given = self.gives[start + *left as usize];
            *left -= given;
            self.chosen[(child.0 - domain.0) as usize] = given;
        }
        let mut nodes = NodeSet::new(usable.size());
        for (id, &give) in subtree(fabric, domain).zip(&self.chosen) {
            if fabric.switch(id).is_leaf() {
                take(fabric, usable, id, give, request, &mut nodes);
            }
        }
        nodes
    }
}

/// Takes so many usable nodes of a leaf: the required ones, then those that come first.
pub fn take(
    fabric: &Fabric,
    usable: &NodeSet,
    leaf: SwitchId,
    give: u32,
    request: &Request,
    nodes: &mut NodeSet,
) {
    let is_required = |node: u32| request.required.as_ref().is_some_and(|required| required.contains(node));
    let on_leaf = || fabric.nodes_under(leaf).iter().copied().filter(|&node| usable.contains(node));
    let required = on_leaf().filter(|&node| is_required(node));
    let others = on_leaf().filter(|&node| !is_required(node));
    required.chain(others).take(give as usize).for_each(|node| nodes.insert(node));
}

/// How many required nodes a leaf has.
pub fn required_under(fabric: &Fabric, leaf: SwitchId, request: &Request) -> u32 {
    let Some(required) = &request.required else { return 0 };
    fabric.nodes_under(leaf).iter().filter(|&&node| required.contains(node)).count() as u32
}
