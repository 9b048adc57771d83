//! The fabric: the forest of switches over the cluster's nodes, and the texts it is read from.
//!
//! A topology file becomes a *draft* ([`draft`]: names and places, in one form for all dialects), the draft becomes a
//! [`tree::Fabric`] over slurmctld's node indexes ([`assemble`]). Whatever a text says, reading it takes time linear in
//! its length and in the names it stands for, and ends in a fabric, in errors, or in a fabric with warnings.

pub mod assemble;
pub mod conf_text;
pub mod diagnostic;
pub mod draft;
pub mod hostlist;
mod node_names;
pub mod topology_conf;
pub mod tree;

pub use node_names::NodeNames;

use conf_text::Source;
use diagnostic::Diagnostic;
use hostlist::Dialect;
use std::path::Path;
use tree::Fabric;

/// What came of a topology file.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// The fabric; none if any diagnostic is an error.
    pub fabric: Option<Fabric>,
    /// All findings in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads a topology file into a fabric over the given nodes.
///
/// `source` gives the text of a file, `exclude` names switches that are no part of the compute fabric: their lines
/// count as absent. A file that cannot be read, declares no switch or has an error gives no fabric and says why.
pub fn read(
    source: &Source<'_>,
    path: &Path,
    dialect: Dialect,
    nodes: &NodeNames,
    exclude: &[String],
) -> Reading {
    let (draft, found) = topology_conf::read(source, path, dialect);
    assemble::assemble(draft, path, nodes, exclude, found)
}

#[cfg(test)]
mod tests;
