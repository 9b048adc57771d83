//! What a new topology file changes against an old one, over the same nodes.

use lockstep::fabric::tree::{Fabric, SwitchId};
use lockstep::fabric::{NodeNames, hostlist};
use lockstep::nodeset::NodeId;
use serde::Serialize;
use std::collections::BTreeMap;

/// The changes; all empty if the fabrics have the same shape.
#[derive(Serialize, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Names of switches that only the new file has.
    pub added: Vec<String>,
    /// Names of switches that only the old file has.
    pub removed: Vec<String>,
    /// Switches that hang under another parent.
    pub moved_switches: Vec<Move>,
    /// Nodes that hang on another leaf.
    pub moved_nodes: Vec<Move>,
}

/// Something that hangs elsewhere than before; none is no parent, or outside the fabric.
#[derive(Serialize, Debug, PartialEq, Eq)]
pub struct Move {
    /// The switch, or the nodes as a hostlist.
    pub what: String,
    /// Where it hung.
    pub from: Option<String>,
    /// Where it hangs now.
    pub to: Option<String>,
}

impl Changes {
    /// Whether nothing moved.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// One line a change.
    pub fn lines(&self) -> impl Iterator<Item = String> + '_ {
        let place = |place: &Option<String>, none: &str| place.clone().unwrap_or(none.into());
        let switches = self.moved_switches.iter().map(move |m| {
            format!(
                "~ switch {}: under {}, was under {}",
                m.what,
                place(&m.to, "nothing"),
                place(&m.from, "nothing")
            )
        });
        let nodes = self.moved_nodes.iter().map(move |m| {
            let outside = "outside the fabric";
            format!("~ {}: on {}, was on {}", m.what, place(&m.to, outside), place(&m.from, outside))
                .replace(&format!("on {outside}"), outside)
        });
        let removed = self.removed.iter().map(|name| format!("- switch {name}"));
        let added = self.added.iter().map(|name| format!("+ switch {name}"));
        removed.chain(added).chain(switches).chain(nodes)
    }
}

/// Compares two fabrics over the same nodes. Switches are the same if their names are.
pub fn changes(old: &Fabric, new: &Fabric, nodes: &NodeNames) -> Changes {
    let (before, after) = (parents(old), parents(new));
    let only_in = |these: &BTreeMap<&str, Option<&str>>, those: &BTreeMap<&str, Option<&str>>| {
        these.keys().filter(|name| !those.contains_key(*name)).map(|name| name.to_string()).collect()
    };
    let moved_switches = after
        .iter()
        .filter_map(|(name, to)| Some((name, before.get(name)?, to)))
        .filter(|(_, from, to)| from != to)
        .map(|(name, from, to)| moved(name.to_string(), *from, *to))
        .collect();
    let mut groups: BTreeMap<(Option<&str>, Option<&str>), Vec<&str>> = BTreeMap::new();
    for node in 0..nodes.size() as NodeId {
        let (from, to) = (leaf_name(old, node), leaf_name(new, node));
        if from != to {
            groups.entry((from, to)).or_default().extend(nodes.name(node));
        }
    }
    let moved_nodes =
        groups.into_iter().map(|((from, to), names)| moved(hostlist::fold(names), from, to)).collect();
    Changes {
        added: only_in(&after, &before),
        removed: only_in(&before, &after),
        moved_switches,
        moved_nodes,
    }
}

fn moved(what: String, from: Option<&str>, to: Option<&str>) -> Move {
    Move { what, from: from.map(str::to_string), to: to.map(str::to_string) }
}

/// Each switch's name and that of its parent.
fn parents(fabric: &Fabric) -> BTreeMap<&str, Option<&str>> {
    let name = |id: SwitchId| fabric.switch(id).name.as_str();
    fabric.switches().map(|(id, switch)| (name(id), switch.parent.map(name))).collect()
}

fn leaf_name(fabric: &Fabric, node: NodeId) -> Option<&str> {
    fabric.leaf_of(node).map(|leaf| fabric.switch(leaf).name.as_str())
}
