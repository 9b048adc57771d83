//! What is wrong with a text, where, and what to do about it.
//!
//! Every finding of a reader carries a stable code, so that a site can look it up in `docs/topology.md` and a script
//! can match it. A code always has the same severity: an *error* means the text gives no fabric, a *warning* that one
//! fixed, documented rule settled the matter, a *note* that a sound fabric has a trait worth knowing.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing, nothing to mend.
    Note,
    /// A rule settled it; someone should look.
    Warning,
    /// The text cannot be used.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// A kind of finding: its stable name, its severity and its meaning in one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Code {
    /// The stable name, such as `T003`.
    pub id: &'static str,
    /// The severity of every finding of this kind.
    pub severity: Severity,
    /// What findings of this kind have in common.
    pub meaning: &'static str,
}

/// Declares a module's codes as constants, and all of them as a list, against which the documentation is tested.
#[macro_export]
macro_rules! codes {
    ($(#[$all:meta])* $list:ident; $($name:ident = $id:literal $severity:ident $meaning:literal;)+) => {
        $(#[doc = concat!($id, ": ", $meaning, ".")]
        pub const $name: $crate::fabric::diagnostic::Code = $crate::fabric::diagnostic::Code {
            id: $id,
            severity: $crate::fabric::diagnostic::Severity::$severity,
            meaning: $meaning,
        };)+
        $(#[$all])*
        pub const $list: &[$crate::fabric::diagnostic::Code] = &[$($name),+];
    };
}
pub use codes;

/// A place in a text. Line and column count from 1, columns in characters; both are 0 for the file as a whole.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The file as it was named, or as an `Include` line named it.
    pub file: Arc<Path>,
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

impl Place {
    /// The file as a whole.
    pub fn file(file: &Path) -> Self {
        Self { file: file.into(), line: 0, column: 0 }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if self.line > 0 {
            write!(f, ":{}:{}", self.line, self.column)?;
        }
        Ok(())
    }
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Its kind.
    pub code: Code,
    /// Where it is.
    pub place: Place,
    /// What was found.
    pub what: String,
    /// What to do about it.
    pub hint: String,
}

impl Diagnostic {
    /// A finding of the given kind.
    pub fn new(code: Code, place: Place, what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { code, place, what: what.into(), hint: hint.into() }
    }

    /// Whether the text cannot be used because of it.
    pub fn is_error(&self) -> bool {
        self.code.severity == Severity::Error
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { code, place, what, hint } = self;
        write!(f, "{place}: {}[{}]: {what}; {hint}", code.severity, code.id)
    }
}
