//! Hostlists: `rack[1-2]n[01-16],login` and the names it stands for.
//!
//! The rules are Slurm's own, down to its order: each name keeps the width it was written with, a token may hold
//! several brackets, and of several brackets the last runs fastest, then the first, then the second. Lockstep
//! differs in what it refuses. Where Slurm guesses (`n[1-3` becomes the one node `n]`) or lets numbers overflow,
//! Lockstep says which column is wrong, because a guessed node name in a topology file costs someone a day.
//!
//! A text is first read into [`Hostlist`], whose size is that of the text. Names come into being only in
//! [`Hostlist::names`], after the count is known, so `n[1-65536]m[1-65536]` is refused without taking memory.

use std::fmt::Write;

/// The most names Slurm takes in one range (`MAX_RANGE` in its hostlist.c).
pub const MAX_RANGE: u64 = 64 * 1024;
/// The most names one hostlist may stand for. Slurm has no such limit; its clusters are smaller than this.
pub const MAX_NAMES: u64 = 4 * MAX_RANGE;
/// The longest host name, in bytes.
pub const MAX_NAME_LENGTH: usize = 255;

/// What a hostlist may look like depends on the Slurm version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Dialect {
    /// Whether text may follow the last bracket (`n[1-3]-ib`): from Slurm 23.11 on.
    pub suffixes: bool,
}

impl Dialect {
    /// The dialect of a Slurm release, such as (22, 5) for 22.05.
    pub fn of_slurm(major: u16, minor: u16) -> Self {
        Self { suffixes: (major, minor) >= (23, 11) }
    }
}

/// Why a text is no hostlist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {what}; {hint}")]
pub struct HostlistError {
    /// Where in the text, in characters, from 1.
    pub column: usize,
    /// What was found.
    pub what: String,
    /// What to do about it.
    pub hint: String,
}

/// A hostlist, read but not expanded.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Hostlist {
    patterns: Vec<Pattern>,
}

/// One comma-separated token: text and brackets in turn, then text.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pattern {
    groups: Vec<Group>,
    tail: String,
}

/// A bracket and the text before it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Group {
    before: String,
    ranges: Vec<Range>,
}

/// Numbers `low..=high`, padded with zeros to `width`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    low: u64,
    high: u64,
    width: usize,
}

/// The names a hostlist stands for, in Slurm's order, doubles kept.
///
/// # Errors
/// As [`Hostlist::parse`].
pub fn expand(text: &str, dialect: Dialect) -> Result<Vec<String>, HostlistError> {
    Hostlist::parse(text, dialect).map(|list| list.names())
}

/// Folds names into one hostlist as `scontrol show hostlist` does: only neighbours in the given order are joined. A
/// range stays short enough to be read again, of which scontrol takes no care.
pub fn fold<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> String {
    let mut folded = String::new();
    let mut names = names.into_iter().map(|name| Numbered::split(name.as_ref())).peekable();
    while let Some(first) = names.next() {
        if !folded.is_empty() {
            folded.push(',');
        }
        folded.push_str(&first.prefix);
        let Some(range) = first.range else { continue };
        let mut ranges = vec![range];
        while let Some(next) = names.next_if(|next| next.range.is_some() && next.prefix == first.prefix) {
            ranges.extend(next.range);
        }
        push_ranges(&mut folded, ranges);
    }
    folded
}

fn push_ranges(folded: &mut String, ranges: Vec<Range>) {
    let mut joined: Vec<Range> = Vec::new();
    for range in ranges {
        let follows = |last: &&mut Range| last.high.checked_add(1) == Some(range.low) && !last.is_full();
        let neighbour = joined.last_mut().filter(follows);
        match neighbour.and_then(|last| Some((last.common_width(range)?, last))) {
            Some((width, last)) => *last = Range { low: last.low, high: range.high, width },
            None => joined.push(range),
        }
    }
    let bracketed = joined.len() > 1 || joined.iter().any(|range| range.low < range.high);
    let mut separator = if bracketed { "[" } else { "" };
    for Range { low, high, width } in joined {
        // Writing to a String cannot fail.
        let _ = write!(folded, "{separator}{low:0width$}");
        if low < high {
            let _ = write!(folded, "-{high:0width$}");
        }
        separator = ",";
    }
    if bracketed {
        folded.push(']');
    }
}

impl Range {
    fn count(self) -> u64 {
        self.high - self.low + 1
    }

    /// Whether Slurm would not read the range again if it were longer.
    fn is_full(self) -> bool {
        self.count() >= MAX_RANGE
    }

    /// The width that prints both ranges as they are now, if there is one.
    fn common_width(self, next: Range) -> Option<usize> {
        let padding = |number: u64, width: usize| width.saturating_sub(digits(number));
        if padding(next.low, next.width) == padding(next.low, self.width) {
            return Some(self.width);
        }
        (padding(self.low, self.width) == padding(self.low, next.width)).then_some(next.width)
    }
}

fn digits(number: u64) -> usize {
    number.checked_ilog10().unwrap_or(0) as usize + 1
}

/// A name split before its trailing digits. A number too big for Slurm's arithmetic stays part of the prefix.
struct Numbered {
    prefix: String,
    range: Option<Range>,
}

impl Numbered {
    fn split(name: &str) -> Self {
        let prefix = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let number = &name[prefix.len()..];
        match number.parse() {
            Ok(n) => {
                Self { prefix: prefix.into(), range: Some(Range { low: n, high: n, width: number.len() }) }
            }
            Err(_) => Self { prefix: name.into(), range: None },
        }
    }
}

impl Hostlist {
    /// Reads a hostlist. Tokens are separated by commas or white space; an empty text stands for no name.
    ///
    /// # Errors
    /// Says where the text breaks Slurm's rules or stands for more than [`MAX_NAMES`] names. The time and memory
    /// taken are linear in the text, whatever the ranges say.
    pub fn parse(text: &str, dialect: Dialect) -> Result<Self, HostlistError> {
        let mut parser = Parser { text, at: 0, dialect };
        let mut list = Self::default();
        let mut total = 0u64;
        while let Some(start) = parser.next_token() {
            let pattern = parser.pattern()?;
            total = total.saturating_add(pattern.count());
            if total > MAX_NAMES {
                return Err(parser.error(
                    start,
                    format!("the list stands for more than {MAX_NAMES} names up to here"),
                    "split it into several lists",
                ));
            }
            if pattern.longest() > MAX_NAME_LENGTH {
                return Err(parser.error(
                    start,
                    format!("a host name longer than {MAX_NAME_LENGTH} bytes"),
                    "shorten it",
                ));
            }
            list.patterns.push(pattern);
        }
        Ok(list)
    }

    /// How many names the list stands for, doubles counted each time.
    pub fn count(&self) -> u64 {
        self.patterns.iter().map(Pattern::count).sum()
    }

    /// The names in Slurm's order, doubles kept.
    pub fn names(&self) -> Vec<String> {
        let mut names = Vec::with_capacity(self.count() as usize);
        for pattern in &self.patterns {
            pattern.push_names(&mut names);
        }
        names
    }
}

impl Pattern {
    fn count(&self) -> u64 {
        self.groups.iter().map(Group::count).fold(1, u64::saturating_mul)
    }

    /// The length of the longest name in bytes, or a little more.
    fn longest(&self) -> usize {
        let widest =
            |group: &Group| group.ranges.iter().map(|r| r.width.max(digits(r.high))).max().unwrap_or(0);
        self.groups.iter().map(|group| group.before.len() + widest(group)).sum::<usize>() + self.tail.len()
    }

    fn push_names(&self, names: &mut Vec<String>) {
        let longest = self.longest();
        let mut counters: Vec<Counter> = vec![Counter { range: 0, offset: 0 }; self.groups.len()];
        loop {
            let mut name = String::with_capacity(longest);
            for (group, counter) in self.groups.iter().zip(&counters) {
                let range = group.ranges[counter.range];
                name.push_str(&group.before);
                // Writing to a String cannot fail.
                let _ = write!(name, "{:0width$}", range.low + counter.offset, width = range.width);
            }
            name.push_str(&self.tail);
            names.push(name);
            let groups = self.groups.len();
            let mut fastest_first = (groups.saturating_sub(1)..groups).chain(0..groups.saturating_sub(1));
            if !fastest_first.any(|group| counters[group].advance(&self.groups[group].ranges)) {
                return;
            }
        }
    }
}

impl Group {
    fn count(&self) -> u64 {
        self.ranges.iter().map(|range| range.count()).fold(0, u64::saturating_add)
    }
}

/// Where the expansion of one bracket stands.
#[derive(Clone)]
struct Counter {
    range: usize,
    offset: u64,
}

impl Counter {
    /// Steps to the next number; false, and back at the first, after the last.
    fn advance(&mut self, ranges: &[Range]) -> bool {
        self.offset += 1;
        if self.offset == ranges[self.range].count() {
            *self = Self { range: (self.range + 1) % ranges.len(), offset: 0 };
            return self.range != 0;
        }
        true
    }
}

struct Parser<'a> {
    text: &'a str,
    /// A byte offset on a character boundary.
    at: usize,
    dialect: Dialect,
}

fn is_separator(c: char) -> bool {
    matches!(c, ',' | ' ' | '\t' | '\n')
}

impl<'a> Parser<'a> {
    fn error(&self, offset: usize, what: impl Into<String>, hint: impl Into<String>) -> HostlistError {
        let column = self.text[..offset].chars().count() + 1;
        HostlistError { column, what: what.into(), hint: hint.into() }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn next_token(&mut self) -> Option<usize> {
        self.at = self.text.len() - self.rest().trim_start_matches(is_separator).len();
        (self.at < self.text.len()).then_some(self.at)
    }

    /// Text up to a bracket, a separator or the end.
    fn plain(&mut self) -> &'a str {
        let rest = self.rest();
        let length = rest.find(|c| c == '[' || c == ']' || is_separator(c)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    fn pattern(&mut self) -> Result<Pattern, HostlistError> {
        let mut groups = Vec::new();
        loop {
            let start = self.at;
            let text = self.plain();
            match self.rest().chars().next() {
                Some('[') => groups.push(Group { before: text.into(), ranges: self.bracket()? }),
                Some(']') => {
                    return Err(self.error(
                        self.at,
                        "`]` without a `[` before it",
                        "remove it or open the bracket",
                    ));
                }
                _ if !groups.is_empty() && !text.is_empty() && !self.dialect.suffixes => {
                    return Err(self.error(
                        start,
                        format!("`{text}` follows the last bracket, which Slurm reads only from 23.11 on"),
                        "write the names out, or put a last number into brackets too: `n[1-2]-[4]`",
                    ));
                }
                _ => return Ok(Pattern { groups, tail: text.into() }),
            }
        }
    }

    /// Reads from `[` past its `]`.
    fn bracket(&mut self) -> Result<Vec<Range>, HostlistError> {
        let open = self.at;
        let inside = open + 1;
        let Some(length) = self.text[inside..].find(['[', ']']) else {
            return Err(self.error(open, "`[` is never closed", "add the missing `]`"));
        };
        let close = inside + length;
        if self.text[close..].starts_with('[') {
            return Err(self.error(close, "a `[` inside brackets", "close the bracket before it first"));
        }
        let mut ranges = Vec::new();
        let mut at = inside;
        for item in self.text[inside..close].split(',') {
            ranges.push(self.range(at, item)?);
            at += item.len() + 1;
        }
        self.at = close + 1;
        Ok(ranges)
    }

    fn range(&self, at: usize, item: &str) -> Result<Range, HostlistError> {
        let invalid = || {
            self.error(
                at,
                format!("`{item}` cannot be read as a number or a range of numbers"),
                "write it as `7` or `1-16`",
            )
        };
        let (low, width, last) = match item.split_once('-') {
            // White space before the dash counts for the width, as in Slurm: `[1 - 3]` is 01, 02, 03.
            Some((first, last)) => (number(first.trim_end_matches(is_space)), first.len(), Some(last)),
            None => (number(item), item.len(), None),
        };
        let low = low.ok_or_else(invalid)?;
        let high = match last {
            None | Some("") => low,
            Some(last) => number(last).ok_or_else(invalid)?,
        };
        if low > high {
            return Err(self.error(
                at,
                format!("`{item}` runs backwards"),
                format!("write it as `{high}-{low}`"),
            ));
        }
        if high - low >= MAX_RANGE {
            return Err(self.error(
                at,
                format!("`{item}` is more than the {MAX_RANGE} names that Slurm takes in one range"),
                "split it into several ranges",
            ));
        }
        Ok(Range { low, high, width })
    }
}

/// The white space that C's `strtoul` skips.
fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t'..='\r')
}

/// A number as C's `strtoul` reads it: white space and a plus sign may stand before it.
fn number(text: &str) -> Option<u64> {
    let text = text.trim_start_matches(is_space);
    text.starts_with(|c: char| c.is_ascii_digit() || c == '+').then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests;
