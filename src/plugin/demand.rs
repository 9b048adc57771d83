//! A job record under test, read as a [`Demand`].

use super::sys;
use super::views::{Details, Job};
use crate::nodeset::NodeSet;
use crate::policy::wish::Wish;
use crate::request::JobId;
use crate::site::PassThrough;
use crate::site::demand::{Demand, NodeDemand};

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
) -> Result<Demand, PassThrough> {
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
    Ok(Demand {
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
            tasks: match details.tasks() {
                sys::NO_VAL => 0,
                tasks => tasks,
            },
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
