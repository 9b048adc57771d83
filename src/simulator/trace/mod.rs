//! Job traces: which jobs came, when, for how long and for how many GPUs.
//!
//! A simulated cluster is worth what its jobs are worth, and real ones are published in four shapes: the CSV
//! tables of GPU clusters (Philly and its kin), Alibaba's list of pods (openb), the Standard Workload Format
//! of the Parallel Workloads Archive (SWF), and what a site's own `sacct -P` prints. [`Trace::read`] tells
//! them apart by their first line and brings all of them to one list of [`TraceJob`]s, in order of
//! submission, with the first at second 0.
//!
//! A line that cannot be read is an error with its place, never a job less: a trace that lost its large jobs
//! on the way would still simulate, and prove the wrong thing. Jobs that are sound but cannot be played (no
//! GPU, never started) are left out and counted in [`Trace::skipped`]. All formats round alike: parts of a
//! second are dropped from a submission and count as a whole second of a run; a run of 0 seconds counts as 1;
//! a part of a GPU counts as one GPU.

mod error;
mod field;
mod lines;
mod openb;
mod philly;
mod sacct;
mod swf;
mod synthetic;
mod table;

pub use error::TraceError;
pub use synthetic::Synthetic;

use crate::request::Time;
use lines::Lines;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Read};
use std::path::Path;

/// How much of a file [`Format::detect`] is shown, in bytes.
const HEAD: u64 = 64 * 1024;

/// One job as a trace tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceJob {
    /// When it was submitted, in seconds after the trace's first submission.
    pub submit: Time,
    /// How long it ran, in seconds, at least 1.
    pub run: Time,
    /// The time limit that its user gave, in seconds, where the trace has one. Runs can be longer: schedulers
    /// grant some grace, and archives keep what happened.
    pub limit: Option<Time>,
    /// GPUs in all (processors, where the trace knows no GPUs), at least 1.
    pub devices: u32,
}

/// The jobs of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The jobs in order of submission, the first at second 0. Jobs of the same second keep the order of the
    /// file.
    pub jobs: Vec<TraceJob>,
    /// Why jobs of the file were left out, and how many for each reason.
    pub skipped: BTreeMap<&'static str, usize>,
}

/// A way to write a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The CSV of GPU clusters: a header that names, in any order, the submission, the duration and the GPUs.
    /// Philly, ITP, Helios and the inputs of many schedulers' simulators are of this kind.
    Philly,
    /// Alibaba's `openb_pod_list_*.csv`, one pod a line.
    Openb,
    /// The Standard Workload Format: `;` before comments, 18 columns.
    Swf,
    /// `sacct -P` with its header.
    Sacct,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 4] = [Self::Philly, Self::Openb, Self::Swf, Self::Sacct];

    /// The format of a text that begins like this: by the header, or by the style of SWF's comments and
    /// columns. The header need not be complete, so that reading it can say which column is missing.
    pub fn detect(first_lines: &str) -> Option<Self> {
        let text = first_lines.trim_start_matches('\u{feff}');
        let line = text.lines().find(|line| !line.trim().is_empty())?;
        let has = |separator: char, names: &[&str]| {
            let mut columns = line.split(separator).map(|column| column.trim().trim_matches('"'));
            columns.any(|column| names.iter().any(|name| column.eq_ignore_ascii_case(name)))
        };
        if swf::is_line(line) {
            Some(Self::Swf)
        } else if line.contains('|') && (has('|', sacct::JOB) || has('|', sacct::SUBMIT)) {
            Some(Self::Sacct)
        } else if has(',', openb::CREATION) && has(',', openb::GPUS) {
            Some(Self::Openb)
        } else if [philly::SUBMIT, philly::RUN, philly::GPUS].iter().filter(|names| has(',', names)).count()
            > 1
        {
            Some(Self::Philly)
        } else {
            None
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Philly => "Philly-style CSV (job_id,submit_time,duration,num_gpu)",
            Self::Openb => "Alibaba's openb pod list",
            Self::Swf => "the Standard Workload Format",
            Self::Sacct => "`sacct -P` with its header",
        })
    }
}

impl Trace {
    /// Opens a file, finds out its format and reads it.
    ///
    /// # Errors
    /// See [`TraceError`]: the file cannot be read, its format is none of [`Format::ALL`], a line is damaged,
    /// or no job is left.
    pub fn read(path: &Path) -> Result<Self, TraceError> {
        let unreadable = |source| TraceError::Unreadable { file: path.into(), source };
        let mut file = File::open(path).map_err(unreadable)?;
        let mut head = Vec::new();
        file.by_ref().take(HEAD).read_to_end(&mut head).map_err(unreadable)?;
        let format = Format::detect(&String::from_utf8_lossy(&head))
            .ok_or_else(|| TraceError::UnknownFormat { file: path.into() })?;
        Self::parse(BufReader::new(Cursor::new(head).chain(file)), path, format)
    }

    /// Reads a text of a known format; the path is for messages only.
    ///
    /// # Errors
    /// As [`Trace::read`].
    pub fn parse(text: impl BufRead, path: &Path, format: Format) -> Result<Self, TraceError> {
        let lines = Lines::new(text, path);
        let trace = match format {
            Format::Philly => philly::read(lines),
            Format::Openb => openb::read(lines),
            Format::Swf => swf::read(lines),
            Format::Sacct => sacct::read(lines),
        }?;
        if trace.jobs.is_empty() {
            return Err(TraceError::Empty { file: path.into(), skipped: trace.skipped });
        }
        Ok(trace.in_order())
    }

    /// The most devices that a job asks for; 0 without jobs.
    pub fn max_devices(&self) -> u32 {
        self.jobs.iter().map(|job| job.devices).max().unwrap_or(0)
    }

    /// The work of all jobs: devices times seconds.
    pub fn device_seconds(&self) -> u64 {
        let work = |job: &TraceJob| u64::from(job.devices).saturating_mul(job.run.unsigned_abs());
        self.jobs.iter().map(work).fold(0, u64::saturating_add)
    }

    /// Seconds from the first submission to the last.
    pub fn span(&self) -> Time {
        match (self.jobs.first(), self.jobs.last()) {
            (Some(first), Some(last)) => last.submit - first.submit,
            _ => 0,
        }
    }

    /// The offered load: device-seconds asked per device-second that so many devices have during the
    /// submissions. `None` where there is none to speak of, because all jobs come in the same second or there
    /// are no devices.
    pub fn offered_load(&self, capacity_devices: u64) -> Option<f64> {
        let supply = capacity_devices as f64 * self.span() as f64;
        (supply > 0.0).then(|| self.device_seconds() as f64 / supply)
    }

    /// Stretches or compresses the submission times so that the offered load is `load`; run times stay. Times
    /// are rounded to seconds, so the load is met as closely as the span's whole seconds allow. Without an
    /// offered load ([`Trace::offered_load`]), or when `load` is no positive number, nothing changes.
    pub fn scale_to_load(&mut self, load: f64, capacity_devices: u64) {
        let Some(offered) = self.offered_load(capacity_devices) else { return };
        let factor = offered / load;
        if !(factor.is_finite() && factor > 0.0) {
            return;
        }
        for job in &mut self.jobs {
            job.submit = (job.submit as f64 * factor).round() as Time;
        }
    }

    /// Keeps the first jobs only.
    pub fn truncate(&mut self, jobs: usize) {
        self.jobs.truncate(jobs);
    }

    /// Counts a job that is left out.
    fn skip(&mut self, reason: &'static str) {
        *self.skipped.entry(reason).or_default() += 1;
    }

    /// Brings jobs that stand as in their file into the promised order, with the first at second 0.
    fn in_order(mut self) -> Self {
        self.jobs.sort_by_key(|job| job.submit);
        let start = self.jobs.first().map_or(0, |job| job.submit);
        self.jobs.iter_mut().for_each(|job| job.submit -= start);
        self
    }
}

#[cfg(test)]
mod tests;
