//! A job record read as a gang: how many nodes, what each must give, and which nodes could ever serve.
//!
//! What one node must give is stated twice. The *even share* deals tasks and per-job GPUs evenly over the nodes; it is
//! what a gang normally gets, and nodes that have it free are sure to do. The *floor* is what every node must give
//! however the job is dealt. A node is eligible if it could give the floor when empty.

use super::counters::PassThrough;
use super::state;
use super::sys;
use super::views::{Details, GresRequest, Job};
use crate::nodeset::NodeSet;
use crate::request::{JobId, Memory, Request, Share};

/// A multi-node request that Lockstep decides.
pub struct Gang {
    /// The job.
    pub job: JobId,
    /// How many nodes it gets: all of them or none.
    pub size: u32,
    /// The request by the even share.
    pub even: Request,
    /// The same request by the floor; none where both are the same.
    pub floor: Option<Request>,
    /// The nodes that could ever serve: configured so, whatever runs or is down now.
    pub eligible: NodeSet,
}

/// GRES that are parts of another one: several jobs share a device, and counts do not add up.
const SHARED_GRES: [&str; 2] = ["mps", "shard"];

/// Reads a job under test; an error says why it is not Lockstep's to decide.
///
/// `min`, `max` and `wanted` are the node counts that slurmctld passes; `cluster` is how many nodes its table has.
pub fn read(
    job: &Job,
    details: &Details,
    [min, max, wanted]: [u32; 3],
    cluster: usize,
) -> Result<Gang, PassThrough> {
    if job.id() == 0 {
        return Err(PassThrough::Reservation);
    }
    // With a node range the larger number is wanted, with --use-min-nodes the smaller.
    let most = wanted.min(max);
    if most < 2 {
        return Err(PassThrough::NotAGang);
    }
    if !state::has_fabric() {
        return Err(PassThrough::NoFabric);
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
    let required = details.required_nodes(cluster);

    state::gang(job.id(), configured, required, details.contiguous(), min..=most, |size| {
        let whole = details.whole_nodes() || partition.exclusive();
        Shares { even: share(details, &gres, size, whole), floor: floor(details, &gres, whole) }
    })
}

/// What each node must give, by both readings.
pub struct Shares {
    /// Tasks dealt evenly.
    pub even: Share,
    /// However they are dealt.
    pub floor: Share,
}

/// The share of one of `size` nodes when tasks and per-job GRES are dealt evenly.
fn share(details: &Details, gres: &[GresRequest], size: u32, whole: bool) -> Share {
    let tasks = match (details.tasks_per_node(), details.tasks()) {
        (0, 0 | sys::NO_VAL) => 1,
        (0, tasks) => tasks.div_ceil(size),
        (per_node, _) => per_node,
    };
    build(details, gres, whole, tasks, |gres| {
        if gres.per_node > 0 {
            gres.per_node
        } else if gres.per_task > 0 {
            gres.per_task * u64::from(tasks)
        } else if gres.per_socket > 0 {
            gres.per_socket
        } else {
            gres.per_job.div_ceil(size.into())
        }
    })
}

/// What every node must give, however tasks and per-job GRES are dealt.
fn floor(details: &Details, gres: &[GresRequest], whole: bool) -> Share {
    build(details, gres, whole, details.tasks_per_node().max(1), |gres| {
        [gres.per_node, gres.per_task, gres.per_socket].into_iter().find(|&n| n > 0).unwrap_or(1)
    })
}

fn build(
    details: &Details,
    gres: &[GresRequest],
    whole_node: bool,
    tasks: u32,
    count: impl Fn(&GresRequest) -> u64,
) -> Share {
    let for_tasks = if details.overcommits() { 1 } else { tasks.saturating_mul(details.cpus_per_task()) };
    let for_gres = gres.iter().map(|g| u64::from(g.cpus_each) * count(g)).max().unwrap_or(0);
    let cpus = for_tasks.max(details.cpus_per_node()).max(u32::try_from(for_gres).unwrap_or(u32::MAX)).max(1);

    // SAFETY: slurmctld has read its configuration.
    let counts_memory = u32::from(unsafe { sys::lockstep_select_parameters() }) & sys::CR_MEMORY != 0;
    let for_gres: u64 = gres.iter().map(|g| g.memory_each * count(g)).sum();
    let memory = match details.memory_mb() {
        _ if !counts_memory => Memory::Megabytes(0),
        _ if for_gres > 0 => Memory::Megabytes(for_gres),
        (0, _) => Memory::All,
        (each, true) => Memory::Megabytes(each.saturating_mul(cpus.into())),
        (each, false) => Memory::Megabytes(each),
    };
    Share {
        whole_node,
        cpus,
        memory,
        gres: gres.iter().map(|g| state::gres_share(&g.name, g.kind.as_deref(), count(g))).collect(),
    }
}
