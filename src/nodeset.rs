//! A set of nodes, one bit each.
//!
//! Every decision starts from "which nodes may this job use" and ends in "exactly these": sets over slurmctld's
//! node indexes. The words are laid out as in Slurm's `bitstr_t` (node `i` is bit `i % 64` of word `i / 64`), so
//! the C boundary copies words instead of bits, and set algebra over 10,240 nodes is 160 word operations.

/// A node's index in slurmctld's node table.
pub type NodeId = u32;

/// A set of node indexes below a fixed size, the number of nodes in slurmctld's table.
///
/// Two sets that meet in one operation must have the same size; an operation on sets of different size is a bug
/// in the caller and panics.
#[derive(PartialEq, Eq, Hash, Default)]
pub struct NodeSet {
    words: Vec<u64>,
    size: usize,
}

impl Clone for NodeSet {
    fn clone(&self) -> Self {
        Self { words: self.words.clone(), size: self.size }
    }

    /// Allocates nothing if the set had as much room before.
    fn clone_from(&mut self, source: &Self) {
        self.words.clone_from(&source.words);
        self.size = source.size;
    }
}

const WORD: usize = 64;

impl NodeSet {
    /// The empty set over `size` nodes.
    pub fn new(size: usize) -> Self {
        Self { words: vec![0; size.div_ceil(WORD)], size }
    }

    /// All `size` nodes.
    pub fn full(size: usize) -> Self {
        let mut set = Self { words: vec![!0; size.div_ceil(WORD)], size };
        set.clear_tail();
        set
    }

    /// The given nodes, each below `size`.
    pub fn from_nodes(size: usize, nodes: impl IntoIterator<Item = NodeId>) -> Self {
        let mut set = Self::new(size);
        for node in nodes {
            set.insert(node);
        }
        set
    }

    /// A set from words in `bitstr_t` layout. Words that are missing count as empty, bits past `size` are dropped.
    pub fn from_words(size: usize, words: &[u64]) -> Self {
        let mut set = Self::new(size);
        set.copy_from_words(words);
        set
    }

    /// Overwrites the set with words in `bitstr_t` layout, without allocating.
    pub fn copy_from_words(&mut self, words: &[u64]) {
        for (i, word) in self.words.iter_mut().enumerate() {
            *word = words.get(i).copied().unwrap_or(0);
        }
        self.clear_tail();
    }

    /// The words in `bitstr_t` layout.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// How many nodes the cluster has, in the set or not.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Adds a node.
    pub fn insert(&mut self, node: NodeId) {
        let i = self.index(node);
        self.words[i / WORD] |= 1 << (i % WORD);
    }

    /// Removes a node.
    pub fn remove(&mut self, node: NodeId) {
        let i = self.index(node);
        self.words[i / WORD] &= !(1 << (i % WORD));
    }

    /// Whether the node is in the set; false for an index past the end.
    pub fn contains(&self, node: NodeId) -> bool {
        let i = node as usize;
        i < self.size && self.words[i / WORD] >> (i % WORD) & 1 == 1
    }

    /// How many nodes are in the set.
    pub fn count(&self) -> usize {
        self.words.iter().map(|w| w.count_ones() as usize).sum()
    }

    /// How many of a run of node indexes are in the set; those past the end are not.
    pub fn count_in(&self, run: std::ops::Range<NodeId>) -> usize {
        let (start, end) = (run.start as usize, (run.end as usize).min(self.size));
        if start >= end {
            return 0;
        }
        let (first, last) = (start / WORD, (end - 1) / WORD);
        let from = !0 << (start % WORD);
        let upto = !0 >> (WORD - 1 - (end - 1) % WORD);
        let count = |word: u64| word.count_ones() as usize;
        if first == last {
            return count(self.words[first] & from & upto);
        }
        let between: usize = self.words[first + 1..last].iter().copied().map(count).sum();
        count(self.words[first] & from) + between + count(self.words[last] & upto)
    }

    /// Whether the set holds no node.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&w| w == 0)
    }

    /// Makes it the empty set over `size` nodes, without allocating if it had as many before.
    pub fn reset(&mut self, size: usize) {
        self.words.clear();
        self.words.resize(size.div_ceil(WORD), 0);
        self.size = size;
    }

    /// Removes every node.
    pub fn clear(&mut self) {
        self.words.fill(0);
    }

    /// Keeps only nodes that are also in `other`.
    pub fn intersect_with(&mut self, other: &Self) {
        self.zip_with(other, |a, b| a & b);
    }

    /// Adds all nodes of `other`.
    pub fn union_with(&mut self, other: &Self) {
        self.zip_with(other, |a, b| a | b);
    }

    /// Removes all nodes of `other`.
    pub fn subtract(&mut self, other: &Self) {
        self.zip_with(other, |a, b| a & !b);
    }

    /// How many nodes both sets hold.
    pub fn count_common(&self, other: &Self) -> usize {
        self.check(other);
        self.words.iter().zip(&other.words).map(|(a, b)| (a & b).count_ones() as usize).sum()
    }

    /// Whether every node of this set is in `other`.
    pub fn is_subset(&self, other: &Self) -> bool {
        self.check(other);
        self.words.iter().zip(&other.words).all(|(a, b)| a & !b == 0)
    }

    /// Whether the sets share a node.
    pub fn intersects(&self, other: &Self) -> bool {
        self.check(other);
        self.words.iter().zip(&other.words).any(|(a, b)| a & b != 0)
    }

    /// The nodes in ascending order of index.
    pub fn iter(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.words.iter().enumerate().flat_map(|(w, &word)| {
            std::iter::successors((word != 0).then_some(word), |&rest| {
                let rest = rest & (rest - 1);
                (rest != 0).then_some(rest)
            })
            .map(move |rest| (w * WORD + rest.trailing_zeros() as usize) as NodeId)
        })
    }

    fn index(&self, node: NodeId) -> usize {
        let i = node as usize;
        assert!(i < self.size, "node {node} is outside a set of {} nodes", self.size);
        i
    }

    fn check(&self, other: &Self) {
        assert_eq!(self.size, other.size, "node sets of different clusters");
    }

    fn zip_with(&mut self, other: &Self, op: impl Fn(u64, u64) -> u64) {
        self.check(other);
        for (a, b) in self.words.iter_mut().zip(&other.words) {
            *a = op(*a, *b);
        }
    }

    fn clear_tail(&mut self) {
        let used = self.size % WORD;
        if let (true, Some(last)) = (used != 0, self.words.last_mut()) {
            *last &= (1 << used) - 1;
        }
    }
}

impl std::fmt::Debug for NodeSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn bits_past_the_end_never_appear() {
        assert_eq!(NodeSet::full(70).count(), 70);
        assert_eq!(NodeSet::from_words(3, &[!0, !0]).iter().collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(NodeSet::from_words(130, &[1]).iter().collect::<Vec<_>>(), [0]);
        assert!(!NodeSet::full(70).contains(70));
    }

    #[test]
    #[should_panic(expected = "node 70 is outside a set of 70 nodes")]
    fn a_node_outside_is_a_bug_of_the_caller() {
        NodeSet::new(70).insert(70);
    }

    proptest! {
        #[test]
        fn agrees_with_a_tree_set(
            a in prop::collection::btree_set(0u32..200, 0..60),
            b in prop::collection::btree_set(0u32..200, 0..60),
        ) {
            let (x, y) = (NodeSet::from_nodes(200, a.iter().copied()), NodeSet::from_nodes(200, b.iter().copied()));
            let both = |op: fn(&mut NodeSet, &NodeSet)| { let mut z = x.clone(); op(&mut z, &y); z.iter().collect::<BTreeSet<_>>() };
            prop_assert_eq!(x.iter().collect::<BTreeSet<_>>(), a.clone());
            prop_assert_eq!(both(NodeSet::intersect_with), a.intersection(&b).copied().collect());
            prop_assert_eq!(both(NodeSet::union_with), a.union(&b).copied().collect());
            prop_assert_eq!(both(NodeSet::subtract), a.difference(&b).copied().collect());
            prop_assert_eq!(x.count(), a.len());
            for (start, end) in [(0, 200), (3, 61), (64, 128), (63, 65), (70, 70), (90, 400), (128, 191), (9, 2)] {
                let in_run = a.iter().filter(|&&node| start <= node && node < end).count();
                prop_assert_eq!(x.count_in(start..end), in_run);
            }
            prop_assert_eq!(x.count_common(&y), a.intersection(&b).count());
            prop_assert_eq!(x.is_subset(&y), a.is_subset(&b));
            prop_assert_eq!(x.intersects(&y), !a.is_disjoint(&b));
            prop_assert_eq!(&NodeSet::from_words(200, x.words()), &x);
        }
    }
}
