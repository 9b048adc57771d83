//! The grammar that all of Slurm's `.conf` files share: lines of `Key=value` pairs.
//!
//! A `#` starts a comment unless a backslash stands before it, a backslash at the end of a line joins the next, and
//! `Include FILE` puts another file in its place. A value stands in double quotes or ends at white space. Keys
//! are the same in upper and lower case.
//!
//! The text comes through a function of the caller, so nothing here touches the disk. Every key and value knows its
//! place, across joined lines and included files.

use super::diagnostic::{Code, Diagnostic, Place, codes};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

codes! {
    /// The codes of this module.
    CODES;
    UNREADABLE = "T001" Error "a file cannot be read";
    SYNTAX = "T002" Error "a line is not made of Key=value pairs";
    INCLUDE = "T003" Error "an Include that cannot be followed";
}

/// How a caller lets a reader see a file.
pub type Source<'a> = dyn Fn(&Path) -> io::Result<String> + 'a;

/// How many files one file may lead to: an `Include` twice on every level must not read a million.
const MAX_FILES: usize = 1000;

/// One line after comments, continuations and escapes are resolved.
#[derive(Debug)]
pub struct Line {
    file: Arc<Path>,
    text: String,
    /// Where pieces of the text come from, in order: a line may be joined from several.
    pieces: Vec<Piece>,
    pairs: Vec<(Range<usize>, Range<usize>)>,
}

#[derive(Debug)]
struct Piece {
    /// Where the piece starts in the joined text, in bytes.
    at: usize,
    line: u32,
    column: u32,
}

/// A `Key=value` pair of a line.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'a> {
    line: &'a Line,
    key_at: usize,
    value_at: usize,
    /// The key as it was written.
    pub key: &'a str,
    /// The value without quotes.
    pub value: &'a str,
}

impl<'a> Pair<'a> {
    /// Whether this is the key, in upper or lower case.
    pub fn is(&self, key: &str) -> bool {
        self.key.eq_ignore_ascii_case(key)
    }

    /// Where the key stands.
    pub fn place(&self) -> Place {
        self.line.place(self.key_at)
    }

    /// Where the value stands, or a character in it, counted from 1.
    pub fn value_place(&self, column: usize) -> Place {
        let inside =
            self.value.char_indices().nth(column.saturating_sub(1)).map_or(self.value.len(), |(at, _)| at);
        self.line.place(self.value_at + inside)
    }
}

impl Line {
    /// The pairs in the order of the text; never empty.
    pub fn pairs(&self) -> impl Iterator<Item = Pair<'_>> {
        self.pairs.iter().map(|(key, value)| Pair {
            line: self,
            key_at: key.start,
            value_at: value.start,
            key: &self.text[key.clone()],
            value: &self.text[value.clone()],
        })
    }

    fn place(&self, at: usize) -> Place {
        let after = self.pieces.partition_point(|piece| piece.at <= at);
        let (line, column) = match after.checked_sub(1).map(|i| &self.pieces[i]) {
            Some(piece) => {
                let inside = self.text[piece.at..at.min(self.text.len())].chars().count() as u32;
                (piece.line, piece.column.saturating_add(inside))
            }
            None => (0, 0),
        };
        Place { file: self.file.clone(), line, column }
    }
}

/// The finding that a file cannot be read.
pub fn unreadable(path: &Path, named_at: Place, error: &io::Error) -> Diagnostic {
    let what = format!("cannot read {}: {error}", path.display());
    Diagnostic::new(UNREADABLE, named_at, what, "make it a file of UTF-8 text that SlurmUser may read")
}

/// A file being read, and how far.
struct Open {
    path: Arc<Path>,
    text: String,
    at: usize,
    line: u32,
}

/// Reads a file and all that it includes, in reading order. A line with a fault gives a diagnostic and no [`Line`].
pub fn read(source: &Source<'_>, path: &Path) -> (Vec<Line>, Vec<Diagnostic>) {
    let mut reader = Reader { source, lines: Vec::new(), diagnostics: Vec::new(), files: 0, cluster: None };
    let mut open: Vec<Open> = reader.open(path, &Place::file(path)).into_iter().collect();
    while let Some(file) = open.last_mut() {
        let Some(line) = file.next_line() else {
            open.pop();
            continue;
        };
        if let Some(name) = included(&line.text) {
            open.extend(reader.include(&line, name, &open));
        } else {
            reader.split(line);
        }
    }
    (reader.lines, reader.diagnostics)
}

struct Reader<'a> {
    source: &'a Source<'a>,
    lines: Vec<Line>,
    diagnostics: Vec<Diagnostic>,
    files: usize,
    /// The last ClusterName seen, which `%c` in an Include stands for.
    cluster: Option<String>,
}

impl Reader<'_> {
    fn report(&mut self, code: Code, place: Place, what: impl Into<String>, hint: &str) {
        self.diagnostics.push(Diagnostic::new(code, place, what, hint));
    }

    fn open(&mut self, path: &Path, named_at: &Place) -> Option<Open> {
        self.files += 1;
        match (self.source)(path) {
            Ok(text) => Some(Open { path: path.into(), text, at: 0, line: 1 }),
            Err(error) => {
                self.diagnostics.push(unreadable(path, named_at.clone(), &error));
                None
            }
        }
    }

    fn include(&mut self, line: &Line, name: Range<usize>, open: &[Open]) -> Option<Open> {
        let place = line.place(name.start);
        let written = &line.text[name.clone()];
        if !line.text[name.end..].trim().is_empty() {
            self.report(
                INCLUDE,
                place,
                "text after the name of the file",
                "give each Include a line of its own",
            );
            return None;
        }
        let name = match (&self.cluster, written.contains("%c")) {
            (Some(cluster), true) => written.replace("%c", &cluster.to_lowercase()),
            (None, true) => {
                self.report(
                    INCLUDE,
                    place,
                    "`%c` before any ClusterName",
                    "put ClusterName above the Include",
                );
                return None;
            }
            _ => written.to_string(),
        };
        let path: PathBuf =
            line.file.parent().map_or_else(|| PathBuf::from(&name), |directory| directory.join(&name));
        if open.iter().any(|file| *file.path == *path) {
            let what = format!("{} includes itself", path.display());
            self.report(INCLUDE, place, what, "remove the Include");
            return None;
        }
        if self.files >= MAX_FILES {
            let what = format!("more than {MAX_FILES} files are included");
            self.report(INCLUDE, place, what, "include each file once");
            return None;
        }
        self.open(&path, &place)
    }

    fn split(&mut self, mut line: Line) {
        let mut at = 0;
        while let Some(start) = line.text[at..].find(|c| !is_space(c)).map(|skipped| at + skipped) {
            match pair(&line.text, start) {
                Ok((key, value, end)) => {
                    line.pairs.push((key, value));
                    at = end;
                }
                Err(fault) => {
                    self.report(SYNTAX, line.place(start), fault.what, &fault.hint);
                    return;
                }
            }
        }
        if let Some(cluster) = line.pairs().filter(|pair| pair.is("ClusterName")).last() {
            self.cluster = Some(cluster.value.into());
        }
        if !line.pairs.is_empty() {
            self.lines.push(line);
        }
    }
}

/// The white space of C's `isspace`.
fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t'..='\r')
}

/// The file name of an `Include` line.
fn included(text: &str) -> Option<Range<usize>> {
    let line = text.trim_start_matches(is_space);
    let keyword = line.get(..7).filter(|word| word.eq_ignore_ascii_case("include"))?;
    let rest = &line[keyword.len()..];
    let name = rest.trim_start_matches(is_space);
    if name.len() == rest.len() || name.is_empty() || name.starts_with('=') {
        return None;
    }
    let start = text.len() - name.len();
    Some(start..start + name.find(is_space).unwrap_or(name.len()))
}

struct Fault {
    what: String,
    hint: String,
}

/// Reads `Key = value` at `start`: the places of key and value, and where to go on.
fn pair(text: &str, start: usize) -> Result<(Range<usize>, Range<usize>, usize), Fault> {
    let rest = &text[start..];
    let key = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.')).unwrap_or(rest.len());
    let after_key = rest[key..].trim_start_matches(is_space);
    // Slurm's grammar has `+=` and its like; no key that is read here gives them a meaning of their own.
    let after_key = after_key.strip_prefix(['+', '-', '*', '/']).unwrap_or(after_key);
    let Some(value) = after_key.strip_prefix('=').filter(|_| key > 0) else {
        let word = rest.split(is_space).next().unwrap_or(rest);
        return Err(Fault {
            what: format!("`{word}` is not a Key=value pair"),
            hint: "write Key=value, put a value with spaces into double quotes, start a comment with `#`"
                .into(),
        });
    };
    let key = start..start + key;
    let value = value.trim_start_matches(is_space);
    let value_at = text.len() - value.len();
    if let Some(quoted) = value.strip_prefix('"')
        && let Some(length) = quoted.find('"')
        && quoted[length + 1..].chars().next().is_none_or(is_space)
    {
        let inside = value_at + 1..value_at + 1 + length;
        return Ok((key, inside.clone(), inside.end + 1));
    }
    let length = value.find(is_space).unwrap_or(value.len());
    let name = &text[key.clone()];
    if length == 0 || looks_like_a_pair(&value[..length]) {
        return Err(Fault {
            what: format!("`{name}=` has no value"),
            hint: format!("write a value after it, or leave `{name}=` out"),
        });
    }
    Ok((key, value_at..value_at + length, value_at + length))
}

/// Slurm skips white space after `=` and so takes the next pair for the value of an empty one.
fn looks_like_a_pair(value: &str) -> bool {
    ["Nodes=", "Switches=", "SwitchName=", "BlockName=", "LinkSpeed=", "BlockSizes="]
        .iter()
        .any(|key| value.get(..key.len()).is_some_and(|start| start.eq_ignore_ascii_case(key)))
}

impl Open {
    /// The next line that holds more than white space, with its continuations joined.
    fn next_line(&mut self) -> Option<Line> {
        let mut line =
            Line { file: self.path.clone(), text: String::new(), pieces: Vec::new(), pairs: Vec::new() };
        while self.at < self.text.len() {
            let rest = &self.text[self.at..];
            let length = rest.find('\n').map_or(rest.len(), |end| end + 1);
            let (raw, number) = (&rest[..length], self.line);
            self.at += length;
            self.line = self.line.saturating_add(1);
            let kept = without_comment(raw);
            let (kept, continued) = without_continuation(kept);
            push_unescaped(&mut line, kept, number);
            if !continued {
                if line.text.chars().all(is_space) {
                    line.text.clear();
                    line.pieces.clear();
                    continue;
                }
                return Some(line);
            }
        }
        (!line.text.chars().all(is_space)).then_some(line)
    }
}

fn without_comment(line: &str) -> &str {
    let mut escaped = false;
    let start = line.find(|c| {
        let comment = c == '#' && !escaped;
        escaped = c == '\\' && !escaped;
        comment
    });
    &line[..start.unwrap_or(line.len())]
}

/// Drops a backslash that ends the line, white space after it or not, unless it is itself escaped.
fn without_continuation(line: &str) -> (&str, bool) {
    let end = line.trim_end_matches(is_space);
    let backslashes = end.len() - end.trim_end_matches('\\').len();
    if backslashes % 2 == 1 { (&end[..end.len() - 1], true) } else { (line, false) }
}

/// A piece is at most this many characters long, so that finding a place in a line of a megabyte stays cheap.
const PIECE: u32 = 64;

/// Appends a raw line with each `\x` turned into `x`.
fn push_unescaped(line: &mut Line, raw: &str, number: u32) {
    line.text.reserve(raw.len());
    let mut next_piece = 0;
    let mut chars = raw.chars().zip(1u32..);
    while let Some((mut c, mut column)) = chars.next() {
        if c == '\\' {
            let Some(escaped) = chars.next() else { break };
            (c, column) = escaped;
            next_piece = column;
        }
        if column >= next_piece {
            line.pieces.push(Piece { at: line.text.len(), line: number, column });
            next_piece = column + PIECE;
        }
        line.text.push(c);
    }
}
