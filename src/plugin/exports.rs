//! The functions that slurmctld calls and Lockstep answers. Every other one is a trampoline in [`super::delegate`].
//!
//! In clients (squeue, srun, slurmd and others load select plugins up to 24.11) only `init` and `fini` and trampolines
//! run; there the plugin is cons_tres under another name.

use super::delegate::{self, Inner};
use super::guard::{self, Entry};
use super::job_test::{Arguments, Call};
use super::views::Job;
use super::{drift, figures, lifecycle, log, sys, views};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering};

/// The name by which Lockstep recognises a copy of itself.
pub const PLUGIN_NAME: &CStr = c"Lockstep: gangs on neighbouring nodes, over select/cons_tres";

/// The file name of the drop-in form, and the id that Slurm knows for it.
const DROP_IN: &str = "select_cons_tres.so";
const DROP_IN_ID: u32 = 109;
/// The id of the named form. Up to 24.11 every loaded select plugin needs its own; later there is only cons_tres's.
#[cfg(not(slurm = "one_plugin_id"))]
const NAMED_ID: u32 = 110;
#[cfg(slurm = "one_plugin_id")]
const NAMED_ID: u32 = DROP_IN_ID;

/// Slurm's `const char plugin_name[]`.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static plugin_name: [u8; PLUGIN_NAME.count_bytes() + 1] = terminated(PLUGIN_NAME);
/// Slurm's `const char plugin_type[]`.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static plugin_type: [u8; PLUGIN_TYPE.count_bytes() + 1] = terminated(PLUGIN_TYPE);
/// The Slurm version that the plugin was built for; Slurm loads no other.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static plugin_version: u32 = sys::SLURM_VERSION_NUMBER;
/// Read by Slurm after `init()`, which sets it by our file name.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static plugin_id: AtomicU32 = AtomicU32::new(NAMED_ID);

const PLUGIN_TYPE: &CStr = c"select/cons_tres_lockstep";

const fn terminated<const N: usize>(text: &CStr) -> [u8; N] {
    let (bytes, mut array, mut i) = (text.to_bytes(), [0; N], 0);
    while i < bytes.len() {
        array[i] = bytes[i];
        i += 1;
    }
    array
}

/// Loads the plugin: opens cons_tres and, in slurmctld, makes ready to decide.
#[unsafe(no_mangle)]
pub extern "C" fn init() -> c_int {
    static ENTRY: Entry = Entry::new("init");
    guard::call(&ENTRY, sys::SLURM_ERROR, start, || sys::SLURM_ERROR)
}

fn start() -> c_int {
    let drop_in =
        delegate::own_path().is_some_and(|path| path.file_name().is_some_and(|name| name == DROP_IN));
    plugin_id.store(if drop_in { DROP_IN_ID } else { NAMED_ID }, Ordering::Release);
    let in_slurmctld = lifecycle::in_slurmctld();
    if in_slurmctld {
        guard::install_panic_hook();
        // SAFETY: looks addresses up, and returns NULL or a string literal.
        let missing: *const c_char = unsafe { sys::lockstep_missing_symbol() };
        if !missing.is_null() {
            // SAFETY: not NULL, so a string literal.
            let missing = unsafe { CStr::from_ptr(missing) }.to_string_lossy();
            log::error(format_args!(
                "this slurmctld has no {missing}; install the Lockstep built for its version"
            ));
            return sys::SLURM_ERROR;
        }
    }
    if let Err(message) = delegate::open() {
        log::error(message);
        return sys::SLURM_ERROR;
    }
    if in_slurmctld {
        lifecycle::begin(if drop_in { "drop-in" } else { "named" });
    }
    sys::SLURM_SUCCESS as c_int
}

/// Unloads the plugin.
#[unsafe(no_mangle)]
pub extern "C" fn fini() {
    static ENTRY: Entry = Entry::new("fini");
    guard::call(&ENTRY, (), lifecycle::end, || ());
    guard::call(&ENTRY, (), delegate::close, || ());
}

/// Asks cons_tres, then lets `observe` take note of a success behind the guard. What cons_tres said is returned in
/// any case.
fn after_inner(entry: &Entry, ask: impl FnOnce(&Inner) -> c_int, observe: impl FnOnce()) -> c_int {
    let Some(inner) = delegate::inner() else { return sys::SLURM_ERROR };
    let code = ask(inner);
    if code == sys::SLURM_SUCCESS as c_int {
        guard::call(entry, (), observe, lifecycle::doubt_ledger);
    }
    code
}

/// Slurm: all is read: at start, at `scontrol reconfigure`, and after a change of partitions or nodes.
#[unsafe(no_mangle)]
pub extern "C" fn select_p_reconfigure() -> c_int {
    static ENTRY: Entry = Entry::new("reconfigure");
    // SAFETY: the same call, passed on.
    after_inner(&ENTRY, |inner| unsafe { (inner.reconfigure)() }, lifecycle::reconfigure)
}

/// Slurm: what are you, and what is there to show of you? The latter is shown by `scontrol show config`.
///
/// # Safety
/// As slurmctld calls it: `data` points to what is asked for, a list for `SELECT_CONFIG_INFO`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn select_p_get_info_from_plugin(
    info: sys::select_plugindata_info,
    job: *mut sys::job_record_t,
    data: *mut c_void,
) -> c_int {
    static ENTRY: Entry = Entry::new("get_info");
    // SAFETY: the same call, passed on.
    after_inner(
        &ENTRY,
        |inner| unsafe { (inner.information)(info, job, data) },
        || {
            if info == sys::select_plugindata_info_SELECT_CONFIG_INFO && lifecycle::in_slurmctld() {
                let list = views::own_pairs(&figures::pairs());
                // SAFETY: cons_tres has just set this list to NULL, and slurmctld frees what it finds there.
                unsafe { *data.cast::<sys::List>() = list };
            }
        },
    )
}

/// Slurm: count anew what is allocated on each node.
#[unsafe(no_mangle)]
pub extern "C" fn select_p_select_nodeinfo_set_all() -> c_int {
    static ENTRY: Entry = Entry::new("nodeinfo_set_all");
    // SAFETY: the same call, passed on.
    after_inner(&ENTRY, |inner| unsafe { (inner.nodeinfo_set_all)() }, drift::look)
}

/// Slurm: can this job run, when, and on which nodes? See [`super::job_test`].
///
/// # Safety
/// As slurmctld calls it: the job and bitmap are its own, under its job and node write locks; the lists are NULL or
/// Slurm lists; the core bitmap is whatever this release passes there.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)]
pub unsafe extern "C" fn select_p_job_test(
    job: *mut sys::job_record_t,
    bitmap: *mut sys::bitstr_t,
    min_nodes: u32,
    max_nodes: u32,
    req_nodes: u32,
    mode: u16,
    preemptee_candidates: sys::List,
    preemptee_job_list: *mut sys::List,
    exc_cores: *mut sys::bitstr_t,
) -> c_int {
    let Some(inner) = delegate::inner() else { return sys::SLURM_ERROR };
    let arguments = Arguments {
        job,
        bitmap,
        nodes: [min_nodes, max_nodes, req_nodes],
        mode,
        preemptees: preemptee_candidates,
        chosen_preemptees: preemptee_job_list,
        exc_cores,
    };
    static ENTRY: Entry = Entry::new("job_test");
    guard::call(
        &ENTRY,
        sys::SLURM_ERROR,
        // SAFETY: as the caller promises.
        || unsafe { Call::new(inner, arguments) }.answer(),
        // SAFETY: as the caller promises; nothing was changed yet.
        || unsafe { arguments.pass_on(inner) },
    )
}

/// Slurm: this job runs, or is recovered or resumed; enter its allocation.
///
/// # Safety
/// As slurmctld calls it: a job of its own, under its job write lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn select_p_select_nodeinfo_set(job: *mut sys::job_record_t) -> c_int {
    static ENTRY: Entry = Entry::new("nodeinfo_set");
    // SAFETY: the same call, passed on.
    after_inner(
        &ENTRY,
        |inner| unsafe { (inner.nodeinfo_set)(job) },
        || {
            // SAFETY: as the caller promises.
            if let Some(job) = unsafe { Job::borrow(job) } {
                lifecycle::job_started(&job);
            }
        },
    )
}

/// Slurm: this job's allocation ends.
///
/// # Safety
/// As slurmctld calls it: a job of its own, under its job write lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn select_p_job_fini(job: *mut sys::job_record_t) -> c_int {
    static ENTRY: Entry = Entry::new("job_fini");
    // SAFETY: the same call, passed on.
    after_inner(
        &ENTRY,
        |inner| unsafe { (inner.job_fini)(job) },
        || {
            // SAFETY: as the caller promises.
            if let Some(job) = unsafe { Job::borrow(job) } {
                lifecycle::job_ended(&job);
            }
        },
    )
}

/// Slurm: the first job's allocation goes into the second's.
///
/// # Safety
/// As slurmctld calls it: two jobs of its own, under its job write lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn select_p_job_expand(
    from: *mut sys::job_record_t,
    to: *mut sys::job_record_t,
) -> c_int {
    static ENTRY: Entry = Entry::new("job_expand");
    // SAFETY: the same call, passed on.
    after_inner(
        &ENTRY,
        |inner| unsafe { (inner.job_expand)(from, to) },
        || {
            // SAFETY: as the caller promises.
            for job in unsafe { [Job::borrow(from), Job::borrow(to)] }.into_iter().flatten() {
                lifecycle::job_changed(&job);
            }
        },
    )
}

/// Slurm: a node leaves this job's allocation.
///
/// # Safety
/// As slurmctld calls it: a job and a node of its own, under its job and node write locks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn select_p_job_resized(
    job: *mut sys::job_record_t,
    node: *mut sys::node_record_t,
) -> c_int {
    static ENTRY: Entry = Entry::new("job_resized");
    // SAFETY: the same call, passed on.
    after_inner(
        &ENTRY,
        |inner| unsafe { (inner.job_resized)(job, node) },
        || {
            // SAFETY: as the caller promises.
            if let Some(job) = unsafe { Job::borrow(job) } {
                lifecycle::job_changed(&job);
            }
        },
    )
}

/// Slurm: this job is suspended; `for_long` says that its cores are given back.
///
/// # Safety
/// As slurmctld calls it: a job of its own, under its job write lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn select_p_job_suspend(job: *mut sys::job_record_t, for_long: bool) -> c_int {
    static ENTRY: Entry = Entry::new("job_suspend");
    // SAFETY: the same call, passed on.
    after_inner(
        &ENTRY,
        |inner| unsafe { (inner.job_suspend)(job, for_long) },
        || {
            // SAFETY: as the caller promises.
            if let (Some(job), true) = (unsafe { Job::borrow(job) }, for_long) {
                lifecycle::job_suspended(&job);
            }
        },
    )
}

/// Slurm: this job is resumed; `for_long` says that its cores had been given back.
///
/// # Safety
/// As slurmctld calls it: a job of its own, under its job write lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn select_p_job_resume(job: *mut sys::job_record_t, for_long: bool) -> c_int {
    static ENTRY: Entry = Entry::new("job_resume");
    // SAFETY: the same call, passed on.
    after_inner(
        &ENTRY,
        |inner| unsafe { (inner.job_resume)(job, for_long) },
        || {
            // SAFETY: as the caller promises.
            if let (Some(job), true) = (unsafe { Job::borrow(job) }, for_long) {
                lifecycle::job_resumed(&job);
            }
        },
    )
}
