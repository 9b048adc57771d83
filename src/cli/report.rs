//! How findings reach people and programs: coloured lines on a terminal, plain ones elsewhere, or JSON.

use anstream::eprintln;
use anstyle::{AnsiColor, Style};
use clap::ValueEnum;
use lockstep::fabric::diagnostic::{Diagnostic, Severity};
use serde::Serialize;
use std::error::Error;
use std::io::{ErrorKind, Write};

/// When to colour the output.
#[derive(Clone, Copy, ValueEnum)]
pub enum Color {
    /// On a terminal.
    Auto,
    /// Also in a pipe or file.
    Always,
    /// Nowhere.
    Never,
}

impl Color {
    /// Makes it the choice of all output from here on.
    pub fn apply(self) {
        match self {
            Self::Auto => anstream::ColorChoice::Auto,
            Self::Always => anstream::ColorChoice::Always,
            Self::Never => anstream::ColorChoice::Never,
        }
        .write_global();
    }
}

/// The style of what stands out least.
pub const FAINT: Style = Style::new().dimmed();
/// The style of headings.
pub const BOLD: Style = Style::new().bold();

fn severity_style(severity: Severity) -> Style {
    let color = match severity {
        Severity::Note => AnsiColor::Cyan,
        Severity::Warning => AnsiColor::Yellow,
        Severity::Error => AnsiColor::Red,
    };
    color.on_default().bold()
}

/// One finding as a line with the severity in colour.
pub fn line(diagnostic: &Diagnostic) -> String {
    let Diagnostic { code, place, what, hint } = diagnostic;
    let style = severity_style(code.severity);
    format!("{place}: {style}{}[{}]{style:#}: {what}; {hint}", code.severity, code.id)
}

/// Prints findings to stderr, for commands whose output is something else.
pub fn to_stderr(diagnostics: &[Diagnostic]) {
    for diagnostic in diagnostics {
        eprintln!("{}", line(diagnostic));
    }
}

/// Prints why a command could not do its work.
pub fn failure(failure: &dyn Error) {
    let style = severity_style(Severity::Error);
    eprintln!("{style}lockstep:{style:#} {failure}");
}

/// A finding as JSON. Line and column are null for a whole file.
#[derive(Serialize)]
pub struct Finding<'a> {
    code: &'a str,
    severity: String,
    file: String,
    line: Option<u32>,
    column: Option<u32>,
    what: &'a str,
    hint: &'a str,
}

impl<'a> From<&'a Diagnostic> for Finding<'a> {
    fn from(Diagnostic { code, place, what, hint }: &'a Diagnostic) -> Self {
        Self {
            code: code.id,
            severity: code.severity.to_string(),
            file: place.file.display().to_string(),
            line: (place.line > 0).then_some(place.line),
            column: (place.line > 0).then_some(place.column),
            what,
            hint,
        }
    }
}

/// A value as indented JSON, with a line's end.
pub fn json(value: &impl Serialize) -> Result<String, Box<dyn Error>> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}

/// Prints a command's output. A reader that has seen enough, such as `head`, is no failure.
pub fn show(text: &str) -> Result<(), Box<dyn Error>> {
    let mut stdout = anstream::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        done => Ok(done?),
    }
}
