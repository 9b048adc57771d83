//! What must be put back in a job between two trials of cons_tres.

use super::{Details, Job, read};
use crate::plugin::sys;

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
