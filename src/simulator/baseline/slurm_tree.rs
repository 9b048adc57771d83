//! Where stock Slurm puts a job: the rules of select/cons_tres with topology/tree, as of 22.05.
//!
//! For nodes of the same weight, with no node required, they come to this:
//!
//! * one switch is the top: of those with enough usable nodes the highest, and of several the last. Only its nodes count.
//!   So nothing keeps a job low in the tree but what follows.
//! * leaves are taken one by one until there are enough nodes. The first: a leaf that holds all of them beats one that
//!   does not; of two that do, the one with fewer usable nodes; of two that do not, the one whose parent holds them (more
//!   tightly), and so on upwards, and under the same parent the one with more.
//! * for the next leaves, the sum of the distances to those already taken comes first: a nearer leaf wins unless it fits
//!   worse, and of two at the same distance the one that fits better.
//! * within a leaf, nodes are taken by index.
//!
//! The candidates are gone through once, each against the best so far; since "better" is not transitive, their order
//! matters. Here it is fabric order, in Slurm the order of the lines in topology.conf.

use crate::fabric::tree::{Fabric, SwitchId};
use crate::nodeset::NodeSet;
use crate::placement::candidates::Counts;

/// Stock Slurm's rules, with buffers kept from one job to the next.
#[derive(Debug, Default)]
pub struct SlurmTree {
    counts: Counts,
    /// The leaves under the top switch that have usable nodes left, with the hops to the leaves already taken.
    leaves: Vec<(SwitchId, u32)>,
}

impl SlurmTree {
    /// The nodes that a job of so many nodes gets; none if no switch has as many usable ones.
    pub fn place(&mut self, fabric: &Fabric, usable: &NodeSet, nodes: u32) -> Option<NodeSet> {
        self.counts.count(fabric, usable);
        let enough = |&(id, _): &(SwitchId, _)| self.counts.of(id) >= nodes;
        let (top, _) = fabric.switches().filter(enough).max_by_key(|&(id, switch)| (switch.level, id))?;
        let span = &fabric.switch(top).span;
        let leaves = fabric.at_level(0).iter().copied();
        let inside = leaves.filter(|&leaf| span.contains(&fabric.switch(leaf).span.start));
        self.leaves.clear();
        self.leaves.extend(inside.filter(|&leaf| self.counts.of(leaf) > 0).map(|leaf| (leaf, 0)));
        let mut chosen = NodeSet::new(usable.size());
        let mut rest = nodes;
        while rest > 0 {
            let best = self.best_leaf(fabric, rest)?;
            let (leaf, _) = self.leaves.remove(best);
            let mut on_leaf: Vec<u32> =
                fabric.nodes_under(leaf).iter().copied().filter(|&node| usable.contains(node)).collect();
            on_leaf.sort_unstable();
            on_leaf.truncate(rest as usize);
            rest -= on_leaf.len() as u32;
            on_leaf.into_iter().for_each(|node| chosen.insert(node));
            self.leaves.iter_mut().for_each(|(other, hops)| *hops += hops_between(fabric, leaf, *other));
        }
        Some(chosen)
    }

    /// The place in the list of the leaf to take next.
    fn best_leaf(&self, fabric: &Fabric, rest: u32) -> Option<usize> {
        let mut best = 0;
        self.leaves.first()?;
        for next in 1..self.leaves.len() {
            let ((leaf, hops), (best_leaf, best_hops)) = (self.leaves[next], self.leaves[best]);
            let fit = self.compare(fabric, leaf, best_leaf, rest);
            if hops < best_hops && fit.is_ge() || hops == best_hops && fit.is_gt() {
                best = next;
            }
        }
        Some(best)
    }

    /// Whether one leaf fits better (greater) than another.
    fn compare(&self, fabric: &Fabric, one: SwitchId, other: SwitchId, rest: u32) -> std::cmp::Ordering {
        let (mut one, mut other) = (one, other);
        loop {
            let (a, b) = (self.counts.of(one), self.counts.of(other));
            match (a >= rest, b >= rest) {
                (true, true) if a != b => return b.cmp(&a),
                (true, false) | (false, true) => return a.cmp(&b),
                (true, true) => break,
                (false, false) => {}
            }
            let parent = |id: SwitchId| fabric.switch(id).parent.unwrap_or(id);
            let (above_one, above_other) = (parent(one), parent(other));
            if above_one == above_other || (above_one == one && above_other == other) {
                break;
            }
            (one, other) = (above_one, above_other);
        }
        let key = |id: SwitchId| (self.counts.of(id), std::cmp::Reverse(fabric.switch(id).level));
        key(one).cmp(&key(other))
    }
}

/// How many links lie between two leaves.
fn hops_between(fabric: &Fabric, one: SwitchId, other: SwitchId) -> u32 {
    let (mut one, mut other, mut hops) = (one, other, 0);
    while one != other {
        // A switch's number is higher than its parent's, so the higher number is never above the other.
        let lower = one.max(other);
        let Some(parent) = fabric.switch(lower).parent else { return u32::MAX / 1024 };
        if one == lower {
            one = parent
        } else {
            other = parent
        }
        hops += 1;
    }
    hops
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::tests::fabric;

    fn place(fabric: &Fabric, usable: &[u32], nodes: u32) -> Vec<u32> {
        let usable = NodeSet::from_nodes(fabric.node_count(), usable.iter().copied());
        SlurmTree::default().place(fabric, &usable, nodes).unwrap().iter().collect()
    }

    #[test]
    fn the_tightest_leaf_comes_first_and_the_nearest_next() {
        let fabric = fabric(&[&[4, 4], &[4, 4]]);
        // Two trees: the last one with enough nodes is the top.
        assert_eq!(place(&fabric, &[0, 1, 2, 8, 9, 10, 11, 12, 13], 2), [12, 13]);
        assert_eq!(place(&fabric, &[0, 1, 2, 3, 4, 8, 9, 10], 4), [0, 1, 2, 3]);
        assert_eq!(place(&fabric, &[0, 1, 2, 3, 4, 8, 9, 10], 5), [0, 1, 2, 3, 4]);
        assert_eq!(SlurmTree::default().place(&fabric, &NodeSet::full(16), 9), None, "no tree has so many");
    }

    #[test]
    fn a_job_that_would_fit_a_spine_may_be_spread_by_what_comes_first() {
        let machine = crate::simulator::machine::Machine::regular(16, 4, 2, 8);
        // Three free on every leaf but one: six fit on two leaves of one spine.
        let usable: Vec<u32> = (0..16).filter(|node| node % 4 != 3 && *node != 4).collect();
        assert_eq!(place(&machine.fabric, &usable, 6), [8, 9, 10, 12, 13, 14]);
    }
}
