//! What a job asks for: how many nodes, what each of them must give, and how they must lie.

use crate::nodeset::NodeSet;

/// A job's number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub u32);

/// Unix time in seconds.
pub type Time = i64;

/// A kind of GRES, numbered by whoever fills the ledger. A name (`gpu`) and each of its types (`gpu:a100`) are kinds of
/// their own: a node that has four A100s has four of both, and a job that holds one of them holds one of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GresKind(pub u16);

/// Memory asked of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Memory {
    /// So many MB.
    Megabytes(u64),
    /// All that the node has: no other job may hold any.
    All,
}

/// What one node must give.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Share {
    /// Nobody else may be on the node.
    pub whole_node: bool,
    /// CPUs (hardware threads).
    pub cpus: u32,
    /// Memory.
    pub memory: Memory,
    /// GRES by kind.
    pub gres: Vec<(GresKind, u64)>,
}

/// A gang's request. A job of one node is a gang of one.
///
/// Excluded nodes are no part of it: they are not among the nodes that may be used.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// How many nodes are wanted.
    pub nodes: u32,
    /// The fewest that would do. Less than `nodes` only for an elastic gang, which gets the most that fit.
    pub at_least: u32,
    /// What each node must give.
    pub share: Share,
    /// Nodes that must be among them.
    pub required: Option<NodeSet>,
    /// One unbroken run of fabric positions.
    pub strictly_contiguous: bool,
    /// Nodes a segment: the gang falls into parts of so many nodes, the last one perhaps smaller, and each part lies in
    /// one domain of the lowest level that can hold a part. An elastic gang shrinks by whole parts.
    pub segment: Option<u32>,
    /// No more leaves than that.
    pub max_leaves: Option<u32>,
    /// All nodes from one of these sets, such as the nodes of each GPU type; empty: any nodes.
    pub uniform: Vec<NodeSet>,
}

impl Request {
    /// A gang of exactly so many nodes, with no other wish.
    pub fn new(nodes: u32, share: Share) -> Self {
        Self {
            nodes,
            at_least: nodes,
            share,
            required: None,
            strictly_contiguous: false,
            segment: None,
            max_leaves: None,
            uniform: Vec::new(),
        }
    }

    /// Whether there are several wishes that each restrict which nodes of a domain may be taken together.
    pub fn wishes_meet(&self) -> bool {
        let wishes = [
            self.required.is_some(),
            self.strictly_contiguous,
            self.segment.is_some(),
            self.max_leaves.is_some(),
        ];
        wishes.into_iter().filter(|&wish| wish).count() > 1
    }
}
