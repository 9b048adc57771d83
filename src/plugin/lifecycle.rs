//! What slurmctld tells about its own life: start, new nodes and topology, jobs that start, change and end.
//!
//! Every event goes to the ledger at once, so that a decision never walks all jobs. At a reconfigure, and after an
//! internal error, the ledger is rebuilt from slurmctld's own records, which are the truth.

use super::views::Job;
use super::{counters, delegate, log, state, sys};
use crate::request::JobId;
use once_cell::sync::OnceCell;
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// `init()` in slurmctld, in the form that the file's name tells.
pub fn begin(form: &str) {
    let slurm = delegate::version_text(sys::SLURM_VERSION_NUMBER);
    let version = env!("CARGO_PKG_VERSION");
    log::info(format_args!("{version} ({form}) over select/cons_tres of Slurm {slurm}"));
    if let Some(entry) = panic_switch() {
        log::error(format_args!("LOCKSTEP_TEST_PANIC={entry} is set: this slurmctld is a test"));
    }
    if let Some(file) = floor_switch() {
        log::error(format_args!("LOCKSTEP_TEST_FLOOR={} is set: this slurmctld is a test", file.display()));
    }
}

/// `fini()`, in slurmctld or a client.
pub fn end() {
    if state::drop_all() {
        log::info(counters::summary());
    }
}

/// Slurm has read its configuration, nodes and jobs: read the topology over them, and who holds what.
///
/// This comes at the end of every start and reconfigure, and after partitions or nodes were added or deleted.
pub fn reconfigure() {
    state::read_cluster(&conf_dir());
    log::info(counters::summary());
}

/// The ledger may be wrong: it is rebuilt before the next decision.
pub fn doubt_ledger() {
    state::doubt_ledger();
}

/// A job runs, or was recovered with its allocation.
pub fn job_started(job: &Job) {
    if job.holds_nodes() {
        state::hold(job);
        state::audit(job);
    }
}

/// A job's allocation grew, shrank or moved.
pub fn job_changed(job: &Job) {
    state::hold(job);
}

/// A job's allocation ended.
pub fn job_ended(job: &Job) {
    state::release(JobId(job.id()));
}

/// A job gave its cores back and keeps its memory and GRES.
pub fn job_suspended(job: &Job) {
    state::set_suspended(JobId(job.id()), true);
}

/// A suspended job took its cores again.
pub fn job_resumed(job: &Job) {
    state::set_suspended(JobId(job.id()), false);
}

/// Whether this process is slurmctld.
pub fn in_slurmctld() -> bool {
    // SAFETY: asks Slurm which daemon this is; false where Slurm does not say.
    unsafe { sys::lockstep_in_slurmctld() }
}

/// Unix time in seconds.
pub fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64)
}

/// Panics if the test-only switch `LOCKSTEP_TEST_PANIC` names this entry point.
pub fn test_panic(entry: &str) {
    assert!(panic_switch() != Some(entry), "LOCKSTEP_TEST_PANIC={entry}");
}

fn panic_switch() -> Option<&'static str> {
    static SWITCH: OnceCell<Option<String>> = OnceCell::new();
    SWITCH.get_or_init(|| std::env::var("LOCKSTEP_TEST_PANIC").ok()).as_deref()
}

/// Whether the file that the test-only switch `LOCKSTEP_TEST_FLOOR` names is there: then gangs get answers that took no
/// thought, and what slurmctld still takes is its own.
pub fn test_floor() -> bool {
    floor_switch().is_some_and(Path::exists)
}

fn floor_switch() -> Option<&'static Path> {
    static SWITCH: OnceCell<Option<PathBuf>> = OnceCell::new();
    SWITCH.get_or_init(|| std::env::var_os("LOCKSTEP_TEST_FLOOR").map(PathBuf::from)).as_deref()
}

/// The folder of slurm.conf, where Slurm and Lockstep look for all other files.
fn conf_dir() -> PathBuf {
    // SAFETY: slurmctld has read its configuration, whose path is a terminated string.
    let conf = unsafe { CStr::from_ptr(sys::lockstep_conf_path()) };
    Path::new(OsStr::from_bytes(conf.to_bytes())).parent().map(Path::to_owned).unwrap_or_default()
}
