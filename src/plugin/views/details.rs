//! What a job asks of CPUs, memory and nodes.

use super::{entries, keep, read, view};
use crate::nodeset::NodeSet;
use crate::plugin::sys;
use crate::request::Time;
use std::marker::PhantomData;
use std::ptr::NonNull;

view! {
    /// What a job asks.
    Details of sys::job_details
}

impl Details<'_> {
    /// Nodes at least.
    pub fn least_nodes(&self) -> u32 {
        read!(self.min_nodes)
    }

    /// Tasks in all; 0 if not given.
    pub fn tasks(&self) -> u32 {
        read!(self.num_tasks)
    }

    /// Tasks on each node; 0 if not given.
    pub fn tasks_per_node(&self) -> u32 {
        read!(self.ntasks_per_node).into()
    }

    /// CPUs for each task, at least 1.
    pub fn cpus_per_task(&self) -> u32 {
        u32::from(read!(self.cpus_per_task)).max(1)
    }

    /// CPUs on each node at least.
    pub fn cpus_per_node(&self) -> u32 {
        read!(self.pn_min_cpus)
    }

    /// Whether tasks may share CPUs.
    pub fn overcommits(&self) -> bool {
        read!(self.overcommit) != 0
    }

    /// Memory in MB: for each CPU (true) or for each node (false). 0 asks for all of a node's.
    pub fn memory_mb(&self) -> (u64, bool) {
        let memory = read!(self.pn_min_memory);
        let per_cpu = sys::MEM_PER_CPU as u64;
        (memory & !per_cpu, memory & per_cpu != 0)
    }

    /// Whether the job takes whole nodes for itself.
    pub fn whole_nodes(&self) -> bool {
        read!(self.whole_node) == sys::WHOLE_NODE_REQUIRED as u8
    }

    /// Whether the job asked for `--contiguous`.
    pub fn contiguous(&self) -> bool {
        read!(self.contiguous) != 0
    }

    /// Since when the job could have started, but for the machine: its submission or its begin time.
    pub fn waiting_since(&self) -> Time {
        read!(self.submit_time).max(read!(self.begin_time))
    }

    /// Whether the job is there to grow another one.
    pub fn expands_another(&self) -> bool {
        read!(self.expanding_jobid) != 0
    }

    /// The nodes that the job must have (`-w`), if any.
    pub fn required_nodes(&self, size: usize) -> Option<NodeSet> {
        let mut nodes = NodeSet::full(size);
        keep(&mut nodes, read!(self.req_node_bitmap)).then_some(nodes).filter(|nodes| !nodes.is_empty())
    }

    /// Takes out the nodes that the job must not have (`-x`).
    pub fn remove_excluded(&self, nodes: &mut NodeSet) {
        let mut excluded = NodeSet::full(nodes.size());
        if keep(&mut excluded, read!(self.exc_node_bitmap)) {
            nodes.subtract(&excluded);
        }
    }

    /// Keeps only nodes whose configured features match, for a plain list of features joined by `&` or `|`.
    ///
    /// False, with the set in an undefined state, where the list is not plain: Slurm then asks for its parts one by
    /// one, each as if it were the whole job.
    pub fn keep_featured(&self, nodes: &mut NodeSet) -> bool {
        let features = entries::<sys::job_feature_t>(read!(self.feature_list));
        if features.is_empty() {
            return true;
        }
        let mut matching = NodeSet::new(nodes.size());
        let mut joined_by_and = false;
        for (i, feature) in features.iter().enumerate() {
            // SAFETY: an entry of the job's feature list.
            let feature = unsafe { &**feature };
            let op = u32::from(feature.op_code);
            if feature.count > 0
                || feature.paren > 0
                || op == sys::FEATURE_OP_XOR
                || op == sys::FEATURE_OP_XAND
            {
                return false;
            }
            let mut having = NodeSet::full(nodes.size());
            if !keep(&mut having, feature.node_bitmap_avail) {
                return false;
            }
            match (i, joined_by_and) {
                (0, _) => matching = having,
                (_, true) => matching.intersect_with(&having),
                (_, false) => matching.union_with(&having),
            }
            joined_by_and = op == sys::FEATURE_OP_AND;
        }
        nodes.intersect_with(&matching);
        true
    }
}
