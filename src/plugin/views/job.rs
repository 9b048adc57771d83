//! A job: who it is, what state it is in, what it asks of GRES, and what it holds.

use super::{Details, Partition, array, entries, keep, read, text, view};
use crate::nodeset::{NodeId, NodeSet};
use crate::plugin::bits::Bitmap;
use crate::plugin::sys;
use crate::request::Time;
use crate::site::demand::GresRequest;
use std::ffi::CStr;
use std::marker::PhantomData;
use std::ptr::NonNull;

view! {
    /// A job.
    Job of sys::job_record_t
}

/// What a job holds on one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The node.
    pub node: NodeId,
    /// Whether the job has the node for itself.
    pub whole_node: bool,
    /// CPUs (hardware threads) of the cores it holds.
    pub cpus: u32,
    /// Memory in MB.
    pub memory_mb: u64,
    /// GRES by name, type if the job asked for one, and count.
    pub gres: Vec<(String, Option<String>, u64)>,
}

impl<'a> Job<'a> {
    /// The job's number; 0 for the stand-in by which Slurm plans a reservation.
    pub fn id(&self) -> u32 {
        read!(self.job_id)
    }

    /// What the job asks; none for a record that was purged of it.
    pub fn details(&self) -> Option<Details<'a>> {
        let details = read!(self.details);
        // SAFETY: the job's own details, which live as long as the job.
        unsafe { Details::borrow(details) }
    }

    /// The partition under test.
    pub fn partition(&self) -> Option<Partition<'a>> {
        let partition = read!(self.part_ptr);
        // SAFETY: a partition of slurmctld, which outlives the call.
        unsafe { Partition::borrow(partition) }
    }

    /// Keeps only the nodes of the reservation that the job runs in, if it does and must stay inside.
    pub fn keep_reserved_nodes(&self, nodes: &mut NodeSet) {
        let reservation = read!(self.resv_ptr);
        if reservation.is_null() {
            return;
        }
        // SAFETY: a reservation of slurmctld, which outlives the call.
        let (flags, bitmap) = unsafe { ((*reservation).flags, (*reservation).node_bitmap) };
        if flags & sys::lockstep_flex_reservation == 0 {
            keep(nodes, bitmap);
        }
    }

    fn base_state(&self) -> sys::job_states {
        read!(self.job_state) & sys::JOB_STATE_BASE
    }

    /// Whether the job holds nodes: it runs or is suspended.
    pub fn holds_nodes(&self) -> bool {
        matches!(self.base_state(), sys::job_states_JOB_RUNNING | sys::job_states_JOB_SUSPENDED)
    }

    /// Whether the job is suspended with its cores given back (a job suspended by time slicing keeps them).
    pub fn gave_cores_back(&self) -> bool {
        self.base_state() == sys::job_states_JOB_SUSPENDED && read!(self.priority) == 0
    }

    /// When the job must have ended.
    pub fn end_time(&self) -> i64 {
        read!(self.end_time)
    }

    /// The account that it is charged to; empty if there is none.
    pub fn account(&self) -> String {
        text(read!(self.account)).unwrap_or_default()
    }

    /// Its QOS; empty where the cluster has no accounting.
    pub fn qos(&self) -> String {
        let qos = read!(self.qos_ptr);
        // SAFETY: slurmctld replaces QOS records only under its job write lock, which the caller holds.
        unsafe { qos.as_ref() }.and_then(|qos| text(qos.name)).unwrap_or_default()
    }

    /// The user's comment.
    pub fn comment(&self) -> String {
        text(read!(self.comment)).unwrap_or_default()
    }

    /// `--switches`: at most so many leaves, for so many seconds of waiting.
    pub fn switches(&self) -> Option<(u32, Time)> {
        let leaves = Some(read!(self.req_switch)).filter(|&leaves| leaves > 0)?;
        let seconds = read!(self.wait4switch);
        Some((leaves, if seconds >= sys::NO_VAL { Time::MAX } else { seconds.into() }))
    }

    /// The het job that it is a component of: the leader's number, and the nodes of all components together.
    pub fn het_job(&self) -> Option<(u32, u32)> {
        let id = Some(read!(self.het_job_id)).filter(|&id| id > 0)?;
        let leader = super::find_job(id)?;
        let components = super::jobs_of(read!(leader.het_job_list));
        let nodes = components.iter().filter_map(|component| Some(component.details()?.least_nodes().max(1)));
        Some((id, nodes.fold(0, u32::saturating_add)))
    }

    /// Whether the job asked for `--spread-job`.
    pub fn wants_spread(&self) -> bool {
        read!(self.bit_flags) & sys::lockstep_spread_job != 0
    }

    /// Its time limit in seconds; none if it has none of its own.
    pub fn time_limit(&self) -> Option<Time> {
        Some(read!(self.time_limit)).filter(|&minutes| minutes < sys::NO_VAL).map(|m| Time::from(m) * 60)
    }

    /// How many nodes it has.
    pub fn node_count(&self) -> usize {
        read!(self.node_cnt) as usize
    }

    /// Its priority.
    pub fn priority(&self) -> u32 {
        read!(self.priority)
    }

    /// How dear it is to preemption: the tier of its partition and the priority of its QOS, of which a site uses one.
    pub fn preemption_rank(&self) -> u64 {
        let qos = read!(self.qos_ptr);
        // SAFETY: as in `qos`.
        let qos = unsafe { qos.as_ref() }.map_or(0, |qos| u64::from(qos.priority));
        qos.saturating_add(self.partition().map_or(0, |partition| partition.tier().into()))
    }

    /// When the job started, or would start by the last forecast.
    pub fn start_time(&self) -> i64 {
        read!(self.start_time)
    }

    /// Sets when and with how many CPUs the job would start: the answer to a WILL_RUN.
    pub fn set_forecast(&self, start: Time, total_cpus: u32) {
        // SAFETY: a view's pointer is valid, and slurmctld's caller holds the job write lock.
        unsafe {
            (*self.0.as_ptr()).start_time = start;
            (*self.0.as_ptr()).total_cpus = total_cpus;
        }
    }

    /// Why the job waits, if that was said in words with [`Self::set_reason`].
    pub fn reason_in_words(&self) -> Option<String> {
        let in_words = read!(self.state_reason) == sys::lockstep_reason_in_words;
        in_words.then(|| text(read!(self.state_desc))).flatten()
    }

    /// Says in words why the job waits; none gives the reason back to slurmctld.
    pub fn set_reason(&self, words: Option<&CStr>) {
        let (reason, words) = match words {
            Some(words) => (sys::lockstep_reason_in_words, words.as_ptr()),
            None => (sys::lockstep_reason_resources, std::ptr::null()),
        };
        // SAFETY: a view's pointer is valid, slurmctld's caller holds the job write lock, and the words are copied.
        unsafe { sys::lockstep_set_reason(self.0.as_ptr(), reason, words) };
    }

    /// The system's comment on the job.
    pub fn system_comment(&self) -> Option<String> {
        text(read!(self.system_comment))
    }

    /// Replaces the system's comment on the job.
    pub fn set_system_comment(&self, words: &CStr) {
        // SAFETY: as in `set_reason`.
        unsafe { sys::lockstep_set_system_comment(self.0.as_ptr(), words.as_ptr()) };
    }

    /// The GRES that the job asks for; none if a record cannot be read.
    pub fn gres_requests(&self) -> Option<Vec<GresRequest>> {
        entries::<sys::gres_state_t>(read!(self.gres_list_req))
            .into_iter()
            .map(|state| {
                // SAFETY: an entry of a job's GRES list, whose data is a job's state.
                let (name, gres) = unsafe { (text((*state).gres_name), (*state).gres_data) };
                // SAFETY: as above; NULL gives none.
                let gres = unsafe { gres.cast::<sys::gres_job_state_t>().as_ref() }?;
                Some(GresRequest {
                    name: name?,
                    kind: text(gres.type_name),
                    per_node: gres.gres_per_node,
                    per_task: gres.gres_per_task,
                    per_socket: gres.gres_per_socket,
                    per_job: gres.gres_per_job,
                    cpus_each: gres.cpus_per_gres,
                    memory_each: gres.mem_per_gres,
                })
            })
            .collect()
    }

    /// What the job holds on each of its nodes; empty for a job without an allocation.
    pub fn held(&self) -> Vec<Held> {
        let resources = read!(self.job_resrcs);
        // SAFETY: the job's own allocation record; NULL gives none.
        let Some(resources) = (unsafe { resources.as_ref() }) else { return Vec::new() };
        // SAFETY: the bitmap of that record, which nobody changes during the call.
        let Some(bitmap) = (unsafe { Bitmap::borrow(resources.node_bitmap) }) else { return Vec::new() };
        let nodes = bitmap.to_set();
        let hosts = resources.nhosts as usize;
        // SAFETY: both arrays have an entry for each of the record's hosts.
        let (cpus, memory) =
            unsafe { (array(resources.cpus, hosts), array(resources.memory_allocated, hosts)) };
        let gres = self.gres_held();
        nodes
            .iter()
            .enumerate()
            .map(|(host, node)| Held {
                node,
                whole_node: u32::from(resources.whole_node) == sys::WHOLE_NODE_REQUIRED,
                cpus: cpus.get(host).copied().unwrap_or(0).into(),
                memory_mb: memory.get(host).copied().unwrap_or(0),
                gres: gres
                    .iter()
                    .filter_map(|(name, kind, counts)| {
                        let count = counts.get(host).copied().filter(|&count| count > 0)?;
                        Some((name.clone(), kind.clone(), count))
                    })
                    .collect(),
            })
            .collect()
    }

    /// Each GRES that the job holds, with its count on each of the job's hosts.
    fn gres_held(&self) -> Vec<(String, Option<String>, Vec<u64>)> {
        entries::<sys::gres_state_t>(read!(self.gres_list_alloc))
            .into_iter()
            .filter_map(|state| {
                // SAFETY: an entry of a job's GRES list, whose data is a job's state.
                let (name, gres) = unsafe { (text((*state).gres_name)?, (*state).gres_data) };
                // SAFETY: as above; NULL gives none.
                let gres = unsafe { gres.cast::<sys::gres_job_state_t>().as_ref() }?;
                // SAFETY: the array has an entry for each of the node_cnt hosts, or is NULL.
                let counts = unsafe { array(gres.gres_cnt_node_alloc, gres.node_cnt as usize) };
                Some((name, text(gres.type_name), counts.to_vec()))
            })
            .collect()
    }
}
