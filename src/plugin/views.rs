//! Slurm's job, partition and node records, read safely.
//!
//! A view holds a pointer that slurmctld passed in or that one of its records leads to. It is made at the boundary,
//! where slurmctld holds its job and node write locks, and lives no longer than that call; so each field it reads is
//! valid and does not change underneath, except by cons_tres while it is asked, between two reads.

use super::bits::Bitmap;
use super::sys;
use crate::nodeset::{NodeId, NodeSet};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::ptr::NonNull;

/// Reads a field of the record behind a view.
macro_rules! read {
    ($view:ident.$($field:ident).+) => {
        // SAFETY: a view's pointer is valid for the call it lives in (see `borrow` of its type).
        unsafe { (*$view.0.as_ptr()).$($field).+ }
    };
}

macro_rules! view {
    ($(#[$doc:meta])* $name:ident of $record:ty) => {
        $(#[$doc])*
        pub struct $name<'a>(NonNull<$record>, PhantomData<&'a $record>);

        impl $name<'_> {
            /// Borrows a record; none for NULL.
            ///
            /// # Safety
            /// The pointer is NULL or a record of slurmctld that stays valid during the view's lifetime, under the
            /// locks that keep other threads off it.
            pub unsafe fn borrow(record: *mut $record) -> Option<Self> {
                NonNull::new(record).map(|record| Self(record, PhantomData))
            }
        }
    };
}

view! {
    /// A job.
    Job of sys::job_record_t
}
view! {
    /// What a job asks.
    Details of sys::job_details
}
view! {
    /// A partition.
    Partition of sys::part_record_t
}
view! {
    /// A node.
    Node of sys::node_record_t
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

    /// Whether the job asked for `--spread-job`.
    pub fn wants_spread(&self) -> bool {
        read!(self.bit_flags) & sys::lockstep_spread_job != 0
    }

    /// Sets when and with how many CPUs the job would start: the answer to a WILL_RUN.
    pub fn set_forecast(&self, start: i64, total_cpus: u32) {
        // SAFETY: a view's pointer is valid, and slurmctld's caller holds the job write lock.
        unsafe {
            (*self.0.as_ptr()).start_time = start;
            (*self.0.as_ptr()).total_cpus = total_cpus;
        }
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

impl Details<'_> {
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

impl Partition<'_> {
    /// Keeps only the partition's nodes.
    pub fn keep_nodes(&self, nodes: &mut NodeSet) -> bool {
        keep(nodes, read!(self.node_bitmap))
    }

    /// Whether several jobs may share a CPU (`OverSubscribe=YES` or `FORCE` with more than one job).
    pub fn oversubscribes(&self) -> bool {
        u32::from(read!(self.max_share)) & !sys::SHARED_FORCE > 1
    }

    /// Whether jobs always get whole nodes (`OverSubscribe=EXCLUSIVE`).
    pub fn exclusive(&self) -> bool {
        read!(self.max_share) == 0
    }
}

impl Node<'_> {
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

/// What a trial of cons_tres can leave behind in a job, to be put back before the next one.
///
/// Most of what cons_tres changes it sets anew at each call. These fields it does not: a trial must not hold the job,
/// move its start, mark its switches as bad, or lose its memory request.
pub struct TrialState {
    priority: u32,
    state_reason: u32,
    start_time: sys::time_t,
    best_switch: bool,
    memory: u64,
    contiguous: u16,
}

impl TrialState {
    /// Remembers a job as it is.
    pub fn save(job: &Job, details: &Details) -> Self {
        Self {
            priority: read!(job.priority),
            state_reason: read!(job.state_reason),
            start_time: read!(job.start_time),
            best_switch: read!(job.best_switch),
            memory: read!(details.pn_min_memory),
            contiguous: read!(details.contiguous),
        }
    }

    /// Puts the job back as it was.
    pub fn restore(&self, job: &Job, details: &Details) {
        // SAFETY: a view's pointer is valid, and slurmctld's caller holds the job write lock.
        let (job, details) = unsafe { (&mut *job.0.as_ptr(), &mut *details.0.as_ptr()) };
        job.priority = self.priority;
        job.state_reason = self.state_reason;
        job.start_time = self.start_time;
        job.best_switch = self.best_switch;
        details.pn_min_memory = self.memory;
        details.contiguous = self.contiguous;
    }

    /// Puts back only what [`Self::clear_contiguous`] took, and keeps what a winning trial wrote.
    pub fn restore_contiguous(&self, details: &Details) {
        // SAFETY: a view's pointer is valid, and slurmctld's caller holds the job write lock.
        unsafe { (*details.0.as_ptr()).contiguous = self.contiguous };
    }

    /// Lets cons_tres take the nodes as they are: to it, "contiguous" means consecutive indexes, to Lockstep
    /// consecutive positions in the fabric.
    pub fn clear_contiguous(details: &Details) {
        // SAFETY: a view's pointer is valid, and slurmctld's caller holds the job write lock.
        unsafe { (*details.0.as_ptr()).contiguous = 0 };
    }
}

/// The job with this number; none if slurmctld does not know it.
///
/// To be called only from within a call of slurmctld, under its job write lock.
pub fn find_job<'a>(id: u32) -> Option<Job<'a>> {
    // SAFETY: called under the job lock as said above; the record stays during the call.
    unsafe { Job::borrow(sys::lockstep_find_job(id)) }
}

/// All jobs that slurmctld knows. To be called as [`find_job`].
pub fn jobs<'a>() -> Vec<Job<'a>> {
    // SAFETY: called under the job lock as said above; the list holds job records only.
    unsafe { entries(sys::lockstep_jobs()).into_iter().filter_map(|job| Job::borrow(job)).collect() }
}

/// The node table: index by index, none where it has a hole. To be called as [`find_job`].
pub fn nodes<'a>() -> Vec<Option<Node<'a>>> {
    // SAFETY: called under the node lock as said above; every index is below the count.
    unsafe { (0..sys::lockstep_node_count()).map(|i| Node::borrow(sys::lockstep_node(i))).collect() }
}

/// Keeps only the nodes of one of Slurm's bitmaps; false, with the set untouched, where there is none.
fn keep(nodes: &mut NodeSet, bitmap: *mut sys::bitstr_t) -> bool {
    // SAFETY: a bitmap that a record of slurmctld leads to; nobody changes it during the call.
    let Some(bitmap) = (unsafe { Bitmap::borrow(bitmap) }) else { return false };
    let mut set = NodeSet::new(nodes.size());
    bitmap.copy_to(&mut set);
    nodes.intersect_with(&set);
    true
}

/// The entries of a Slurm list, in order. Collected first, since Slurm holds the list's lock while it walks.
pub fn entries<T>(list: sys::List) -> Vec<*mut T> {
    extern "C" fn push(entry: *mut c_void, all: *mut c_void) -> c_int {
        // SAFETY: `all` is the vector below, which has room for every entry, so nothing is allocated and nothing
        // can panic inside of Slurm's walk.
        let all = unsafe { &mut *all.cast::<Vec<*mut c_void>>() };
        if all.len() < all.capacity() {
            all.push(entry);
        }
        0
    }
    // SAFETY: the list is NULL or a Slurm list that a record of slurmctld leads to.
    let count = unsafe { sys::lockstep_list_count(list) };
    let mut all: Vec<*mut c_void> = Vec::with_capacity(usize::try_from(count).unwrap_or(0));
    // SAFETY: as above; `push` takes the vector it is given.
    unsafe { sys::lockstep_for_each(list, Some(push), (&raw mut all).cast()) };
    all.into_iter().map(<*mut c_void>::cast).collect()
}

/// A C array as a slice; empty for NULL.
///
/// # Safety
/// The pointer is NULL or leads to `len` entries that do not change while the slice is used.
unsafe fn array<'a, T>(first: *const T, len: usize) -> &'a [T] {
    if first.is_null() {
        return &[];
    }
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts(first, len) }
}

/// A C string of one of Slurm's records; none for NULL.
fn text(string: *const c_char) -> Option<String> {
    // SAFETY: every string in Slurm's records is terminated or NULL.
    (!string.is_null()).then(|| unsafe { CStr::from_ptr(string) }.to_string_lossy().into_owned())
}
