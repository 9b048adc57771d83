//! Alibaba's pod lists `openb_pod_list_*.csv` (cluster-trace-gpu-v2023): one pod a line, times in seconds.
//!
//! A pod ran from `scheduled_time` to `deletion_time`. One that the traced cluster never placed has no
//! `scheduled_time`; it counts from `creation_time`, the time that it was wanted for, because another cluster
//! may have room for it. `num_gpu` are whole GPUs; a pod that shares one (`gpu_milli` below 1000) has 1 there
//! and counts as one GPU, since Lockstep places whole ones.

use super::lines::Lines;
use super::table::Table;
use super::{Trace, TraceError, TraceJob};
use std::io::BufRead;

/// When a pod was created.
pub(super) const CREATION: &[&str] = &["creation_time"];
/// How many GPUs it asks for.
pub(super) const GPUS: &[&str] = &["num_gpu"];

/// The pods with GPUs as they stand in the file. Those without are skipped, and so are those that still ran.
pub(super) fn read<R: BufRead>(lines: Lines<'_, R>) -> Result<Trace, TraceError> {
    let mut table = Table::commas(lines)?;
    let (creation, gpus) = (table.need(CREATION)?, table.need(GPUS)?);
    let (scheduled, deletion) = (table.need(&["scheduled_time"])?, table.need(&["deletion_time"])?);
    let mut trace = Trace::default();
    while let Some(row) = table.row()? {
        let devices = row.get(&gpus).count()?;
        let submit = row.get(&creation).moment()?;
        let (scheduled, deletion) = (row.get(&scheduled), row.get(&deletion));
        if devices == 0 {
            trace.skip("no GPU");
        } else if deletion.is_absent() {
            trace.skip("still running");
        } else {
            let start = if scheduled.is_absent() { submit } else { scheduled.moment()? };
            let run = deletion.moment()? - start;
            if run < 0 {
                let what = format!("`{}` is before the pod's start", deletion.text);
                return Err(deletion.damaged(what, "a pod ends after it starts: mend the line"));
            }
            trace.jobs.push(TraceJob { submit, run: run.max(1), limit: None, devices });
        }
    }
    Ok(trace)
}
