//! What squeue says of jobs, and where in the fabric they sit.

use lockstep::fabric::hostlist::{Dialect, expand};
use std::collections::{BTreeMap, BTreeSet};

/// A job as squeue shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// `7`, or `7_2` for the second task of an array.
    pub id: String,
    pub name: String,
    pub state: String,
    /// While the job [ends](Self::is_ending), only the nodes that have not ended yet.
    pub nodes: Vec<String>,
    pub reason: String,
    pub submitted: String,
    pub started: String,
}

impl Job {
    /// squeue's format for [`Job::parse`].
    pub const FORMAT: &str = "%i|%j|%T|%N|%r|%V|%S";

    pub fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split('|').map(str::to_owned);
        let mut next = || fields.next();
        Some(Self {
            id: next()?,
            name: next()?,
            state: next()?,
            nodes: hosts(&next()?),
            reason: next()?,
            submitted: next()?,
            started: next()?,
        })
    }

    pub fn is(&self, state: &str) -> bool {
        self.state == state
    }

    /// Whether its nodes are ending, one by one.
    pub fn is_ending(&self) -> bool {
        self.is("COMPLETING")
    }

    /// Whether it holds nodes.
    pub fn holds_nodes(&self) -> bool {
        ["RUNNING", "CONFIGURING", "SUSPENDED"].contains(&self.state.as_str())
    }
}

/// A hostlist expanded.
pub fn hosts(list: &str) -> Vec<String> {
    if list.is_empty() { Vec::new() } else { expand(list, Dialect::of_slurm(22, 5)).unwrap() }
}

/// Which leaf and spine each node hangs on, read from a topology.conf of the harness.
#[derive(Clone, Debug)]
pub struct Wiring {
    leaf: BTreeMap<String, String>,
    spine: BTreeMap<String, String>,
    members: BTreeMap<String, Vec<String>>,
}

impl Wiring {
    pub fn of(topology: &str) -> Self {
        let mut wiring = Self { leaf: BTreeMap::new(), spine: BTreeMap::new(), members: BTreeMap::new() };
        for line in topology.lines() {
            let field = |key: &str| line.split_whitespace().find_map(|word| word.strip_prefix(key));
            let Some(name) = field("SwitchName=") else { continue };
            let nodes = field("Nodes=").map(hosts).unwrap_or_default();
            if !nodes.is_empty() {
                wiring.members.insert(name.into(), nodes.clone());
            }
            wiring.leaf.extend(nodes.into_iter().map(|node| (node, name.to_owned())));
            let leaves = field("Switches=").map(hosts).unwrap_or_default();
            wiring.spine.extend(leaves.into_iter().map(|leaf| (leaf, name.to_owned())));
        }
        wiring
    }

    /// Each leaf with its nodes, as the file lists them.
    pub fn members(&self) -> &BTreeMap<String, Vec<String>> {
        &self.members
    }

    /// The spine above a leaf.
    pub fn spine_of(&self, leaf: &str) -> &str {
        &self.spine[leaf]
    }

    /// The leaves that these nodes hang on.
    pub fn leaves(&self, nodes: &[String]) -> BTreeSet<&str> {
        nodes.iter().map(|node| self.leaf[node].as_str()).collect()
    }

    /// The spines that these nodes hang under.
    pub fn spines(&self, nodes: &[String]) -> BTreeSet<&str> {
        self.leaves(nodes).into_iter().map(|leaf| self.spine[leaf].as_str()).collect()
    }

    /// The fewest leaves that so many nodes need in an empty cluster.
    pub fn fewest_leaves(&self, nodes: usize) -> usize {
        let mut sizes: Vec<usize> = self.members.values().map(Vec::len).collect();
        sizes.sort_unstable_by_key(|&size| std::cmp::Reverse(size));
        let mut held = 0;
        let full = sizes.iter().take_while(|&&size| {
            held += size;
            held < nodes
        });
        full.count() + 1
    }

    /// Leaves used beyond the fewest.
    pub fn excess(&self, nodes: &[String]) -> usize {
        self.leaves(nodes).len() - self.fewest_leaves(nodes.len())
    }
}
