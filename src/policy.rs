//! `lockstep.toml`: what the site has decided, beside slurm.conf.
//!
//! Unknown keys, wrong types and impossible values are errors with line and column: a rule that is misspelt must not
//! be a rule that is silently off.

use crate::fabric::diagnostic::{Diagnostic, Place, codes};
use crate::fabric::draft::Names;
use crate::fabric::hostlist::Dialect;
use serde::Deserialize;
use std::ops::Range;
use std::path::Path;
use toml::Spanned;

codes! {
    /// The codes of this module.
    CODES;
    INVALID = "P001" Error "lockstep.toml has a fault";
}

/// A site's policy. The default is that of a site without lockstep.toml.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Switches that are no part of the compute fabric.
    pub exclude: Vec<String>,
}

/// The file as it is written.
#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct File {
    fabric: FabricTable,
}

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct FabricTable {
    exclude: Vec<Spanned<String>>,
}

impl Policy {
    /// Reads the text of `lockstep.toml`; `path` is for messages only.
    ///
    /// # Errors
    /// The first fault, with its place.
    pub fn parse(text: &str, path: &Path, dialect: Dialect) -> Result<Self, Diagnostic> {
        let file: File = toml::from_str(text).map_err(|error| {
            let place = place(text, path, error.span().unwrap_or_default());
            Diagnostic::new(INVALID, place, error.message(), "docs/topology.md lists the keys")
        })?;
        let mut names = Names::new(dialect);
        let mut exclude = Vec::new();
        for list in &file.fabric.exclude {
            let start = place(text, path, list.span());
            // The column counts from the opening quote.
            let at = |column: usize| Place { column: start.column + column as u32, ..start.clone() };
            exclude.extend(names.expand(list.get_ref(), at)?);
        }
        Ok(Self { exclude })
    }
}

/// The line and column of a byte range of the text.
fn place(text: &str, path: &Path, span: Range<usize>) -> Place {
    let before = text.get(..span.start).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = before.matches('\n').count() as u32 + 1;
    Place { file: path.into(), line, column: before[line_start..].chars().count() as u32 + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Policy, String> {
        Policy::parse(text, Path::new("lockstep.toml"), Dialect::default()).map_err(|fault| fault.to_string())
    }

    #[test]
    fn an_exclude_list_is_hostlists() {
        assert_eq!(parse("").unwrap(), Policy::default());
        let policy = parse("[fabric]\nexclude = ['storage[1-2]', 'mgmt,top']\n").unwrap();
        assert_eq!(policy.exclude, ["storage1", "storage2", "mgmt", "top"]);
    }

    #[test]
    fn a_fault_is_named_with_its_place() {
        let texts = [
            "[fabric]\nexclud = []",
            "[fabric]\nexclude = 'storage'",
            "[fabric]\nexclude = [\n  'é[1',\n]",
            "[fabrik]",
            "x = ",
            "[fabric",
        ];
        insta::assert_snapshot!(texts.map(|text| parse(text).unwrap_err()).join("\n"), @r#"
        lockstep.toml:2:1: error[P001]: unknown field `exclud`, expected `exclude`; docs/topology.md lists the keys
        lockstep.toml:2:11: error[P001]: invalid type: string "storage", expected a sequence; docs/topology.md lists the keys
        lockstep.toml:3:5: error[T004]: `[` is never closed; add the missing `]`
        lockstep.toml:1:2: error[P001]: unknown field `fabrik`, expected `fabric`; docs/topology.md lists the keys
        lockstep.toml:1:5: error[P001]: string values must be quoted, expected literal string; docs/topology.md lists the keys
        lockstep.toml:1:8: error[P001]: unclosed table, expected `]`; docs/topology.md lists the keys
        "#);
    }
}
