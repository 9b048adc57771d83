//! Why a file gives no trace.

use super::Format;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

/// Why a file gives no trace: where, what was found, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be opened or read on.
    #[error("{}: cannot be read: {source}; name a readable file", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The first line belongs to no format.
    #[error("{}: not a trace of a known format; what can be read: {}", file.display(), formats())]
    UnknownFormat {
        /// The file.
        file: PathBuf,
    },
    /// A line that cannot be read.
    #[error("{}:{line}: {}{what}; {hint}", file.display(), in_column(column))]
    Damaged {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The column by its name; empty for the line as a whole.
        column: String,
        /// What was found.
        what: String,
        /// What to do about it.
        hint: String,
    },
    /// The file is sound, but no job of it can be played.
    #[error("{}: no job that ran{}; choose a trace with jobs that did", file.display(), left_out(skipped))]
    Empty {
        /// The file.
        file: PathBuf,
        /// Why its jobs were left out, and how many for each reason.
        skipped: BTreeMap<&'static str, usize>,
    },
}

fn formats() -> String {
    Format::ALL.map(|format| format.to_string()).join("; ")
}

fn in_column(column: &str) -> String {
    if column.is_empty() { String::new() } else { format!("column {column}: ") }
}

fn left_out(skipped: &BTreeMap<&'static str, usize>) -> String {
    let mut text = String::new();
    for (index, (reason, jobs)) in skipped.iter().enumerate() {
        let before = if index == 0 { " (left out: " } else { ", " };
        // Writing to a string does not fail.
        let _ = write!(text, "{before}{jobs} {reason}");
    }
    if !skipped.is_empty() {
        text.push(')');
    }
    text
}
