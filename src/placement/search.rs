//! One question: a gang, and the nodes that it may use at some moment.

use super::candidates::{Counts, Home};
use super::cost::Cost;
use super::hole_cost::HoleCost;
use crate::cluster::{Ledger, Slots};
use crate::fabric::tree::{Fabric, SwitchId};
use crate::nodeset::NodeSet;
use crate::request::Request;

/// A gang, and the nodes that it may use.
#[derive(Clone, Copy)]
pub struct Search<'a> {
    /// The switches.
    pub fabric: &'a Fabric,
    /// Who is on the nodes, and how gladly each is given away.
    pub ledger: &'a Ledger,
    /// What a choice costs the gangs to come.
    pub holes: &'a HoleCost,
    /// The gang.
    pub request: &'a Request,
    /// Where it is contiguous.
    pub home: &'a Home,
    /// The nodes that it may use.
    pub usable: &'a NodeSet,
    /// How many of them each switch has.
    pub counts: &'a Counts,
    /// How many of them each switch has that nobody is on.
    pub idle: &'a Counts,
    /// Whether the gang shares its nodes, so that it matters who is on them.
    pub shares_nodes: bool,
    /// How many slots it takes of a node whose slots are GPUs.
    pub devices: u32,
    /// Which filling of the pool the nodes are.
    pub filling: u64,
}

impl Search<'_> {
    /// The hole cost of taking so many idle nodes from all domains above one.
    pub fn cost_above(&self, domain: SwitchId, taken: u32) -> Cost {
        let fabric = self.fabric;
        fabric.upwards(fabric.switch(domain).parent).fold(Cost::NONE, |sum, id| {
            sum.plus(Cost::hole(self.holes.of(fabric.switch(id).level, self.idle.of(id), taken)))
        })
    }

    /// How many of a node's slots the gang takes.
    pub fn taken(&self, slots: Slots) -> u32 {
        let asked = if slots.are_devices { self.devices } else { self.request.share.cpus };
        asked.min(slots.free)
    }

    /// Whether all usable nodes of a leaf are alike to this gang.
    pub fn nodes_are_alike(&self) -> bool {
        !self.shares_nodes && self.request.required.is_none() && !self.ledger.has_reluctance()
    }
}
