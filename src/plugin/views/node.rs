//! Partitions and nodes.

use super::{array, entries, keep, read, text, view};
use crate::cluster::Reluctance;
use crate::nodeset::NodeSet;
use crate::plugin::sys;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::ptr::NonNull;

view! {
    /// A partition.
    Partition of sys::part_record_t
}

view! {
    /// A node.
    Node of sys::node_record_t
}

/// GRES of one name and type that a node has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GresCapacity {
    /// Such as `gpu`.
    pub name: String,
    /// How many the node has in all.
    pub total: u64,
    /// How many of each type, if the node's configuration tells types.
    pub by_kind: Vec<(String, u64)>,
}

impl Partition<'_> {
    /// Its name.
    pub fn name(&self) -> String {
        text(read!(self.name)).unwrap_or_default()
    }

    /// Its `PriorityTier`.
    pub fn tier(&self) -> u16 {
        read!(self.priority_tier)
    }

    /// Keeps only the partition's nodes.
    pub fn keep_nodes(&self, nodes: &mut NodeSet) -> bool {
        keep(nodes, read!(self.node_bitmap))
    }

    /// Whether several jobs may share a CPU (`OverSubscribe=YES` or `FORCE` with more than one job).
    pub fn oversubscribes(&self) -> bool {
        u32::from(read!(self.max_share)) & !sys::SHARED_FORCE > 1
    }

    /// Whether jobs go to the nodes that are loaded least (`LLN=YES`).
    pub fn prefers_least_loaded(&self) -> bool {
        u32::from(read!(self.flags)) & sys::lockstep_least_loaded != 0
    }

    /// Whether jobs always get whole nodes (`OverSubscribe=EXCLUSIVE`).
    pub fn exclusive(&self) -> bool {
        read!(self.max_share) == 0
    }
}

impl Node<'_> {
    /// How gladly it is given away.
    pub fn reluctance(&self) -> Reluctance {
        let powered_down = read!(self.node_state) & sys::lockstep_powered_down != 0;
        Reluctance { powered_down, weight: read!(self.weight) }
    }

    /// The node's name.
    pub fn name(&self) -> Option<String> {
        text(read!(self.name))
    }

    /// CPUs (hardware threads) that jobs can have.
    pub fn cpus(&self) -> u32 {
        let effective = read!(self.cpus_efctv);
        u32::from(if effective == 0 { read!(self.cpus) } else { effective })
    }

    /// Memory in MB that jobs can have.
    pub fn memory_mb(&self) -> u64 {
        read!(self.real_memory).saturating_sub(read!(self.mem_spec_limit))
    }

    /// cons_tres's record of what is allocated on it.
    pub fn select_info(&self) -> Option<*mut c_void> {
        let info = read!(self.select_nodeinfo);
        // SAFETY: the node's own record, which slurmctld makes with the node.
        unsafe { info.as_ref() }.map(|info| info.data).filter(|data| !data.is_null())
    }

    /// How many GRES of a name are allocated on it.
    pub fn gres_allocated(&self, name: &str) -> u64 {
        entries::<sys::gres_state_t>(read!(self.gres_list))
            .into_iter()
            .filter_map(|state| {
                // SAFETY: an entry of a node's GRES list, whose data is a node's state.
                let (known, gres) = unsafe { (text((*state).gres_name)?, (*state).gres_data) };
                // SAFETY: as above; NULL gives none.
                let gres = unsafe { gres.cast::<sys::gres_node_state_t>().as_ref() }?;
                (known == name).then_some(gres.gres_cnt_alloc)
            })
            .sum()
    }

    /// The GRES that the node has.
    pub fn gres(&self) -> Vec<GresCapacity> {
        entries::<sys::gres_state_t>(read!(self.gres_list))
            .into_iter()
            .filter_map(|state| {
                // SAFETY: an entry of a node's GRES list, whose data is a node's state.
                let (name, gres) = unsafe { (text((*state).gres_name)?, (*state).gres_data) };
                // SAFETY: as above; NULL gives none.
                let gres = unsafe { gres.cast::<sys::gres_node_state_t>().as_ref() }?;
                let kinds = usize::from(gres.type_cnt);
                // SAFETY: both arrays have type_cnt entries, or are NULL.
                let (names, counts) =
                    unsafe { (array(gres.type_name, kinds), array(gres.type_cnt_avail, kinds)) };
                let by_kind = names
                    .iter()
                    .zip(counts)
                    .filter_map(|(&kind, &count)| Some((text(kind)?, count)))
                    .collect();
                Some(GresCapacity { name, total: gres.gres_cnt_avail, by_kind })
            })
            .collect()
    }
}
