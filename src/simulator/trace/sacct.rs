//! What Slurm's own accounting prints, so that a site can play its last month:
//!
//! ```text
//! sacct -aXP -S 2024-05-01 -E 2024-06-01 \
//!     -o JobID,State,Submit,Start,End,Elapsed,Timelimit,AllocTRES,ReqTRES,AllocCPUS,NNodes
//! ```
//!
//! `JobID`, `Submit` and `Start` must be there, `ElapsedRaw`, `Elapsed` or `End`, and one column that tells
//! devices. `Elapsed` goes before `End`: it leaves out suspensions and changes of the clocks. Steps
//! (`123.batch`, `123.0`) are no jobs and are passed over uncounted; each task of an array and each part of a
//! heterogeneous job is a job of its own.
//!
//! Devices are GPUs: `gres/gpu=8` of the allocation, else of the request, else the sum of the typed ones
//! (`gres/gpu:a100=8`). Where not one job of the file has GPUs, devices are CPUs, or nodes where no column
//! tells CPUs. The two are never mixed: a job with 64 CPUs next to GPU jobs is not one of 64 GPUs, but is
//! skipped.

use super::field::Field;
use super::lines::Lines;
use super::table::{Column, Row, Table};
use super::{Trace, TraceError, TraceJob};
use crate::request::Time;
use std::io::BufRead;

/// The job's number.
pub(super) const JOB: &[&str] = &["JobID", "JobIDRaw"];
/// When it was submitted.
pub(super) const SUBMIT: &[&str] = &["Submit"];
/// What `Timelimit` says when the user gave none.
const NO_LIMIT: [&str; 3] = ["UNLIMITED", "Partition_Limit", "INVALID"];
/// What tells how long a job ran; `End` does so together with `Start`.
const RUN: &[&str] = &["Elapsed", "ElapsedRaw", "End"];
/// What tells devices.
const DEVICES: &[&str] =
    &["AllocTRES", "ReqTRES", "AllocCPUS", "NCPUS", "ReqCPUS", "NNodes", "AllocNodes", "ReqNodes"];

/// The columns that the header has.
struct Columns {
    job: Column,
    submit: Column,
    start: Column,
    state: Option<Column>,
    end: Option<Column>,
    elapsed: Option<Column>,
    elapsed_raw: Option<Column>,
    limit: Option<Column>,
    allocated: Option<Column>,
    requested: Option<Column>,
    cpus: Option<Column>,
    nodes: Option<Column>,
}

/// A job of which it is not yet known whether the file counts in GPUs.
struct Candidate {
    submit: Time,
    run: Time,
    limit: Option<Time>,
    gpus: u32,
    others: u32,
}

/// The jobs as they stand in the file.
pub(super) fn read<R: BufRead>(lines: Lines<'_, R>) -> Result<Trace, TraceError> {
    let mut table = Table::pipes(lines)?;
    let columns = Columns::new(&table)?;
    let mut trace = Trace::default();
    let mut candidates = Vec::new();
    while let Some(row) = table.row()? {
        if row.get(&columns.job).text.contains('.') {
            continue;
        }
        match columns.candidate(&row)? {
            Ok(candidate) => candidates.push(candidate),
            Err(reason) => trace.skip(reason),
        }
    }
    let in_gpus = candidates.iter().any(|job| job.gpus > 0);
    for Candidate { submit, run, limit, gpus, others } in candidates {
        match if in_gpus { gpus } else { others } {
            0 => trace.skip(if in_gpus { "no GPU" } else { "no devices" }),
            devices => trace.jobs.push(TraceJob { submit, run, limit, devices }),
        }
    }
    Ok(trace)
}

impl Columns {
    fn new<R: BufRead>(table: &Table<'_, R>) -> Result<Self, TraceError> {
        table.need(RUN)?;
        table.need(DEVICES)?;
        Ok(Self {
            job: table.need(JOB)?,
            submit: table.need(SUBMIT)?,
            start: table.need(&["Start"])?,
            state: table.find(&["State"]),
            end: table.find(&["End"]),
            elapsed: table.find(&["Elapsed"]),
            elapsed_raw: table.find(&["ElapsedRaw"]),
            limit: table.find(&["Timelimit"]),
            allocated: table.find(&["AllocTRES"]),
            requested: table.find(&["ReqTRES"]),
            cpus: table.find(&["AllocCPUS", "NCPUS", "ReqCPUS"]),
            nodes: table.find(&["NNodes", "AllocNodes", "ReqNodes"]),
        })
    }

    /// A row's job, or why it is left out.
    fn candidate(&self, row: &Row<'_>) -> Result<Result<Candidate, &'static str>, TraceError> {
        let submit = row.get(&self.submit);
        if submit.is_absent() {
            return Ok(Err("no submission time"));
        }
        let run = match self.run(row)? {
            Ok(run) => run,
            Err(reason) => return Ok(Err(reason)),
        };
        let (gpus, others) = self.devices(row)?;
        let limit = row
            .value(&self.limit)
            .filter(|limit| NO_LIMIT.iter().all(|no_limit| !limit.text.eq_ignore_ascii_case(no_limit)));
        let limit = limit.map(|limit| limit.clock()).transpose()?;
        Ok(Ok(Candidate { submit: submit.moment()?, run: run.max(1), limit, gpus, others }))
    }

    /// How long a row's job ran, or why that is not told.
    fn run(&self, row: &Row<'_>) -> Result<Result<Time, &'static str>, TraceError> {
        // Slurm writes `CANCELLED by 1000` and the like.
        let state = row.value(&self.state).and_then(|state| state.text.split_whitespace().next());
        let (start, end) = (row.get(&self.start), row.value(&self.end));
        if start.is_absent() || state == Some("PENDING") {
            return Ok(Err("never started"));
        }
        if matches!(state, Some("RUNNING" | "SUSPENDED")) || (self.end.is_some() && end.is_none()) {
            return Ok(Err("still running"));
        }
        let run = match (row.value(&self.elapsed_raw), row.value(&self.elapsed), end) {
            (Some(seconds), ..) => seconds.seconds()?,
            (_, Some(elapsed), _) => elapsed.clock()?,
            (.., Some(end)) => between(start, end)?,
            _ => return Ok(Err("run time unknown")),
        };
        // Some releases of Slurm give a job that was cancelled in the queue a start, but never devices.
        let no_cpus = row.value(&self.cpus).is_some_and(|cpus| cpus.number() == Some(0.0));
        let no_tres = self.allocated.is_some() && row.value(&self.allocated).is_none();
        if run == 0 && (no_cpus || no_tres) {
            return Ok(Err("never started"));
        }
        Ok(Ok(run))
    }

    /// The GPUs of a row's job, and its CPUs or nodes, each 0 where it is not told.
    fn devices(&self, row: &Row<'_>) -> Result<(u32, u32), TraceError> {
        let count = |column| row.value(column).map_or(Ok(0), |field| field.count());
        let first = |counts: &[u32]| counts.iter().copied().find(|&count| count > 0).unwrap_or(0);
        let of_tres =
            |column, count: fn(Field<'_>) -> Result<u32, TraceError>| row.value(column).map_or(Ok(0), count);
        let gpus = [of_tres(&self.allocated, gpus_of)?, of_tres(&self.requested, gpus_of)?];
        let others = [
            count(&self.cpus)?,
            of_tres(&self.allocated, cpus_of)?,
            of_tres(&self.requested, cpus_of)?,
            count(&self.nodes)?,
        ];
        Ok((first(&gpus), first(&others)))
    }
}

fn between(start: Field<'_>, end: Field<'_>) -> Result<Time, TraceError> {
    let run = end.moment()? - start.moment()?;
    if run < 0 {
        let what = format!("`{}` is before its start `{}`", end.text, start.text);
        return Err(end.damaged(what, "a job ends after it starts: mend the line"));
    }
    Ok(run)
}

/// The GPUs of a TRES list: Slurm's own sum where it stands, else that of the types.
fn gpus_of(tres: Field<'_>) -> Result<u32, TraceError> {
    match tres_count(tres, |name| name == "gres/gpu")? {
        0 => tres_count(tres, |name| name.starts_with("gres/gpu:")),
        gpus => Ok(gpus),
    }
}

/// The CPUs of a TRES list.
fn cpus_of(tres: Field<'_>) -> Result<u32, TraceError> {
    tres_count(tres, |name| name == "cpu")
}

/// The sum of some entries of a TRES list such as `cpu=8,gres/gpu=2,mem=64G`.
fn tres_count(tres: Field<'_>, wanted: impl Fn(&str) -> bool) -> Result<u32, TraceError> {
    let mut sum: u32 = 0;
    for entry in tres.text.split(',') {
        let Some((name, count)) = entry.split_once('=') else {
            return Err(tres.damaged(format!("`{entry}` is no TRES"), "write it as name=count"));
        };
        if wanted(name) {
            sum = sum.saturating_add(Field { text: count, ..tres }.count()?);
        }
    }
    Ok(sum)
}
