//! The fabric: the forest of switches over the cluster's nodes, and the texts it is read from.
//!
//! A topology file becomes a *draft* ([`draft`]: names and places, in one form for all dialects), the draft becomes a
//! [`tree::Fabric`] over slurmctld's node indexes ([`assemble`]). Whatever a text says, reading it takes time linear in
//! its length and in the names it stands for, and ends in a fabric, in errors, or in a fabric with warnings.

pub mod assemble;
pub mod blocks;
pub mod conf_text;
pub mod diagnostic;
pub mod draft;
pub mod hostlist;
pub mod lint;
mod node_names;
pub mod review;
pub mod topology_conf;
pub mod topology_yaml;
pub mod tree;

pub use node_names::NodeNames;

use conf_text::Source;
use diagnostic::Diagnostic;
use draft::{Draft, Hanging};
use hostlist::Dialect;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use tree::Fabric;

/// What came of a topology file.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// The fabric; none if any diagnostic is an error.
    pub fabric: Option<Fabric>,
    /// All findings in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
}

/// A topology file to read.
#[derive(Clone, Copy)]
pub struct TopologyFile<'a> {
    /// Gives the text of a file.
    pub source: &'a Source<'a>,
    /// The file: YAML by its extension `.yaml` or `.yml`, else in the form of topology.conf.
    pub path: &'a Path,
    /// What the running Slurm takes for a hostlist.
    pub dialect: Dialect,
    /// The topology to use of a YAML file with several; none for the cluster's default.
    pub topology: Option<&'a str>,
    /// Switches that are no part of the compute fabric: their lines count as absent.
    pub exclude: &'a [String],
}

impl TopologyFile<'_> {
    /// Reads the file into a fabric over the given nodes. A file that cannot be read, declares no switch or has an
    /// error gives no fabric and says why.
    pub fn read(&self, nodes: &NodeNames) -> Reading {
        let (draft, found) = self.draft();
        assemble::assemble(draft, self.path, nodes, self.exclude, found)
    }

    /// The nodes that the files name, in their order: a cluster for files that are read without slurm.conf.
    pub fn named_nodes<'a>(files: impl IntoIterator<Item = TopologyFile<'a>>) -> NodeNames {
        let names =
            files.into_iter().flat_map(|file| file.draft().0.switches).flat_map(|switch| {
                match switch.below {
                    Hanging::Nodes(names, _) => names,
                    Hanging::Switches(..) | Hanging::Nothing => Vec::new(),
                }
            });
        let mut seen = HashSet::new();
        NodeNames::new(names.filter(|name| seen.insert(name.clone())).map(Some))
    }

    fn draft(&self) -> (Draft, Vec<Diagnostic>) {
        if is_yaml(self.path) {
            topology_yaml::read(self.source, self.path, self.dialect, self.topology)
        } else {
            topology_conf::read(self.source, self.path, self.dialect)
        }
    }
}

/// The topology file in the folder of slurm.conf: topology.yaml if it exists, else topology.conf, as in Slurm.
pub fn file_in(folder: &Path, exists: impl Fn(&Path) -> bool) -> PathBuf {
    let yaml = folder.join("topology.yaml");
    if exists(&yaml) { yaml } else { folder.join("topology.conf") }
}

/// Whether a file's name says that it is YAML.
pub fn is_yaml(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
}

#[cfg(test)]
mod tests;
