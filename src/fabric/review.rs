//! What the rules settled: compares the fabric with what the file declared, and reports where they differ.

use super::NodeNames;
use super::diagnostic::{Diagnostic, Place, codes};
use super::draft::{DraftSwitch, Hanging};
use super::hostlist;
use super::tree::{Below, Declared, Fabric};
use crate::nodeset::NodeId;
use std::collections::{HashMap, HashSet};
use std::path::Path;

codes! {
    /// The codes of this module.
    CODES;
    SEVERAL_PARENTS = "T101" Warning "a switch is named by several parents, or twice by one";
    SEVERAL_LEAVES = "T102" Warning "nodes that hang on several leaves";
    UNLISTED_NODES = "T104" Warning "nodes of the cluster that no switch reaches";
    EMPTY_LEAF = "T105" Warning "a switch or block without a node of the cluster";
    SHORT_BLOCK = "T106" Warning "a block with fewer nodes than BlockSizes says";
}

/// A fabric, and what it was made of: `declared[i]` came of `switches[i]`.
pub struct Review<'a> {
    /// The topology file.
    pub path: &'a Path,
    /// The cluster's nodes.
    pub nodes: &'a NodeNames,
    /// The switches or blocks as they were written.
    pub switches: &'a [DraftSwitch],
    /// The same with names resolved.
    pub declared: &'a [Declared],
    /// The fabric made of them.
    pub fabric: &'a Fabric,
}

impl Review<'_> {
    /// All that the rules settled. `block_size` is how many nodes a block should have.
    pub fn findings(&self, block_size: Option<u32>) -> Vec<Diagnostic> {
        let lines = || self.switches.iter().zip(self.declared);
        let mut findings = self.several_parents();
        findings.extend(lines().filter_map(|(switch, declared)| match &declared.below {
            Below::Nodes(nodes) if nodes.is_empty() => Some(empty(switch)),
            Below::Nodes(nodes) => self.several_leaves(switch, nodes),
            Below::Switches(_) => None,
        }));
        if let Some(size) = block_size {
            findings.extend(
                lines().filter_map(|(switch, declared)| short_block(switch, declared, size as usize)),
            );
        }
        findings.extend(self.unlisted());
        findings
    }

    fn several_parents(&self) -> Vec<Diagnostic> {
        let mut named = vec![false; self.declared.len()];
        let mut children = self.declared.iter().flat_map(Declared::children);
        if !children.any(|&child| std::mem::replace(&mut named[child], true)) {
            return Vec::new();
        }
        let name = |id| self.fabric.switch(id).name.as_str();
        let parents: HashMap<&str, &str> = (self.fabric.switches())
            .filter_map(|(id, switch)| Some((name(id), name(switch.parent?))))
            .collect();
        let lines = self.switches.iter().zip(self.declared);
        lines.filter_map(|(switch, declared)| self.lost_children(switch, declared, &parents)).collect()
    }

    fn lost_children(
        &self,
        switch: &DraftSwitch,
        declared: &Declared,
        parents: &HashMap<&str, &str>,
    ) -> Option<Diagnostic> {
        let mut seen = HashSet::new();
        let names = declared.children().iter().map(|&child| self.declared[child].name.as_str());
        let elsewhere = |child: &str| parents.get(child).is_some_and(|kept| *kept != declared.name);
        let lost: Vec<&str> = names.filter(|&child| !seen.insert(child) || elsewhere(child)).collect();
        let first = lost.first()?;
        let what = format!(
            "switch `{}` names {} again: {} (`{first}` stays under `{}`)",
            switch.name,
            counted(lost.len(), "child"),
            in_short(&lost),
            parents.get(first)?,
        );
        let hint = "name each switch under one parent; it stays under the first in fabric order";
        Some(Diagnostic::new(SEVERAL_PARENTS, switch.place.clone(), what, hint))
    }

    fn several_leaves(&self, switch: &DraftSwitch, nodes: &[NodeId]) -> Option<Diagnostic> {
        let leaf_of = |node| self.fabric.leaf_of(node).map_or("", |leaf| &self.fabric.switch(leaf).name);
        let lost: Vec<NodeId> = nodes.iter().copied().filter(|&node| leaf_of(node) != switch.name).collect();
        let first = leaf_of(*lost.first()?);
        let names: Vec<&str> = lost.iter().filter_map(|&node| self.nodes.name(node)).collect();
        let what = format!(
            "leaf `{}` names {} that already hang on another leaf: {} (the first on `{first}`)",
            switch.name,
            counted(lost.len(), "node"),
            in_short(&names)
        );
        let hint = format!(
            "name each node on one leaf; it stays on the first in fabric order. If `{}` or `{first}` is no part of \
             the compute fabric, put it into `exclude` in lockstep.toml",
            switch.name
        );
        Some(Diagnostic::new(SEVERAL_LEAVES, switch.place.clone(), what, hint))
    }

    fn unlisted(&self) -> Option<Diagnostic> {
        let unlisted = unlisted(self.nodes, self.fabric);
        let names: Vec<&str> = unlisted.filter_map(|node| self.nodes.name(node)).collect();
        if names.is_empty() || self.fabric.listed().is_empty() {
            return None;
        }
        let count = counted(names.len(), "node");
        let what = format!("no switch reaches {count} of the cluster: {}", in_short(&names));
        let hint = "add them to a leaf; until then no gang under a rule is placed on them";
        Some(Diagnostic::new(UNLISTED_NODES, Place::file(self.path), what, hint))
    }
}

fn empty(switch: &DraftSwitch) -> Diagnostic {
    let (what, hint) = match switch.below {
        Hanging::Nothing => (
            "names neither nodes nor switches",
            "complete it, or remove it: topology/tree refuses such a switch before 25.05",
        ),
        _ => ("has no node of the cluster", "correct its nodes, or remove it"),
    };
    let what = format!("`{}` {what} and is left out", switch.name);
    Diagnostic::new(EMPTY_LEAF, switch.place.clone(), what, hint)
}

fn short_block(switch: &DraftSwitch, declared: &Declared, size: usize) -> Option<Diagnostic> {
    let Below::Nodes(nodes) = &declared.below else { return None };
    let is_short = (1..size).contains(&nodes.len());
    let what = format!("block `{}` has {} of the {size} nodes of BlockSizes", switch.name, nodes.len());
    let hint = "complete the block, or make BlockSizes fit; gangs see the nodes that are there";
    is_short.then(|| Diagnostic::new(SHORT_BLOCK, switch.place.clone(), what, hint))
}

/// The nodes of the cluster that the fabric does not list.
pub fn unlisted<'a>(nodes: &'a NodeNames, fabric: &'a Fabric) -> impl Iterator<Item = NodeId> + 'a {
    (0..nodes.size() as NodeId).filter(|&node| nodes.name(node).is_some() && !fabric.listed().contains(node))
}

/// How many names a message shows.
pub const MAX_SHOWN: usize = 24;

/// The first names, folded.
pub fn in_short(names: &[&str]) -> String {
    let mut folded = hostlist::fold(names.iter().take(MAX_SHOWN));
    if names.len() > MAX_SHOWN {
        folded.push_str(",...");
    }
    folded
}

/// A number with its noun.
pub fn counted(count: usize, noun: &str) -> String {
    let plural = match noun {
        "child" => "children",
        "switch" => "switches",
        "node" => "nodes",
        _ => "names",
    };
    format!("{count} {}", if count == 1 { noun } else { plural })
}
