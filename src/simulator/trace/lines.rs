//! The lines of a trace, each with its place.
//!
//! Lines are counted here for all formats, because a table reader's own count is off as soon as lines end in
//! CR LF or blank lines stand between records, and a wrong line number in a message about line 40,000 helps
//! nobody.

use super::TraceError;
use super::field::Field;
use std::io::BufRead;
use std::path::Path;

/// A line without its end.
pub(super) struct Line<'p> {
    /// The file it is in.
    pub(super) file: &'p Path,
    /// Its number, from 1.
    pub(super) number: usize,
    /// What it says.
    pub(super) text: String,
}

impl Line<'_> {
    /// An error about the line as a whole.
    pub(super) fn damaged(&self, what: impl Into<String>, hint: impl Into<String>) -> TraceError {
        Field { file: self.file, line: self.number, column: "", text: "" }.damaged(what, hint)
    }
}

/// The lines that are not blank.
pub(super) struct Lines<'p, R> {
    text: R,
    pub(super) file: &'p Path,
    number: usize,
}

impl<'p, R: BufRead> Lines<'p, R> {
    /// The lines of a text; the path is for messages only.
    pub(super) fn new(text: R, file: &'p Path) -> Self {
        Self { text, file, number: 0 }
    }

    fn line(&mut self) -> Result<Option<Line<'p>>, TraceError> {
        let mut bytes = Vec::new();
        let read = self.text.read_until(b'\n', &mut bytes);
        if read.map_err(|source| TraceError::Unreadable { file: self.file.into(), source })? == 0 {
            return Ok(None);
        }
        self.number += 1;
        let mut line = Line { file: self.file, number: self.number, text: String::new() };
        let text = String::from_utf8(bytes)
            .map_err(|_| line.damaged("bytes that are no text", "save the trace as UTF-8, uncompressed"))?;
        let text = if self.number == 1 { text.trim_start_matches('\u{feff}') } else { &text };
        line.text = text.trim_end_matches(['\n', '\r']).into();
        Ok(Some(line))
    }
}

impl<'p, R: BufRead> Iterator for Lines<'p, R> {
    type Item = Result<Line<'p>, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.line().transpose()? {
                Ok(line) if line.text.trim().is_empty() => {}
                line => return Some(line),
            }
        }
    }
}
