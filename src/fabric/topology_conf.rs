//! `topology.conf`: the tree form (`SwitchName`) and the block form (`BlockName`, `BlockSizes`).

use super::NodeNames;
use super::blocks::{BLOCK_SIZE_HINT, BLOCK_SIZES, BlockSizes};
use super::conf_text::{self, Line, Pair, Source};
use super::diagnostic::{Diagnostic, codes};
use super::draft::{Draft, DraftSwitch, Hanging, NODES_AND_SWITCHES, Names};
use super::hostlist::{self, Dialect};
use super::tree::{Fabric, SwitchId};
use std::path::Path;

codes! {
    /// The codes of this module.
    CODES;
    UNKNOWN_KEY = "T007" Error "a key that Slurm does not know";
    MIXED_FORMS = "T009" Error "switches and blocks in one file";
}

/// Reads the file and what it includes. Lines with a fault are left out of the draft and reported.
pub fn read(source: &Source<'_>, path: &Path, dialect: Dialect) -> (Draft, Vec<Diagnostic>) {
    let (lines, diagnostics) = conf_text::read(source, path);
    let mut reader = Reader { draft: Draft::default(), diagnostics, names: Names::new(dialect), form: None };
    for line in &lines {
        if let Err(diagnostic) = reader.line(line) {
            reader.diagnostics.push(diagnostic);
        }
    }
    if reader.form == Some(Form::Blocks) {
        reader.draft.blocks.get_or_insert_with(BlockSizes::by_default);
    }
    (reader.draft, reader.diagnostics)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Tree,
    Blocks,
}

struct Reader {
    draft: Draft,
    diagnostics: Vec<Diagnostic>,
    names: Names,
    form: Option<Form>,
}

impl Reader {
    fn line(&mut self, line: &Line) -> Result<(), Diagnostic> {
        let mut pairs = line.pairs();
        let Some(first) = pairs.next() else { return Ok(()) };
        let form = if first.is("SwitchName") {
            Form::Tree
        } else if first.is("BlockName") || first.is("BlockSizes") {
            Form::Blocks
        } else {
            return Err(unknown(first, "start the line with SwitchName, BlockName, BlockSizes or Include"));
        };
        if *self.form.get_or_insert(form) != form {
            let what = format!("`{}` in a file of the other form", first.key);
            return Err(Diagnostic::new(
                MIXED_FORMS,
                first.place(),
                what,
                "describe the fabric as switches or as blocks, not both",
            ));
        }
        if first.is("BlockSizes") {
            self.draft.blocks = Some(block_sizes(first)?);
            return pairs
                .next()
                .map_or(Ok(()), |pair| Err(unknown(pair, "give BlockSizes a line of its own")));
        }
        let below = match form {
            Form::Tree => self.below_switch(first, pairs)?,
            Form::Blocks => self.below_block(pairs)?,
        };
        self.draft.switches.push(DraftSwitch {
            name: first.value.into(),
            place: first.value_place(1),
            below,
        });
        Ok(())
    }

    fn below_switch<'a>(
        &mut self,
        first: Pair<'a>,
        pairs: impl Iterator<Item = Pair<'a>>,
    ) -> Result<Hanging, Diagnostic> {
        let (mut nodes, mut switches) = (None, None);
        for pair in pairs {
            if pair.is("Nodes") {
                nodes = Some(pair);
            } else if pair.is("Switches") {
                switches = Some(pair);
            } else if !pair.is("LinkSpeed") {
                return Err(unknown(pair, "a switch has Nodes or Switches, and perhaps LinkSpeed"));
            }
        }
        match (nodes, switches) {
            (Some(nodes), None) => Ok(Hanging::Nodes(self.expand(nodes)?, nodes.value_place(1))),
            (None, Some(switches)) => Ok(Hanging::Switches(self.expand(switches)?, switches.value_place(1))),
            (None, None) => Ok(Hanging::Nothing),
            (Some(_), Some(_)) => Err(Diagnostic::new(
                NODES_AND_SWITCHES,
                first.place(),
                format!("switch `{}` has both Nodes and Switches", first.value),
                "give it `Nodes=` if it is a leaf, `Switches=` if it is not",
            )),
        }
    }

    fn below_block<'a>(&mut self, pairs: impl Iterator<Item = Pair<'a>>) -> Result<Hanging, Diagnostic> {
        let mut below = Hanging::Nothing;
        for pair in pairs {
            if !pair.is("Nodes") {
                return Err(unknown(pair, "a block has Nodes"));
            }
            below = Hanging::Nodes(self.expand(pair)?, pair.value_place(1));
        }
        Ok(below)
    }

    fn expand(&mut self, pair: Pair<'_>) -> Result<Vec<String>, Diagnostic> {
        self.names.expand(pair.value, |column| pair.value_place(column))
    }
}

fn unknown(pair: Pair<'_>, hint: &str) -> Diagnostic {
    Diagnostic::new(UNKNOWN_KEY, pair.place(), format!("`{}` is not a key that belongs here", pair.key), hint)
}

fn block_sizes(pair: Pair<'_>) -> Result<BlockSizes, Diagnostic> {
    let mut sizes = Vec::new();
    let mut columns = Vec::new();
    let mut column = 1;
    for item in pair.value.split(',') {
        let size = item.trim().parse().map_err(|_| {
            Diagnostic::new(
                BLOCK_SIZES,
                pair.value_place(column),
                format!("`{item}` is not a number of nodes"),
                BLOCK_SIZE_HINT,
            )
        })?;
        sizes.push(size);
        columns.push(column);
        column += item.chars().count() + 1;
    }
    BlockSizes::read(&sizes).map_err(|(at, what)| {
        Diagnostic::new(BLOCK_SIZES, pair.value_place(columns[at]), what, BLOCK_SIZE_HINT)
    })
}

/// Writes a fabric in the tree form. Read again over the same nodes it gives the same fabric, but for names with
/// brackets or commas, which joined blocks have and a switch cannot: these become underscores.
pub fn write(fabric: &Fabric, nodes: &NodeNames) -> String {
    let name = |id: SwitchId| fabric.switch(id).name.replace(['[', ']', ','], "_");
    let mut text = String::new();
    for (id, switch) in fabric.switches() {
        let (key, below) = if switch.is_leaf() {
            ("Nodes", hostlist::fold(fabric.nodes_under(id).iter().filter_map(|&node| nodes.name(node))))
        } else {
            ("Switches", hostlist::fold(switch.children.iter().map(|&child| name(child))))
        };
        text += &format!("SwitchName={} {key}={below}\n", name(id));
    }
    text
}
