//! The answer: a placement, or a refusal with its numbers.

use crate::fabric::tree::{Fabric, Level, SwitchId};
use crate::nodeset::NodeSet;
use crate::request::{JobId, Time};
use std::fmt;

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

impl Default for Placement {
    /// No nodes yet: room for a placement to come.
    fn default() -> Self {
        Self { nodes: NodeSet::default(), domain: SwitchId(0), leaves: 0, excess: 0 }
    }
}

/// Why a gang waits: what a decision knows anyway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// How many nodes it needs in one domain.
    pub needed: u32,
    /// The level of its domains.
    pub level: Level,
    /// The domain with the most usable nodes.
    pub best: Option<Best>,
}

/// The domain that comes nearest to holding a gang.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Best {
    /// Its switch.
    pub domain: SwitchId,
    /// Nodes that the gang could use now.
    pub usable: u32,
    /// Nodes in all.
    pub size: u32,
}

/// Why a gang waits, for how long, and what would start instead: what people ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// What is missing.
    pub refusal: Refusal,
    /// The domain that will have the gang's nodes first, and when; none if no domain ever will.
    pub drains: Option<(SwitchId, Time)>,
    /// The jobs that stand in the way there, the one that ends last first.
    pub blockers: Vec<JobId>,
    /// What would start now.
    pub instead: Vec<Instead>,
}

/// A request that would start now in the place of one that does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Instead {
    /// So many gangs of so many nodes each.
    Parts {
        /// How many gangs.
        gangs: u32,
        /// Nodes of each.
        nodes: u32,
    },
    /// One gang of fewer nodes.
    Fewer {
        /// Its nodes.
        nodes: u32,
    },
    /// The gang as it is, in a domain of a higher level.
    Wider {
        /// The level.
        level: Level,
    },
}

impl Refusal {
    /// The refusal in words, with the site's name for the level if it has one.
    pub fn describe<'a>(
        &'a self,
        fabric: &'a Fabric,
        level_name: Option<&'a str>,
    ) -> impl fmt::Display + use<'a> {
        fmt::from_fn(move |f| {
            write!(f, "needs {} nodes under {}", self.needed, one_switch(self.level, level_name))?;
            match self.best {
                Some(Best { domain, usable, size }) => {
                    write!(f, "; best {} has {usable} free of {size}", fabric.switch(domain).name)
                }
                None => f.write_str("; no switch has any"),
            }
        })
    }
}

/// One switch of a level, in words.
pub fn one_switch(level: Level, name: Option<&str>) -> impl fmt::Display {
    fmt::from_fn(move |f| match (name, level) {
        (Some(name), _) => write!(f, "one {name}"),
        (None, 0) => f.write_str("one leaf"),
        (None, level) => write!(f, "one switch of level {level}"),
    })
}

impl fmt::Display for Instead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parts { gangs, nodes } => write!(f, "{gangs} x {nodes} nodes would start now"),
            Self::Fewer { nodes } => write!(f, "{nodes} nodes would start now"),
            Self::Wider { level } => write!(f, "under a switch of level {level} it would start now"),
        }
    }
}
