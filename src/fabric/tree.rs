//! The forest of switches over the nodes, laid out so that every domain is one interval.
//!
//! Nodes are numbered in *fabric order*: depth first through the forest, children in the order their parent names
//! them. A switch's domain (all nodes under it) is then a range of positions, so counting the usable nodes of every
//! domain is one pass over the cluster and a subtraction per switch. Switches are numbered in the same order,
//! parents before children; ties broken by [`SwitchId`] are thus broken the same way on every run.
//!
//! A switch's *level* is its height: 0 for a leaf, one more than its highest child otherwise. Trees of a forest may
//! differ in height, and leaves in size.

use crate::nodeset::{NodeId, NodeSet};
use std::ops::Range;

/// A switch's number in the fabric: depth first, parents before their children.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SwitchId(pub u32);

/// Height above the leaves: 0 is a leaf.
pub type Level = u16;

/// One switch (or block) and the interval of fabric positions under it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    /// The name in the topology file.
    pub name: String,
    /// Height above the leaves.
    pub level: Level,
    /// The switch above, none for a root.
    pub parent: Option<SwitchId>,
    /// The switches below, in fabric order; empty for a leaf.
    pub children: Vec<SwitchId>,
    /// The fabric positions of the nodes under this switch.
    pub span: Range<u32>,
}

impl Switch {
    /// How many nodes lie under the switch.
    pub fn node_count(&self) -> usize {
        self.span.len()
    }

    /// Whether nodes hang on the switch itself.
    pub fn is_leaf(&self) -> bool {
        self.level == 0
    }
}

/// A switch to lay out, as one entry of a flat list: a hostile file with a chain of 100,000 switches must not become
/// a recursion in slurmctld.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    /// The switch's name.
    pub name: String,
    /// The nodes of a leaf, or the switches under a higher switch.
    pub below: Below,
}

impl Declared {
    /// The switches under it; empty for a leaf.
    pub fn children(&self) -> &[usize] {
        match &self.below {
            Below::Nodes(_) => &[],
            Below::Switches(children) => children,
        }
    }
}

/// What hangs on a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Below {
    /// A leaf's nodes by their index in slurmctld's table, in the order of the topology file.
    Nodes(Vec<NodeId>),
    /// The switches under a higher switch, by their index in the list of declared switches.
    Switches(Vec<usize>),
}

/// The forest of switches over the cluster's nodes.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Fabric {
    switches: Vec<Switch>,
    by_level: Vec<Vec<SwitchId>>,
    order: Vec<NodeId>,
    position: Vec<u32>,
    leaf: Vec<u32>,
    /// By switch: the node indexes of a leaf whose nodes are numbered one after the other; empty for any other switch.
    runs: Vec<Range<NodeId>>,
    listed: NodeSet,
}

const NOWHERE: u32 = u32::MAX;

impl Fabric {
    /// Lays out a forest over a cluster of `node_count` nodes. Roots are the switches that no other names, in the
    /// order of the list.
    ///
    /// The reader of the topology file sees to it that the switches form a forest. Where they do not, a switch stays
    /// with the parent that comes first in fabric order, and a loop that no root leads to is left out. A node that
    /// hangs on several leaves stays with the first of them in fabric order. A switch without a node under it is
    /// left out, so every switch of a fabric has a non-empty span.
    pub fn new(node_count: usize, declared: &[Declared]) -> Self {
        let mut fabric = Self {
            position: vec![NOWHERE; node_count],
            leaf: vec![NOWHERE; node_count],
            listed: NodeSet::new(node_count),
            ..Self::default()
        };
        fabric.lay_out(declared);
        for (id, switch) in fabric.switches.iter().enumerate() {
            let level = usize::from(switch.level);
            if fabric.by_level.len() <= level {
                fabric.by_level.resize(level + 1, Vec::new());
            }
            fabric.by_level[level].push(SwitchId(id as u32));
            let nodes = &fabric.order[switch.span.start as usize..switch.span.end as usize];
            let is_run = level == 0 && nodes.windows(2).all(|pair| pair[1] == pair[0] + 1);
            fabric.runs.push(if is_run { nodes[0]..nodes[0] + nodes.len() as NodeId } else { 0..0 });
        }
        fabric
    }

    fn lay_out(&mut self, declared: &[Declared]) {
        enum Step {
            Enter(usize, Option<SwitchId>),
            Leave(SwitchId),
        }
        let mut has_parent = vec![false; declared.len()];
        declared.iter().flat_map(Declared::children).for_each(|&child| has_parent[child] = true);
        let mut entered = vec![false; declared.len()];
        let mut steps: Vec<Step> =
            (0..declared.len()).rev().filter(|&i| !has_parent[i]).map(|i| Step::Enter(i, None)).collect();
        while let Some(step) = steps.pop() {
            match step {
                Step::Enter(i, parent) => {
                    if std::mem::replace(&mut entered[i], true) {
                        continue;
                    }
                    let id = self.open(&declared[i].name, parent);
                    steps.push(Step::Leave(id));
                    match &declared[i].below {
                        Below::Nodes(nodes) => self.hang_nodes(id, nodes),
                        Below::Switches(below) => {
                            steps.extend(below.iter().rev().map(|&child| Step::Enter(child, Some(id))));
                        }
                    }
                }
                Step::Leave(id) => self.close(id),
            }
        }
    }

    fn open(&mut self, name: &str, parent: Option<SwitchId>) -> SwitchId {
        let id = SwitchId(self.switches.len() as u32);
        let start = self.order.len() as u32;
        self.switches.push(Switch {
            name: name.into(),
            level: 0,
            parent,
            children: Vec::new(),
            span: start..start,
        });
        id
    }

    fn hang_nodes(&mut self, id: SwitchId, nodes: &[NodeId]) {
        for &node in nodes {
            let Some(position) = self.position.get_mut(node as usize) else { continue };
            if *position == NOWHERE {
                *position = self.order.len() as u32;
                self.leaf[node as usize] = id.0;
                self.order.push(node);
                self.listed.insert(node);
            }
        }
    }

    /// Fixes a switch's span and level once all below it is laid out; drops it again if no node hangs there.
    fn close(&mut self, id: SwitchId) {
        let end = self.order.len() as u32;
        let index = id.0 as usize;
        let (start, parent) = (self.switches[index].span.start, self.switches[index].parent);
        if start == end {
            // Nothing below was kept either, so the switch is the last one.
            self.switches.truncate(index);
            return;
        }
        self.switches[index].span.end = end;
        if let Some(parent) = parent {
            let level = self.switches[index].level.saturating_add(1);
            let above = &mut self.switches[parent.0 as usize];
            above.level = above.level.max(level);
            above.children.push(id);
        }
    }

    /// How many nodes the cluster has, listed in the topology or not.
    pub fn node_count(&self) -> usize {
        self.position.len()
    }

    /// The nodes that hang on some leaf.
    pub fn listed(&self) -> &NodeSet {
        &self.listed
    }

    /// The listed nodes in fabric order: position -> node.
    pub fn order(&self) -> &[NodeId] {
        &self.order
    }

    /// A node's position in fabric order; none if the topology does not list it.
    pub fn position(&self, node: NodeId) -> Option<u32> {
        self.position.get(node as usize).copied().filter(|&p| p != NOWHERE)
    }

    /// The leaf a node hangs on; none if the topology does not list it.
    pub fn leaf_of(&self, node: NodeId) -> Option<SwitchId> {
        self.leaf.get(node as usize).copied().filter(|&s| s != NOWHERE).map(SwitchId)
    }

    /// How many nodes of a set hang on a leaf.
    pub fn count_on_leaf(&self, leaf: SwitchId, set: &NodeSet) -> u32 {
        let run = &self.runs[leaf.0 as usize];
        if run.is_empty() {
            self.nodes_under(leaf).iter().filter(|&&node| set.contains(node)).count() as u32
        } else {
            set.count_in(run.clone()) as u32
        }
    }

    /// The switch with this number.
    ///
    /// # Panics
    /// If the number is not from this fabric.
    pub fn switch(&self, id: SwitchId) -> &Switch {
        &self.switches[id.0 as usize]
    }

    /// A switch and those above it, up to its root; none for none.
    pub fn upwards(&self, from: Option<SwitchId>) -> impl Iterator<Item = SwitchId> {
        std::iter::successors(from, |&id| self.switch(id).parent)
    }

    /// The domain of a level that a node lies in: the highest switch above it whose own level is not higher.
    pub fn domain_of(&self, node: NodeId, level: Level) -> Option<SwitchId> {
        self.upwards(self.leaf_of(node)).take_while(|&id| self.switch(id).level <= level).last()
    }

    /// How many nodes the largest domain of a level has; 0 past the top.
    pub fn largest_domain(&self, level: Level) -> u32 {
        self.at_level(level).iter().map(|&id| self.switch(id).node_count() as u32).max().unwrap_or(0)
    }

    /// All switches in the order of their numbers.
    pub fn switches(&self) -> impl DoubleEndedIterator<Item = (SwitchId, &Switch)> {
        self.switches.iter().enumerate().map(|(id, switch)| (SwitchId(id as u32), switch))
    }

    /// How many switches the fabric has.
    pub fn switch_count(&self) -> usize {
        self.switches.len()
    }

    /// How many levels the fabric has; 0 for an empty fabric.
    pub fn level_count(&self) -> usize {
        self.by_level.len()
    }

    /// The switches of one level in fabric order; empty past the top.
    pub fn at_level(&self, level: Level) -> &[SwitchId] {
        self.by_level.get(usize::from(level)).map_or(&[], Vec::as_slice)
    }

    /// The nodes under a switch, in fabric order.
    pub fn nodes_under(&self, id: SwitchId) -> &[NodeId] {
        let span = &self.switch(id).span;
        &self.order[span.start as usize..span.end as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(name: &str, nodes: impl IntoIterator<Item = NodeId>) -> Declared {
        Declared { name: name.into(), below: Below::Nodes(nodes.into_iter().collect()) }
    }

    fn above(name: &str, below: impl IntoIterator<Item = usize>) -> Declared {
        Declared { name: name.into(), below: Below::Switches(below.into_iter().collect()) }
    }

    #[test]
    fn a_forest_of_uneven_trees_becomes_intervals() {
        let forest = [
            leaf("b", [0]),
            above("spine", [2, 3]),
            leaf("a", [3, 1]),
            above("row", [0, 4]),
            leaf("c", [4, 5]),
            leaf("alone", [2]),
        ];
        let fabric = Fabric::new(8, &forest);
        assert_eq!(fabric.order(), [3, 1, 0, 4, 5, 2]);
        let seen: Vec<_> =
            fabric.switches().map(|(_, s)| (s.name.as_str(), s.level, s.span.clone())).collect();
        assert_eq!(
            seen,
            [
                ("spine", 2, 0..5),
                ("a", 0, 0..2),
                ("row", 1, 2..5),
                ("b", 0, 2..3),
                ("c", 0, 3..5),
                ("alone", 0, 5..6)
            ]
        );
        assert_eq!(fabric.at_level(0), [1, 3, 4, 5].map(SwitchId));
        assert_eq!(fabric.switch(SwitchId(0)).children, [1, 2].map(SwitchId));
        assert_eq!(fabric.leaf_of(5), Some(SwitchId(4)));
        assert_eq!((fabric.position(6), fabric.leaf_of(7)), (None, None));
        assert_eq!(fabric.listed().count(), 6);
        assert_eq!(fabric.nodes_under(SwitchId(2)), [0, 4, 5]);
    }

    #[test]
    fn a_node_on_two_leaves_stays_with_the_first_and_empty_switches_vanish() {
        let forest = [
            above("top", [1, 2, 3]),
            leaf("a", [0, 1]),
            leaf("storage", [0, 1]),
            above("dark", [4]),
            leaf("no", []),
        ];
        let fabric = Fabric::new(2, &forest);
        assert_eq!(fabric.switches().map(|(_, s)| s.name.as_str()).collect::<Vec<_>>(), ["top", "a"]);
        assert_eq!(fabric.switch(SwitchId(0)).level, 1);
        assert_eq!(fabric.at_level(1), [SwitchId(0)]);
    }

    #[test]
    fn what_is_not_a_forest_still_ends() {
        let forest =
            [above("p", [2]), above("q", [2]), leaf("shared", [0]), above("x", [4]), above("y", [3])];
        let fabric = Fabric::new(1, &forest);
        assert_eq!(fabric.switches().map(|(_, s)| s.name.as_str()).collect::<Vec<_>>(), ["p", "shared"]);
    }

    #[test]
    fn a_chain_of_a_hundred_thousand_switches_does_not_overflow_the_stack() {
        let chain: Vec<_> = (1..100_000).map(|i| above("s", [i])).chain([leaf("leaf", [0])]).collect();
        assert_eq!(Fabric::new(1, &chain).switch_count(), 100_000);
    }
}
