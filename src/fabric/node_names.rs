//! Which name stands for which node of slurmctld's table.

use crate::nodeset::NodeId;
use std::collections::HashMap;

/// The cluster's nodes by name and by index. An index may stand for no node: slurmctld's table has holes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeNames {
    names: Vec<Option<Box<str>>>,
    ids: HashMap<Box<str>, NodeId>,
}

impl NodeNames {
    /// The nodes in the order of slurmctld's table, `None` for a hole. Of nodes with one name the first counts.
    pub fn new<S: AsRef<str>>(table: impl IntoIterator<Item = Option<S>>) -> Self {
        let names: Vec<Option<Box<str>>> =
            table.into_iter().map(|name| name.map(|name| name.as_ref().into())).collect();
        let mut ids = HashMap::with_capacity(names.len());
        for (id, name) in names.iter().enumerate() {
            if let Some(name) = name {
                ids.entry(name.clone()).or_insert(id as NodeId);
            }
        }
        Self { names, ids }
    }

    /// The size of the table, holes included.
    pub fn size(&self) -> usize {
        self.names.len()
    }

    /// The node with this name.
    pub fn id(&self, name: &str) -> Option<NodeId> {
        self.ids.get(name).copied()
    }

    /// The node's name; none for a hole or past the end.
    pub fn name(&self, node: NodeId) -> Option<&str> {
        self.names.get(node as usize)?.as_deref()
    }
}
