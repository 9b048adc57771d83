//! CSV traces of GPU clusters, after Microsoft's Philly.
//!
//! Philly's own log is JSON; what circulates are tables made of it, and tables of other clusters in its
//! likeness (ITP, Helios, the inputs of Tiresias and its heirs). They agree on what they hold and on nothing
//! else, so columns go by name, in any order, and columns that nobody asks for may stand between them.

use super::lines::Lines;
use super::table::Table;
use super::{Trace, TraceError, TraceJob};
use std::io::BufRead;

/// When a job was submitted: seconds, or a date.
pub(super) const SUBMIT: &[&str] =
    &["submission_time", "submit_time", "submitted_time", "submission", "submit", "arrival_time"];
/// How long it ran, in seconds.
pub(super) const RUN: &[&str] = &["duration", "run_time", "runtime", "running_time", "elapsed"];
/// How many GPUs it held.
pub(super) const GPUS: &[&str] = &["num_gpu", "num_gpus", "gpu_num", "gpus", "gpu"];

/// The jobs as they stand in the file.
///
/// A job without GPU is skipped, and so is one whose duration is empty, because it never ran.
pub(super) fn read<R: BufRead>(lines: Lines<'_, R>) -> Result<Trace, TraceError> {
    let mut table = Table::commas(lines)?;
    let (submit, run, gpus) = (table.need(SUBMIT)?, table.need(RUN)?, table.need(GPUS)?);
    let mut trace = Trace::default();
    while let Some(row) = table.row()? {
        let devices = row.get(&gpus).count()?;
        let submit = row.get(&submit).moment()?;
        if devices == 0 {
            trace.skip("no GPU");
        } else if row.get(&run).is_absent() {
            trace.skip("never started");
        } else {
            let run = row.get(&run).seconds()?.max(1);
            trace.jobs.push(TraceJob { submit, run, limit: None, devices });
        }
    }
    Ok(trace)
}
