//! What is worth knowing of a sound fabric: its shape, gang sizes that fit nearly nowhere, and node orders that cut
//! across leaves.

use super::diagnostic::{Diagnostic, Place, codes};
use super::review::in_short;
use super::tree::{Fabric, Level, Switch, SwitchId};
use crate::nodeset::{NodeId, NodeSet};
use std::path::Path;

codes! {
    /// The codes of this module.
    CODES;
    FOREST = "T201" Note "a fabric of several trees";
    UNEVEN = "T202" Note "leaves of different sizes";
    LONE_NODES = "T203" Note "leaves with a single node";
}

/// Notes on the fabric's shape.
pub fn shape(fabric: &Fabric, path: &Path) -> Vec<Diagnostic> {
    let note = |code, what: String, hint| Diagnostic::new(code, Place::file(path), what, hint);
    let leaves: Vec<&Switch> = fabric.at_level(0).iter().map(|&leaf| fabric.switch(leaf)).collect();
    let names =
        |switches: &[&Switch]| in_short(&switches.iter().map(|s| s.name.as_str()).collect::<Vec<_>>());
    let mut notes = Vec::new();

    let roots: Vec<&Switch> =
        fabric.switches().map(|(_, switch)| switch).filter(|switch| switch.parent.is_none()).collect();
    if roots.len() > 1 {
        let what = format!("the fabric is {} trees: {}", roots.len(), names(&roots));
        notes.push(note(
            FOREST,
            what,
            "no gang crosses trees; join them under a switch if they are connected",
        ));
    }
    let sizes = leaves.iter().map(|leaf| leaf.node_count());
    if let (Some(least), Some(most)) = (sizes.clone().min(), sizes.max())
        && least < most
    {
        let what = format!("leaves have {least} to {most} nodes");
        notes.push(note(UNEVEN, what, "the table of gang sizes says what fits where"));
    }
    let lone: Vec<&Switch> = leaves.iter().copied().filter(|leaf| leaf.node_count() == 1).collect();
    if !lone.is_empty() && lone.len() < leaves.len() {
        let what = format!("{} of {} leaves have a single node: {}", lone.len(), leaves.len(), names(&lone));
        notes.push(note(LONE_NODES, what, "every gang on them crosses leaves, so they are chosen last"));
    }
    notes
}

/// Where gangs of one size fit when the fabric is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fit {
    /// Nodes of the gang.
    pub size: usize,
    /// The lowest level with a domain that can hold it; none if no domain can.
    pub home: Option<Home>,
}

/// The domains of one level that can hold a gang.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Home {
    /// The level.
    pub level: Level,
    /// How many of its domains can hold the gang.
    pub can_hold: usize,
    /// How many of its domains have any of the nodes.
    pub domains: usize,
}

impl Home {
    /// Whether fewer than half of the domains can hold the gang, so that it waits for a few of them.
    pub fn is_scarce(&self) -> bool {
        2 * self.can_hold < self.domains
    }
}

/// Where gangs of the given sizes fit on the given nodes.
pub fn fits(fabric: &Fabric, nodes: &NodeSet, sizes: impl IntoIterator<Item = usize>) -> Vec<Fit> {
    let by_level: Vec<Vec<usize>> = (0..fabric.level_count())
        .map(|level| {
            let counts = fabric.at_level(level as Level).iter().map(|&switch| count(fabric, switch, nodes));
            counts.filter(|&count| count > 0).collect()
        })
        .collect();
    let fit = |size| Fit {
        size,
        home: by_level.iter().enumerate().find_map(|(level, counts)| {
            let can_hold = counts.iter().filter(|&&count| count >= size).count();
            (can_hold > 0).then_some(Home { level: level as Level, can_hold, domains: counts.len() })
        }),
    };
    sizes.into_iter().map(fit).collect()
}

fn count(fabric: &Fabric, switch: SwitchId, nodes: &NodeSet) -> usize {
    fabric.nodes_under(switch).iter().filter(|&&node| nodes.contains(node)).count()
}

/// The leaves whose nodes are no neighbours in the order of node indexes, in which Slurm numbers the ranks of a job:
/// between two of their nodes stands a listed node of another leaf.
pub fn torn_leaves(fabric: &Fabric) -> Vec<SwitchId> {
    let mut closed = vec![false; fabric.switch_count()];
    let mut torn = vec![false; fabric.switch_count()];
    let mut last: Option<SwitchId> = None;
    for leaf in (0..fabric.node_count() as NodeId).filter_map(|node| fabric.leaf_of(node)) {
        if last != Some(leaf) {
            torn[leaf.0 as usize] |= closed[leaf.0 as usize];
            if let Some(last) = last.replace(leaf) {
                closed[last.0 as usize] = true;
            }
        }
    }
    fabric.switches().map(|(id, _)| id).filter(|id| torn[id.0 as usize]).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tree::{Below, Declared};
    use super::*;

    fn leaf(name: usize, nodes: impl IntoIterator<Item = NodeId>) -> Declared {
        Declared { name: format!("leaf{name}"), below: Below::Nodes(nodes.into_iter().collect()) }
    }

    #[test]
    fn only_two_of_fifteen_leaves_hold_a_gang_of_eight() {
        let mut next = 0;
        let mut leaves: Vec<Declared> = [1, 1, 2, 2, 2, 3, 3, 3, 5, 5, 6, 6, 6, 8, 11]
            .into_iter()
            .enumerate()
            .map(|(i, size)| {
                next += size;
                leaf(i, next - size..next)
            })
            .collect();
        leaves.push(Declared { name: "top".into(), below: Below::Switches((0..15).collect()) });
        let fabric = Fabric::new(64, &leaves);
        let fits = fits(&fabric, fabric.listed(), [1, 8, 16, 65]);
        let home = |level, can_hold, domains| Some(Home { level, can_hold, domains });
        assert_eq!(
            fits.iter().map(|fit| fit.home).collect::<Vec<_>>(),
            [home(0, 15, 15), home(0, 2, 15), home(1, 1, 1), None]
        );
        assert!(fits[1].home.unwrap().is_scarce() && !fits[2].home.unwrap().is_scarce());
    }

    #[test]
    fn leaves_are_torn_if_other_listed_nodes_stand_between() {
        // Node 4 is in no leaf and tears nothing.
        let fabric = Fabric::new(8, &[leaf(0, [0, 2]), leaf(1, [1]), leaf(2, [3, 5]), leaf(3, [6, 7])]);
        assert_eq!(torn_leaves(&fabric), [SwitchId(0)]);
    }
}
