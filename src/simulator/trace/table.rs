//! Tables: a header that names the columns, and rows of as many fields.
//!
//! A record is a line: a quoted field may hold the separator, but no line end. Traces have none, and so a
//! quote that is left open spoils its own line and not all that follow.

use super::TraceError;
use super::field::Field;
use super::lines::{Line, Lines};
use csv_core::ReadRecordResult;
use std::io::BufRead;
use std::path::Path;

/// A table whose header was read.
pub(super) struct Table<'p, R> {
    lines: Lines<'p, R>,
    header: Row<'p>,
    splitter: csv_core::Reader,
}

/// A column by its place in the header.
pub(super) struct Column {
    index: usize,
    name: String,
}

/// The fields of a line, as many as the header has.
pub(super) struct Row<'p> {
    file: &'p Path,
    line: usize,
    fields: Vec<String>,
}

impl<'p, R: BufRead> Table<'p, R> {
    /// A table with commas between its fields, which may be quoted.
    pub(super) fn commas(lines: Lines<'p, R>) -> Result<Self, TraceError> {
        Self::new(lines, b',', true)
    }

    /// A table with `|` between its fields, in which quotes are letters like others.
    pub(super) fn pipes(lines: Lines<'p, R>) -> Result<Self, TraceError> {
        Self::new(lines, b'|', false)
    }

    fn new(mut lines: Lines<'p, R>, separator: u8, quoting: bool) -> Result<Self, TraceError> {
        let mut splitter = csv_core::ReaderBuilder::new().delimiter(separator).quoting(quoting).build();
        let first = lines.next().transpose()?;
        let file = lines.file;
        let empty = || TraceError::Empty { file: file.into(), skipped: Default::default() };
        let header = Row::new(&first.ok_or_else(empty)?, &mut splitter)?;
        Ok(Self { lines, header, splitter })
    }

    /// The column of the first of these names that the header has, in upper or lower case.
    pub(super) fn find(&self, names: &[&str]) -> Option<Column> {
        names.iter().find_map(|name| {
            let index = self.header.fields.iter().position(|field| field.eq_ignore_ascii_case(name))?;
            Some(Column { index, name: self.header.fields[index].clone() })
        })
    }

    /// As [`Table::find`], for a column that must be there.
    pub(super) fn need(&self, names: &[&str]) -> Result<Column, TraceError> {
        self.find(names).ok_or_else(|| self.missing(names))
    }

    /// The error that none of these columns is there.
    pub(super) fn missing(&self, names: &[&str]) -> TraceError {
        let column = names.first().copied().unwrap_or_default();
        let field = Field { file: self.header.file, line: self.header.line, column, text: "" };
        let hint = match names {
            [name] => format!("add {name} to the header and its values below"),
            [names @ .., last] => format!("name the column {} or {last}", names.join(", ")),
            [] => String::new(),
        };
        field.damaged("not in the header", hint)
    }

    /// The next row.
    pub(super) fn row(&mut self) -> Result<Option<Row<'p>>, TraceError> {
        let Some(line) = self.lines.next().transpose()? else { return Ok(None) };
        let row = Row::new(&line, &mut self.splitter)?;
        let (found, wanted) = (row.fields.len(), self.header.fields.len());
        if found != wanted {
            let what = format!("{found} fields where the header has {wanted}");
            return Err(line.damaged(what, "mend the line, or remove it if the file was cut off here"));
        }
        Ok(Some(row))
    }
}

impl<'p> Row<'p> {
    fn new(line: &Line<'p>, splitter: &mut csv_core::Reader) -> Result<Self, TraceError> {
        let input = format!("{}\n", line.text);
        // No field is longer than the line, and each but the last ends at a separator: one call takes it all.
        let (mut text, mut ends) = (vec![0; input.len()], vec![0; input.len()]);
        splitter.reset();
        let (result, _, _, fields) = splitter.read_record(input.as_bytes(), &mut text, &mut ends);
        if !matches!(result, ReadRecordResult::Record) {
            return Err(line.damaged("a quote that is not closed", "close it on the same line"));
        }
        let mut start = 0;
        let fields = ends[..fields].iter().map(|&end| {
            let field = String::from_utf8_lossy(&text[start..end]).trim().to_owned();
            start = end;
            field
        });
        Ok(Self { file: line.file, line: line.number, fields: fields.collect() })
    }

    /// The field of a column.
    pub(super) fn get<'a>(&'a self, column: &'a Column) -> Field<'a> {
        let text = self.fields.get(column.index).map_or("", String::as_str);
        Field { file: self.file, line: self.line, column: &column.name, text }
    }

    /// The field of a column that the table may lack, where it says something.
    pub(super) fn value<'a>(&'a self, column: &'a Option<Column>) -> Option<Field<'a>> {
        column.as_ref().map(|column| self.get(column)).filter(|field| !field.is_absent())
    }
}
