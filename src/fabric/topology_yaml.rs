//! `topology.yaml`, which Slurm reads from 25.05 on: several named topologies, of which a partition chooses one.

use super::blocks::{BLOCK_SIZE_HINT, BLOCK_SIZES, BlockSizes};
use super::conf_text::{Source, unreadable};
use super::diagnostic::{Diagnostic, Place, codes};
use super::draft::{Draft, DraftSwitch, Hanging, NODES_AND_SWITCHES, Names};
use super::hostlist::Dialect;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_saphyr::{Location, Spanned};
use std::path::Path;
use std::sync::Arc;

codes! {
    /// The codes of this module.
    CODES;
    STRUCTURE = "T020" Error "a YAML file that is no list of topologies";
    NO_SUCH_TOPOLOGY = "T021" Error "a topology that the file does not define";
    NOT_A_FOREST = "T022" Error "a topology that is neither tree nor block, or both";
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Topology {
    topology: Spanned<String>,
    #[serde(default)]
    cluster_default: bool,
    tree: Option<Tree>,
    block: Option<Block>,
    flat: Option<IgnoredAny>,
    ring: Option<IgnoredAny>,
    torus3d: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tree {
    switches: Vec<TreeSwitch>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TreeSwitch {
    switch: Spanned<String>,
    children: Option<Spanned<String>>,
    nodes: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Block {
    #[serde(default)]
    block_sizes: Vec<Spanned<i64>>,
    blocks: Vec<BlockEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BlockEntry {
    block: Spanned<String>,
    nodes: Option<Spanned<String>>,
}

/// Reads one topology of the file: the one with the given name, or the one that Slurm uses where a partition names
/// none (the first with `cluster_default`, else the first).
pub fn read(
    source: &Source<'_>,
    path: &Path,
    dialect: Dialect,
    name: Option<&str>,
) -> (Draft, Vec<Diagnostic>) {
    let text = match source(path) {
        Ok(text) => text,
        Err(error) => return (Draft::default(), vec![unreadable(path, Place::file(path), &error)]),
    };
    let mut reader =
        Reader { file: path.into(), text: &text, names: Names::new(dialect), diagnostics: Vec::new() };
    let draft = reader.read(name).unwrap_or_else(|diagnostic| {
        reader.diagnostics.push(diagnostic);
        Draft::default()
    });
    (draft, reader.diagnostics)
}

/// The names of the topologies that the text defines, in its order; empty if it cannot be read.
pub fn names(text: &str) -> Vec<String> {
    parse(text).map_or(Vec::new(), |topologies| topologies.into_iter().map(|t| t.topology.value).collect())
}

/// Why and where a text is no list of topologies, and the field's path, such as `[0].tree.switches[3].nodes`.
struct Fault {
    path: String,
    location: Option<Location>,
    message: String,
}

fn parse(text: &str) -> Result<Vec<Topology>, Fault> {
    // A snippet of the source would break a message's one-line form.
    let options = serde_saphyr::options! { with_snippet: false };
    let mut path = String::new();
    serde_saphyr::with_deserializer_from_str_with_options(text, options, |yaml| {
        serde_path_to_error::deserialize(yaml).map_err(|error| {
            path = error.path().to_string();
            error.into_inner()
        })
    })
    .map_err(|error| Fault { path, location: error.location(), message: error.to_string() })
}

struct Reader<'a> {
    file: Arc<Path>,
    text: &'a str,
    names: Names,
    diagnostics: Vec<Diagnostic>,
}

impl Reader<'_> {
    fn read(&mut self, name: Option<&str>) -> Result<Draft, Diagnostic> {
        let topologies = parse(self.text).map_err(|fault| self.structure(&fault))?;
        let chosen = match name {
            Some(name) => topologies.iter().position(|t| t.topology.value == name),
            None => {
                topologies.iter().position(|t| t.cluster_default).or((!topologies.is_empty()).then_some(0))
            }
        };
        let Some(topology) = chosen.and_then(|i| topologies.into_iter().nth(i)) else {
            let what =
                name.map_or("no topology is defined".into(), |name| format!("no topology is named `{name}`"));
            let hint = "add an entry such as `- topology: NAME` with a `tree` or a `block`";
            return Err(Diagnostic::new(NO_SUCH_TOPOLOGY, Place::file(&self.file), what, hint));
        };
        match (topology.tree, topology.block, topology.flat.or(topology.ring).or(topology.torus3d)) {
            (Some(tree), None, None) => Ok(self.tree(tree)),
            (None, Some(block), None) => self.block(block),
            (None, None, _) => {
                Err(self.no_forest(&topology.topology, "has neither `tree` nor `block`, so no switches"))
            }
            _ => Err(self.no_forest(&topology.topology, "is of several kinds at once")),
        }
    }

    fn tree(&mut self, tree: Tree) -> Draft {
        let mut draft = Draft::default();
        for TreeSwitch { switch, children, nodes } in tree.switches {
            let place = self.place(switch.referenced);
            let below = match (nodes, children) {
                (Some(nodes), None) => {
                    self.expand(&nodes).map(|names| Hanging::Nodes(names, self.place(nodes.referenced)))
                }
                (None, Some(children)) => self
                    .expand(&children)
                    .map(|names| Hanging::Switches(names, self.place(children.referenced))),
                (None, None) => Some(Hanging::Nothing),
                (Some(_), Some(_)) => {
                    let what = format!("switch `{}` has both nodes and children", switch.value);
                    let hint = "give it `nodes` if it is a leaf, `children` if it is not";
                    self.diagnostics.push(Diagnostic::new(NODES_AND_SWITCHES, place.clone(), what, hint));
                    None
                }
            };
            draft.switches.extend(below.map(|below| DraftSwitch { name: switch.value, place, below }));
        }
        draft
    }

    fn block(&mut self, block: Block) -> Result<Draft, Diagnostic> {
        let sizes: Vec<i64> = block.block_sizes.iter().map(|size| size.value).collect();
        let sizes = match &sizes[..] {
            [] => BlockSizes::by_default(),
            sizes => BlockSizes::read(sizes).map_err(|(at, what)| {
                let place = self.place(block.block_sizes[at].referenced);
                Diagnostic::new(BLOCK_SIZES, place, what, BLOCK_SIZE_HINT)
            })?,
        };
        let mut draft = Draft { blocks: Some(sizes), ..Draft::default() };
        for BlockEntry { block, nodes } in block.blocks {
            let below = match nodes {
                Some(nodes) => {
                    self.expand(&nodes).map(|names| Hanging::Nodes(names, self.place(nodes.referenced)))
                }
                None => Some(Hanging::Nothing),
            };
            let place = self.place(block.referenced);
            draft.switches.extend(below.map(|below| DraftSwitch { name: block.value, place, below }));
        }
        Ok(draft)
    }

    fn expand(&mut self, list: &Spanned<String>) -> Option<Vec<String>> {
        let place = self.place(list.referenced);
        let text = self.text;
        let at = |column: usize| {
            // A quote stands before the first character of the list.
            let line = text.lines().nth(place.line.saturating_sub(1) as usize).unwrap_or_default();
            let first = line.chars().nth(place.column.saturating_sub(1) as usize);
            let quote = u32::from(matches!(first, Some('"' | '\'')));
            Place { column: place.column + quote + column as u32 - 1, ..place.clone() }
        };
        self.names.expand(&list.value, at).map_err(|diagnostic| self.diagnostics.push(diagnostic)).ok()
    }

    fn place(&self, location: Location) -> Place {
        Place { file: self.file.clone(), line: location.line() as u32, column: location.column() as u32 }
    }

    fn structure(&self, Fault { path, location, message }: &Fault) -> Diagnostic {
        let place = location.map_or(Place::file(&self.file), |location| self.place(location));
        let message = message.rsplit_once(" at line ").map_or(&**message, |(message, _)| message);
        let path = path.strip_suffix(".value").unwrap_or(path);
        let what = if path == "." { message.into() } else { format!("{path}: {message}") };
        let hint = "see topology.yaml(5) for the form: a list of topologies, with hostlists as strings";
        Diagnostic::new(STRUCTURE, place, what, hint)
    }

    fn no_forest(&self, topology: &Spanned<String>, why: &str) -> Diagnostic {
        let what = format!("topology `{}` {why}", topology.value);
        Diagnostic::new(
            NOT_A_FOREST,
            self.place(topology.referenced),
            what,
            "name a topology with a `tree` or a `block`",
        )
    }
}
