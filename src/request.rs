//! What a job asks for: how many nodes, and what each of them must give.

use crate::nodeset::NodeSet;

/// A job's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

/// A gang's request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// How many nodes: all of them or none.
    pub nodes: u32,
    /// What each node must give.
    pub share: Share,
    /// Nodes that must be among them.
    pub required: Option<NodeSet>,
    /// One unbroken run of fabric positions.
    pub strictly_contiguous: bool,
}
