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
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// `init()` in slurmctld, in the form that the file's name tells.
pub fn begin(form: &str) {
    let slurm = delegate::version_text(sys::SLURM_VERSION_NUMBER);
    let version = env!("CARGO_PKG_VERSION");
    log::info(format_args!("{version} ({form}) over select/cons_tres of Slurm {slurm}"));
    say_switches();
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

/// Switches for tests, read from slurmctld's environment once. Each that is set is an error line at the start.
struct Switches {
    /// `LOCKSTEP_TEST_PANIC`: the entry point that panics.
    panic: Option<String>,
    /// `LOCKSTEP_TEST_SLOW`: milliseconds that each decision takes longer.
    slow: Option<u64>,
    /// `LOCKSTEP_TEST_FLOOR`: while this file is there, gangs get answers that took no thought, and what slurmctld still
    /// takes is its own.
    floor: Option<PathBuf>,
}

fn switches() -> &'static Switches {
    static SWITCHES: OnceCell<Switches> = OnceCell::new();
    SWITCHES.get_or_init(|| Switches {
        panic: std::env::var("LOCKSTEP_TEST_PANIC").ok(),
        slow: std::env::var("LOCKSTEP_TEST_SLOW").ok().and_then(|millis| millis.parse().ok()),
        floor: std::env::var_os("LOCKSTEP_TEST_FLOOR").map(PathBuf::from),
    })
}

fn say_switches() {
    let Switches { panic, slow, floor } = switches();
    let floor = floor.as_ref().map(|file| file.display().to_string());
    let slow = slow.map(|millis| millis.to_string());
    for (name, value) in [("PANIC", panic), ("SLOW", &slow), ("FLOOR", &floor)] {
        if let Some(value) = value {
            log::error(format_args!("LOCKSTEP_TEST_{name}={value} is set: this slurmctld is a test"));
        }
    }
}

/// Panics, or takes its time, if a test wants this entry point to.
pub fn test_entry(entry: &str) {
    let switches = switches();
    assert!(switches.panic.as_deref() != Some(entry), "LOCKSTEP_TEST_PANIC={entry}");
    if let Some(millis) = switches.slow {
        std::thread::sleep(Duration::from_millis(millis));
    }
}

/// Whether gangs get answers that took no thought.
pub fn test_floor() -> bool {
    switches().floor.as_deref().is_some_and(Path::exists)
}

/// The folder of slurm.conf, where Slurm and Lockstep look for all other files.
fn conf_dir() -> PathBuf {
    // SAFETY: slurmctld has read its configuration, whose path is a terminated string.
    let conf = unsafe { CStr::from_ptr(sys::lockstep_conf_path()) };
    Path::new(OsStr::from_bytes(conf.to_bytes())).parent().map(Path::to_owned).unwrap_or_default()
}
