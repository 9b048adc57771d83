//! What a job asks, read from wherever: how many nodes, what each must give, and which nodes are configured to serve.
//!
//! What one node must give is read twice. The *even share* deals tasks and per-job GRES evenly over the nodes: that is
//! what a gang normally gets, and nodes that have it free are sure to do. The *floor* is what every node must give
//! however the job is dealt. A node is eligible if it could give the floor when empty.

use super::gres_kinds::GresKinds;
use crate::nodeset::NodeSet;
use crate::policy::Subject;
use crate::policy::wish::Wish;
use crate::request::{JobId, Memory, Share, Time};

/// A request that Lockstep decides: a gang's, or that of a job of one node.
pub struct Demand {
    /// The job.
    pub job: JobId,
    /// Its priority.
    pub priority: u32,
    /// The nodes that its partition, features, reservation and exclusions leave it, whatever runs or is down now.
    pub configured: NodeSet,
    /// The nodes that it must have (`-w`).
    pub required: Option<NodeSet>,
    /// `--contiguous`.
    pub strictly_contiguous: bool,
    /// The fewest nodes that would do.
    pub least: u32,
    /// The nodes that it wants: all of them or none, unless no domain could ever hold so many.
    pub most: u32,
    /// The most that it may get, where fewer are wanted than its tasks need.
    pub limit: u32,
    /// `--switches`: at most so many leaves, for so many seconds of waiting.
    pub switches: Option<(u32, Time)>,
    /// What its comment wishes for, or what is wrong with the wish.
    pub wish: Result<Wish, String>,
    /// Since when it waits.
    pub since: Time,
    /// The het job that it is a component of, and the nodes of all components together.
    pub het: Option<(JobId, u32)>,
    /// The partition under test.
    pub partition: String,
    /// Its QOS; empty where the cluster has no accounting.
    pub qos: String,
    /// Its account; empty where it has none.
    pub account: String,
    /// What decides the share of one node.
    pub node: NodeDemand,
}

/// What decides the share of one node.
#[derive(Clone, Debug, Default)]
pub struct NodeDemand {
    /// Whether nobody else may be there.
    pub whole_node: bool,
    /// Tasks in all; 0 if not given.
    pub tasks: u32,
    /// 0 if not given.
    pub tasks_per_node: u32,
    /// 0 where CPUs are overcommitted.
    pub cpus_per_task: u32,
    /// 0 if not given.
    pub cpus_per_node: u32,
    /// Whether the site allocates memory at all.
    pub memory_counts: bool,
    /// In MB, for a CPU or for a node; 0 means all of a node's.
    pub memory_mb: u64,
    /// Whether the memory is meant for each CPU.
    pub memory_is_per_cpu: bool,
    /// The GRES.
    pub gres: Vec<GresRequest>,
}

/// The job asked for GRES of one name and type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GresRequest {
    /// Such as `gpu`.
    pub name: String,
    /// Such as `a100`; none if any type will do.
    pub kind: Option<String>,
    /// `--gres`, `--gpus-per-node`; 0 if not given.
    pub per_node: u64,
    /// `--gpus-per-task`; 0 if not given.
    pub per_task: u64,
    /// `--gpus-per-socket`; 0 if not given.
    pub per_socket: u64,
    /// `--gpus`; 0 if not given.
    pub per_job: u64,
    /// `--cpus-per-gpu`; 0 if not given.
    pub cpus_each: u16,
    /// `--mem-per-gpu`, in MB; 0 if not given.
    pub memory_each: u64,
}

impl Demand {
    /// Whether one node is all that it wants. It may still get more, where its tasks do not fit on one.
    pub fn is_single(&self) -> bool {
        self.most == 1
    }

    /// What the site's rules look at.
    pub fn subject(&self) -> Subject<'_> {
        Subject { partition: &self.partition, qos: &self.qos, account: &self.account, nodes: self.most }
    }

    /// Whether no more than one node will do.
    pub fn is_one_node_only(&self) -> bool {
        self.limit == 1 || self.node.tasks == 1
    }

    /// Whether it asks for GPUs and names no type.
    pub fn takes_any_gpu(&self) -> bool {
        self.node.gres.iter().any(|gres| gres.name == "gpu" && gres.kind.is_none())
    }

    /// The fewest nodes that the tasks on each allow, where both numbers are given.
    pub fn fewest_by_tasks(&self) -> u32 {
        match (self.node.tasks, self.node.tasks_per_node) {
            (0, _) | (_, 0) => 1,
            (tasks, on_each) => tasks.div_ceil(on_each),
        }
    }

    /// The even share and the floor of each of so many nodes.
    pub fn shares(&self, nodes: u32, kinds: &mut GresKinds) -> (Share, Share) {
        let node = &self.node;
        let tasks = match (node.tasks_per_node, node.tasks) {
            (0, 0) => 1,
            (0, tasks) => tasks.div_ceil(nodes.max(1)),
            (per_node, _) => per_node,
        };
        let even = node.share(kinds, tasks, |gres| gres.per_job.div_ceil(nodes.max(1).into()));
        let floor = node.share(kinds, node.tasks_per_node.max(1), |_| 1);
        (even, floor)
    }
}

impl NodeDemand {
    /// What a node with so many of the job's tasks must give, with GRES that are asked for the whole job dealt by
    /// `part`.
    fn share(&self, kinds: &mut GresKinds, tasks: u32, part: impl Fn(&GresRequest) -> u64) -> Share {
        let count = |gres: &GresRequest| match gres {
            GresRequest { per_node: n @ 1.., .. } => *n,
            GresRequest { per_task: n @ 1.., .. } => n.saturating_mul(tasks.into()),
            GresRequest { per_socket: n @ 1.., .. } => *n,
            _ => part(gres),
        };
        let for_gres = |each: fn(&GresRequest) -> u64| {
            self.gres.iter().map(|gres| each(gres).saturating_mul(count(gres))).fold(0, u64::saturating_add)
        };
        let cpus_for_gres = u32::try_from(for_gres(|gres| gres.cpus_each.into())).unwrap_or(u32::MAX);
        let cpus = tasks.saturating_mul(self.cpus_per_task).max(self.cpus_per_node).max(cpus_for_gres).max(1);
        let memory = match for_gres(|gres| gres.memory_each) {
            _ if !self.memory_counts => Memory::Megabytes(0),
            0 if self.memory_mb == 0 => Memory::All,
            0 if self.memory_is_per_cpu => Memory::Megabytes(self.memory_mb.saturating_mul(cpus.into())),
            0 => Memory::Megabytes(self.memory_mb),
            for_gres => Memory::Megabytes(for_gres),
        };
        let gres = kinds.count(self.gres.iter().map(|g| (g.name.as_str(), g.kind.as_deref(), count(g))));
        Share { whole_node: self.whole_node, cpus, memory, gres }
    }
}
