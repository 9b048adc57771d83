//! What a topology file says, before anyone knows the cluster's nodes: the common form of all its dialects.

use super::blocks::BlockSizes;
use super::diagnostic::{Diagnostic, Place, codes};
use super::hostlist::{Dialect, Hostlist};

codes! {
    /// The codes of this module.
    CODES;
    HOSTLIST = "T004" Error "a hostlist breaks Slurm's rules";
    TOO_MANY_NAMES = "T005" Error "the files stand for more names than any cluster has";
    NODES_AND_SWITCHES = "T008" Error "a switch with both nodes and switches below it";
}

/// How many names one topology may stand for in all: time and memory stay bounded whatever the text says.
const MAX_NAMES: u64 = 4 << 20;

/// The switches or blocks of a topology file, in its order.
#[derive(Debug, Default)]
pub struct Draft {
    /// The switches or blocks.
    pub switches: Vec<DraftSwitch>,
    /// For blocks, how they join to larger ones; none for a tree of switches.
    pub blocks: Option<BlockSizes>,
}

/// A line that declares a switch or a block.
#[derive(Debug)]
pub struct DraftSwitch {
    /// Its name.
    pub name: String,
    /// Where the name stands.
    pub place: Place,
    /// What hangs on it.
    pub below: Hanging,
}

/// What a declared switch names.
#[derive(Debug)]
pub enum Hanging {
    /// Names of nodes, and where they stand.
    Nodes(Vec<String>, Place),
    /// Names of switches, and where they stand.
    Switches(Vec<String>, Place),
    /// Nothing yet: newer versions of Slurm let nodes join later.
    Nothing,
}

/// Expands hostlists within one budget, and turns their errors into diagnostics.
pub struct Names {
    dialect: Dialect,
    left: u64,
}

impl Names {
    /// A fresh budget.
    pub fn new(dialect: Dialect) -> Self {
        Self { dialect, left: MAX_NAMES }
    }

    /// The names of a hostlist; `place` gives the place of a column in it.
    ///
    /// # Errors
    /// What is wrong with the hostlist, or that the budget is spent.
    pub fn expand(&mut self, text: &str, place: impl Fn(usize) -> Place) -> Result<Vec<String>, Diagnostic> {
        let list = Hostlist::parse(text, self.dialect)
            .map_err(|error| Diagnostic::new(HOSTLIST, place(error.column), error.what, error.hint))?;
        match self.left.checked_sub(list.count()) {
            Some(left) => self.left = left,
            None => {
                let what = format!("more than {MAX_NAMES} names up to here");
                return Err(Diagnostic::new(TOO_MANY_NAMES, place(1), what, "check the ranges"));
            }
        }
        Ok(list.names())
    }
}
