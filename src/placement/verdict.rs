//! The answer: a placement, or a refusal with its numbers.

use crate::fabric::tree::{Fabric, Level, SwitchId};
use crate::nodeset::NodeSet;
use std::fmt;

/// What became of a gang.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Its nodes.
    Placed(Placement),
    /// Why it waits.
    Refused(Refusal),
}

/// A gang's nodes, all under one switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Exactly the gang's nodes.
    pub nodes: NodeSet,
    /// The domain that they were chosen in.
    pub domain: SwitchId,
    /// How many leaves they hang on.
    pub leaves: u32,
    /// Leaves beyond the fewest that the domain would need if it were empty.
    pub excess: u32,
}

impl Placement {
    /// A placement of these nodes in a domain that holds them and that would need the fewest leaves if it were empty.
    pub fn new(fabric: &Fabric, domain: SwitchId, nodes: NodeSet, fewest: u32) -> Self {
        let mut leaves: Vec<_> = nodes.iter().filter_map(|node| fabric.leaf_of(node)).collect();
        leaves.sort_unstable();
        leaves.dedup();
        let leaves = leaves.len() as u32;
        Self { nodes, domain, leaves, excess: leaves.saturating_sub(fewest) }
    }
}

/// Why a gang waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// How many nodes it needs in one domain.
    pub needed: u32,
    /// The level of its domains.
    pub level: Level,
    /// The domain with the most usable nodes.
    pub best: Option<Best>,
}

/// The domain that comes nearest to holding a gang.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Best {
    /// Its switch.
    pub name: String,
    /// Nodes that the gang could use now.
    pub usable: u32,
    /// Nodes in all.
    pub size: u32,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.level {
            0 => write!(f, "needs {} nodes under one leaf", self.needed)?,
            level => write!(f, "needs {} nodes under one switch of level {level}", self.needed)?,
        }
        match &self.best {
            Some(best) => write!(f, "; best {} has {} free of {}", best.name, best.usable, best.size),
            None => f.write_str("; no switch has any"),
        }
    }
}
