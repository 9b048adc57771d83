//! A check of the ledger: with `DebugFlags=SelectType`, whenever slurmctld counts what is allocated on its nodes, the ledger's
//! counts are held against it, and what differs is logged.
//!
//! The ledger is fed by events. If one of them were ever missed, decisions would rest on nodes that are not as free, or not
//! as full, as they seem; cons_tres would still make no wrong allocation, but gangs would wait for nothing.

use super::delegate;
use super::state::with;
use super::views::{self, Node};
use super::{counters, lifecycle, log, sys};
use crate::nodeset::NodeId;

/// How many nodes are named in one look.
const NAMED: usize = 5;

/// What is allocated on a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allocated {
    /// CPUs (hardware threads).
    pub cpus: u64,
    /// Memory in MB.
    pub memory_mb: u64,
    /// GPUs.
    pub gpus: u64,
}

/// Looks at all nodes, if slurmctld's debug flags ask for it.
pub fn look() {
    // SAFETY: slurmctld has read its configuration, and this is slurmctld.
    if !lifecycle::in_slurmctld() || !unsafe { sys::lockstep_debugs_select() } {
        return;
    }
    let Some(inner) = delegate::inner() else { return };
    let counted: Vec<Option<(Allocated, String)>> = views::nodes()
        .iter()
        .map(|node| {
            let node = node.as_ref()?;
            Some((node.allocated(inner)?, node.name()?))
        })
        .collect();
    let drifts: Vec<String> = with(|state| {
        state.settle_doubt();
        let gpu = state.site.kinds.number("gpu", None);
        let differ = |(index, counted): (usize, &Option<(Allocated, String)>)| {
            let (counted, name) = counted.as_ref()?;
            let ours = state.site.ledger.allocated(index as NodeId, gpu);
            let ours = Allocated { cpus: ours.0, memory_mb: ours.1, gpus: ours.2 };
            (ours != *counted).then(|| format!("{name} has {counted:?}, the ledger {ours:?}"))
        };
        counted.iter().enumerate().filter_map(differ).collect()
    });
    if drifts.is_empty() {
        return;
    }
    counters::count(counters::Outcome::Drift);
    let named = drifts.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join("; ");
    log::error(format_args!("the ledger has drifted on {} nodes: {named}", drifts.len()));
    lifecycle::doubt_ledger();
}

impl Node<'_> {
    /// What cons_tres counts as allocated; none for a node that it has not counted yet.
    fn allocated(&self, inner: &delegate::Inner) -> Option<Allocated> {
        let gpus = self.gres_allocated("gpu");
        let (mut cpus, mut memory_mb) = (0u16, 0u64);
        let info = self.select_info()?;
        let get = inner.nodeinfo_get;
        let (of, is) =
            (sys::select_nodedata_type_SELECT_NODEDATA_SUBCNT, sys::node_states_NODE_STATE_ALLOCATED);
        // SAFETY: cons_tres's own record of this node, and a number of the size that it writes for this question.
        unsafe { get(info, of, is, (&raw mut cpus).cast()) };
        let of = sys::select_nodedata_type_SELECT_NODEDATA_MEM_ALLOC;
        // SAFETY: as above.
        unsafe { get(info, of, is, (&raw mut memory_mb).cast()) };
        Some(Allocated { cpus: cpus.into(), memory_mb, gpus })
    }
}
