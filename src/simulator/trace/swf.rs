//! The Standard Workload Format of the Parallel Workloads Archive: 18 numbers a line, -1 for what is not
//! known, and comments after `;`. Its processors take the place of GPUs. See Feitelson's definition, version
//! 2.2, at <https://www.cs.huji.ac.il/labs/parallel/workload/swf.html>.
//!
//! A job that was swapped out and in again has a line that sums it up (status 0 or 1) and a line for each
//! burst (status 2, 3 or 4). Bursts are no jobs and are passed over uncounted.

use super::field::Field;
use super::lines::{Line, Lines};
use super::{Trace, TraceError, TraceJob};
use std::io::BufRead;

/// The columns, by the names of the definition.
const COLUMNS: [&str; 18] = [
    "job number",
    "submit time",
    "wait time",
    "run time",
    "allocated processors",
    "average CPU time",
    "used memory",
    "requested processors",
    "requested time",
    "requested memory",
    "status",
    "user",
    "group",
    "executable",
    "queue",
    "partition",
    "preceding job",
    "think time",
];
const SUBMIT: usize = 1;
const RUN: usize = 3;
const ALLOCATED: usize = 4;
const REQUESTED: usize = 7;
const LIMIT: usize = 8;
const STATUS: usize = 10;

/// Whether a line is a comment or looks like a job.
pub(super) fn is_line(line: &str) -> bool {
    let numbers = || line.split_whitespace().filter(|number| number.parse::<f64>().is_ok()).count();
    line.trim_start().starts_with(';') || numbers() == COLUMNS.len()
}

/// The jobs as they stand in the file. A job that was never submitted, whose run time is unknown or that has
/// no processors is skipped.
pub(super) fn read<R: BufRead>(lines: Lines<'_, R>) -> Result<Trace, TraceError> {
    let mut trace = Trace::default();
    for line in lines {
        let line = line?;
        let job = line.text.split(';').next().unwrap_or_default();
        if job.trim().is_empty() {
            continue;
        }
        let job = Job::new(&line, job)?;
        if job.known(STATUS)?.is_some_and(|status| matches!(status.text, "2" | "3" | "4")) {
            continue;
        }
        let processors = match job.count(ALLOCATED)? {
            0 => job.count(REQUESTED)?,
            allocated => allocated,
        };
        match (job.known(SUBMIT)?, job.known(RUN)?) {
            (None, _) => trace.skip("no submission time"),
            (_, None) => trace.skip("run time unknown"),
            _ if processors == 0 => trace.skip("no processors"),
            (Some(submit), Some(run)) => {
                let limit = job.known(LIMIT)?.map(|limit| limit.seconds()).transpose()?;
                trace.jobs.push(TraceJob {
                    submit: submit.moment()?,
                    run: run.seconds()?.max(1),
                    limit: limit.filter(|&limit| limit > 0),
                    devices: processors,
                });
            }
        }
    }
    Ok(trace)
}

/// The fields of a line.
struct Job<'a> {
    fields: [Field<'a>; COLUMNS.len()],
}

impl<'a> Job<'a> {
    fn new(line: &'a Line<'_>, text: &'a str) -> Result<Self, TraceError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let words: [&str; COLUMNS.len()] = words.try_into().map_err(|words: Vec<_>| {
            let what = format!("{} fields where SWF has {}", words.len(), COLUMNS.len());
            line.damaged(what, "mend the line, or remove it if the file was cut off here")
        })?;
        let field =
            |index| Field { file: line.file, line: line.number, column: COLUMNS[index], text: words[index] };
        Ok(Self { fields: std::array::from_fn(field) })
    }

    /// The field of a column, unless it is -1.
    fn known(&self, column: usize) -> Result<Option<Field<'a>>, TraceError> {
        let field = self.fields[column];
        match field.number() {
            Some(number) => Ok((number >= 0.0).then_some(field)),
            None => {
                Err(field.damaged(format!("`{}` is no number", field.text), "write -1 for what is not known"))
            }
        }
    }

    /// A count of processors, 0 if it is not known.
    fn count(&self, column: usize) -> Result<u32, TraceError> {
        self.known(column)?.map_or(Ok(0), |field| field.count())
    }
}
