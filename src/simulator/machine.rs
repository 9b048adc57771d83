//! The machine that a simulation runs on: a fabric of nodes that are all alike.

use crate::cluster::{Capacity, Ledger};
use crate::fabric::tree::{Below, Declared, Fabric, Level, SwitchId};
use crate::fragmentation;
use crate::nodeset::NodeId;
use crate::placement::candidates;
use crate::request::{GresKind, Memory, Share};

/// What a node's slots are in the simulator's ledger.
pub const GPU: GresKind = GresKind(0);

/// A fabric of nodes that are all alike.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The switches. Nodes that they do not list are not used.
    pub fabric: Fabric,
    /// GPUs of each node.
    pub gpus_per_node: u32,
}

impl Machine {
    /// A machine of so many nodes, so many under each leaf, and so many leaves under each spine, with one switch above
    /// all spines.
    pub fn regular(nodes: u32, leaf: u32, spine: u32, gpus_per_node: u32) -> Self {
        let leaf_count = nodes.div_ceil(leaf) as usize;
        let spine_count = leaf_count.div_ceil(spine as usize);
        let leaves = (0..nodes).collect::<Vec<_>>();
        let leaves = leaves.chunks(leaf as usize).map(|nodes| Below::Nodes(nodes.to_vec()));
        let under = |s: usize| (s * spine as usize..((s + 1) * spine as usize).min(leaf_count)).collect();
        let spines = (0..spine_count).map(|s| Below::Switches(under(s)));
        let core = Below::Switches((leaf_count..leaf_count + spine_count).collect());
        let named =
            |(kind, below): (&str, Below), number: usize| Declared { name: format!("{kind}{number}"), below };
        let mut declared: Vec<Declared> =
            leaves.enumerate().map(|(i, below)| named(("leaf", below), i + 1)).collect();
        declared.extend(spines.enumerate().map(|(i, below)| named(("spine", below), i + 1)));
        declared.push(Declared { name: "core".into(), below: core });
        Self { fabric: Fabric::new(nodes as usize, &declared), gpus_per_node }
    }

    /// All GPUs.
    pub fn gpus(&self) -> u64 {
        self.fabric.listed().count() as u64 * u64::from(self.gpus_per_node)
    }

    /// A ledger of the empty machine.
    pub fn ledger(&self) -> Ledger {
        let mut ledger = Ledger::new(self.fabric.node_count());
        ledger.set_slot_kind(GPU);
        for node in self.fabric.listed().iter() {
            let gres = vec![(GPU, self.gpus_per_node.into())];
            ledger.set_capacity(node, Capacity { cpus: self.gpus_per_node, memory_mb: 0, gres });
        }
        ledger
    }

    /// What each node must give to a job of so many GPUs on one node, or to a gang.
    pub fn share(&self, gpus: u32) -> Share {
        let whole_node = gpus >= self.gpus_per_node;
        let gpus = gpus.min(self.gpus_per_node);
        let memory = Memory::Megabytes(0);
        Share { whole_node, cpus: gpus, memory, gres: vec![(GPU, gpus.into())] }
    }

    /// How many levels the nodes of a gang lie beyond its home level: 0 if one domain of that level holds them all.
    pub fn levels_beyond(&self, nodes: &[NodeId]) -> usize {
        let Some(home) = fragmentation::home_level(&self.fabric, nodes.len() as u32) else { return 0 };
        let common = self.common_level(nodes).unwrap_or(self.fabric.level_count() as Level);
        usize::from(common.saturating_sub(home))
    }

    /// The level of the lowest switch above all nodes; none if they lie in different trees.
    fn common_level(&self, nodes: &[NodeId]) -> Option<Level> {
        let mut positions = nodes.iter().filter_map(|&node| self.fabric.position(node));
        let first = positions.next()?;
        let (low, high) = positions.fold((first, first), |(low, high), p| (low.min(p), high.max(p)));
        let leaf = self.fabric.leaf_of(nodes[0]);
        let holds = |id: &SwitchId| {
            let span = &self.fabric.switch(*id).span;
            span.contains(&low) && span.contains(&high)
        };
        self.fabric.upwards(leaf).find(holds).map(|id| self.fabric.switch(id).level)
    }

    /// How many leaves nodes hang on.
    pub fn leaves(&self, nodes: &[NodeId]) -> u32 {
        let mut leaves: Vec<_> = nodes.iter().filter_map(|&node| self.fabric.leaf_of(node)).collect();
        leaves.sort_unstable();
        leaves.dedup();
        leaves.len() as u32
    }

    /// The fewest leaves that could hold so many nodes: the largest ones.
    pub fn fewest_leaves(&self, nodes: u32) -> u32 {
        let leaves = self.fabric.at_level(0).iter();
        let mut sizes: Vec<u32> = leaves.map(|&id| self.fabric.switch(id).node_count() as u32).collect();
        candidates::fewest(&mut sizes, nodes)
    }
}
