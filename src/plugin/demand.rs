//! A job record read as a demand: how many nodes, what each must give, and which nodes are configured to serve.
//!
//! What one node must give is read twice. The *even share* deals tasks and per-job GRES evenly over the nodes: that is
//! what a gang normally gets, and nodes that have it free are sure to do. The *floor* is what every node must give
//! however the job is dealt. A node is eligible if it could give the floor when empty.

use super::counters::PassThrough;
use super::gres_kinds::GresKinds;
use super::sys;
use super::views::{Details, GresRequest, Job};
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
    partition: String,
    qos: String,
    account: String,
    node: NodeDemand,
}

/// What decides the share of one node.
struct NodeDemand {
    whole_node: bool,
    tasks: u32,
    tasks_per_node: u32,
    cpus_per_task: u32,
    cpus_per_node: u32,
    memory_counts: bool,
    memory_mb: u64,
    memory_is_per_cpu: bool,
    gres: Vec<GresRequest>,
}

/// GRES that are parts of another one: several jobs share a device, and counts do not add up.
const SHARED_GRES: [&str; 2] = ["mps", "shard"];

impl Demand {
    /// Reads a job under test; an error says why it is not Lockstep's to decide.
    ///
    /// `min`, `max` and `wanted` are the node counts that slurmctld passes; `cluster` is how many nodes its table has.
    pub fn read(
        job: &Job,
        details: &Details,
        [min, max, wanted]: [u32; 3],
        cluster: usize,
    ) -> Result<Self, PassThrough> {
        if job.id() == 0 {
            return Err(PassThrough::Reservation);
        }
        // With a node range the larger number is wanted, with --use-min-nodes the smaller.
        let most = wanted.min(max);
        if most == 0 {
            return Err(PassThrough::NotAGang);
        }
        if job.wants_spread() {
            return Err(PassThrough::SpreadJob);
        }
        if details.expands_another() {
            return Err(PassThrough::Expansion);
        }
        let partition = job.partition().ok_or(PassThrough::Unreadable)?;
        if partition.oversubscribes() {
            return Err(PassThrough::Oversubscribed);
        }
        let gres = job.gres_requests().ok_or(PassThrough::Unreadable)?;
        // SAFETY: slurmctld has read its configuration.
        let parameters = u32::from(unsafe { sys::lockstep_select_parameters() });
        if most == 1 && (partition.prefers_least_loaded() || parameters & sys::CR_LLN != 0) {
            return Err(PassThrough::NotAGang);
        }
        if gres.iter().any(|gres| SHARED_GRES.contains(&gres.name.as_str())) {
            return Err(PassThrough::SharedGres);
        }

        let mut configured = NodeSet::full(cluster);
        if !partition.keep_nodes(&mut configured) {
            return Err(PassThrough::Unreadable);
        }
        if !details.keep_featured(&mut configured) {
            return Err(PassThrough::FeatureParts);
        }
        job.keep_reserved_nodes(&mut configured);
        details.remove_excluded(&mut configured);

        let (memory_mb, memory_is_per_cpu) = details.memory_mb();
        Ok(Self {
            job: JobId(job.id()),
            priority: job.priority(),
            configured,
            required: details.required_nodes(cluster),
            strictly_contiguous: details.contiguous(),
            least: min.min(most),
            most,
            limit: max,
            switches: job.switches(),
            wish: Wish::parse(&job.comment()),
            since: details.waiting_since(),
            het: job.het_job().map(|(leader, nodes)| (JobId(leader), nodes)),
            partition: partition.name(),
            qos: job.qos(),
            account: job.account(),
            node: NodeDemand {
                whole_node: details.whole_nodes() || partition.exclusive(),
                tasks: details.tasks(),
                tasks_per_node: details.tasks_per_node(),
                cpus_per_task: if details.overcommits() { 0 } else { details.cpus_per_task() },
                cpus_per_node: details.cpus_per_node(),
                memory_counts: parameters & sys::CR_MEMORY != 0,
                memory_mb,
                memory_is_per_cpu,
                gres,
            },
        })
    }

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
            (0 | sys::NO_VAL, _) | (_, 0) => 1,
            (tasks, on_each) => tasks.div_ceil(on_each),
        }
    }

    /// The even share and the floor of each of so many nodes.
    pub fn shares(&self, nodes: u32, kinds: &mut GresKinds) -> (Share, Share) {
        let node = &self.node;
        let tasks = match (node.tasks_per_node, node.tasks) {
            (0, 0 | sys::NO_VAL) => 1,
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
