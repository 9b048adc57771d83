//! One field of a trace and what it can mean: a moment, a duration, a count.
//!
//! Dates are read as if no clock was ever put forward or back and all stood in one time zone, because traces
//! do not say which: two of them on both sides of a change of the clocks are an hour off.

use super::TraceError;
use crate::request::Time;
use jiff::civil::DateTime;
use std::path::Path;

/// No moment or duration lies further from 0, in seconds (35,000 years), so that sums and differences never
/// overflow.
const FURTHEST: Time = 1 << 40;

/// The words for "no value" of the programs that write traces.
const ABSENT: [&str; 7] = ["", "None", "Unknown", "NULL", "(null)", "N/A", "nan"];

/// A field and its place.
#[derive(Clone, Copy)]
pub(super) struct Field<'a> {
    /// The file it is in.
    pub(super) file: &'a Path,
    /// The line, from 1.
    pub(super) line: usize,
    /// The name of its column; empty for the line as a whole.
    pub(super) column: &'a str,
    /// What it says, without blanks around.
    pub(super) text: &'a str,
}

impl Field<'_> {
    /// An error about this field.
    pub(super) fn damaged(&self, what: impl Into<String>, hint: impl Into<String>) -> TraceError {
        TraceError::Damaged {
            file: self.file.into(),
            line: self.line,
            column: self.column.into(),
            what: what.into(),
            hint: hint.into(),
        }
    }

    /// An error that it is not what it should be.
    fn is_no(&self, wanted: &str, hint: &str) -> TraceError {
        match self.text {
            "" => self.damaged(format!("an empty field is no {wanted}"), hint),
            text => self.damaged(format!("`{text}` is no {wanted}"), hint),
        }
    }

    /// Whether it says that there is no value.
    pub(super) fn is_absent(&self) -> bool {
        ABSENT.iter().any(|absent| self.text.eq_ignore_ascii_case(absent))
    }

    /// Seconds since some moment that all of the trace shares, from a number or a date.
    pub(super) fn moment(&self) -> Result<Time, TraceError> {
        let date = || {
            let date: DateTime = self.text.parse().ok()?;
            Some(date.duration_since(DateTime::constant(1970, 1, 1, 0, 0, 0, 0)).as_secs())
        };
        self.number()
            .map(f64::floor)
            .and_then(whole)
            .or_else(date)
            .ok_or_else(|| self.is_no("time", "write seconds or YYYY-MM-DD HH:MM:SS"))
    }

    /// A duration in seconds, at least 0, from a number.
    pub(super) fn seconds(&self) -> Result<Time, TraceError> {
        self.number()
            .filter(|&number| number >= 0.0)
            .map(f64::ceil)
            .and_then(whole)
            .ok_or_else(|| self.is_no("duration", "write seconds, 0 or more"))
    }

    /// A duration in seconds, from Slurm's `[D-]HH:MM:SS`, `D-HH:MM`, `D-HH` or `MM:SS`.
    pub(super) fn clock(&self) -> Result<Time, TraceError> {
        clock(self.text).ok_or_else(|| self.is_no("duration", "write it as HH:MM:SS or D-HH:MM:SS"))
    }

    /// A count of devices, nodes or processors; a part of one counts as one.
    pub(super) fn count(&self) -> Result<u32, TraceError> {
        let fits = |number: &f64| (0.0..=f64::from(u32::MAX)).contains(number);
        self.number()
            .map(f64::ceil)
            .filter(fits)
            .map(|number| number as u32)
            .ok_or_else(|| self.is_no("count", "write a whole number, 0 or more"))
    }

    /// The finite number that it is.
    pub(super) fn number(&self) -> Option<f64> {
        self.text.parse().ok().filter(|number: &f64| number.is_finite())
    }
}

fn whole(number: f64) -> Option<Time> {
    (number.abs() <= FURTHEST as f64).then_some(number as Time)
}

fn clock(text: &str) -> Option<Time> {
    let part = |text: &str| {
        let digits = !text.is_empty() && text.len() <= 9 && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse::<Time>().ok()).flatten()
    };
    let (days, rest) = match text.split_once('-') {
        Some((days, rest)) => (Some(part(days)?), rest),
        None => (None, text),
    };
    // The seconds of `sacct --format=TotalCPU` and its kin may have a fraction; nobody plans by it.
    let rest = rest.split_once('.').map_or(rest, |(whole, _)| whole);
    let parts: Vec<Time> = rest.split(':').map(part).collect::<Option<_>>()?;
    let (hours, minutes, seconds) = match (days, parts[..].as_ref()) {
        (_, &[hours, minutes, seconds]) => (hours, minutes, seconds),
        (Some(_), &[hours, minutes]) => (hours, minutes, 0),
        (Some(_), &[hours]) => (hours, 0, 0),
        (None, &[minutes, seconds]) => (minutes / 60, minutes % 60, seconds),
        _ => return None,
    };
    let sound = minutes < 60 && seconds < 60;
    let total = ((days.unwrap_or(0) * 24 + hours) * 60 + minutes) * 60 + seconds;
    (sound && total <= FURTHEST).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slurms_durations() {
        let day = 24 * 3600;
        for (text, seconds) in [
            ("00:00:00", Some(0)),
            ("01:02:03", Some(3723)),
            ("100:00:00", Some(360_000)),
            ("1-00:00:00", Some(day)),
            ("2-03:04", Some(2 * day + 3 * 3600 + 240)),
            ("7-00", Some(7 * day)),
            ("90:00", Some(5400)),
            ("00:00:07.123", Some(7)),
            ("00:61:00", None),
            ("30", None),
            ("", None),
            ("-1:00", None),
            ("1-", None),
            ("UNLIMITED", None),
            ("999999999-00:00:00", None),
            ("99999999999-00:00:00", None),
        ] {
            assert_eq!(clock(text), seconds, "{text}");
        }
    }

    #[test]
    fn moments_are_numbers_or_dates() {
        let moment = |text| Field { file: Path::new("t"), line: 1, column: "c", text }.moment().ok();
        for (text, seconds) in [
            ("0", Some(0)),
            ("1506638400.75", Some(1_506_638_400)),
            ("1970-01-01 00:00:01", Some(1)),
            ("2017-09-28 22:40:00", Some(1_506_638_400)),
            ("2017-09-28T22:40", Some(1_506_638_400)),
            ("2023-02-29 00:00:00", None),
            ("1e300", None),
            ("soon", None),
        ] {
            assert_eq!(moment(text), seconds, "{text}");
        }
    }
}
