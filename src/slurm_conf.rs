//! What Lockstep's command line needs to know of slurm.conf: the nodes in slurmctld's order, the partitions, and
//! any single setting with its place.
//!
//! Keys that nobody asks for are not judged: slurmctld does that, and each version has others.

use crate::fabric::NodeNames;
use crate::fabric::conf_text::{self, Line, Pair, Source};
use crate::fabric::diagnostic::{Diagnostic, Place, codes};
use crate::fabric::draft::Names;
use crate::fabric::hostlist::Dialect;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::iter::Peekable;
use std::path::Path;
use std::str::{Chars, FromStr};

codes! {
    /// The codes of this module.
    CODES;
    NO_NODES = "S001" Error "slurm.conf declares no node";
    NODE_TWICE = "S002" Error "a node is declared twice";
}

/// A release of Slurm, such as 22.05.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release {
    /// The year.
    pub major: u16,
    /// The month.
    pub minor: u16,
}

impl Release {
    /// The release of a year and month: (22, 5) for 22.05.
    pub const fn new(major: u16, minor: u16) -> Self {
        Self { major, minor }
    }

    /// What this release takes for a hostlist.
    pub fn dialect(self) -> Dialect {
        Dialect::of_slurm(self.major, self.minor)
    }
}

impl std::fmt::Display for Release {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:02}.{:02}", self.major, self.minor)
    }
}

/// A text that names no release.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no release of Slurm; write it as 22.05 or 24.11.5")]
pub struct NoRelease(String);

impl FromStr for Release {
    type Err = NoRelease;

    /// Reads `22.05`, `22.05.8`, or what `scontrol --version` prints.
    fn from_str(text: &str) -> Result<Self, NoRelease> {
        let version = text.split_whitespace().last().unwrap_or_default();
        let mut parts = version.split(['.', '-']).map(|part| part.parse().ok());
        match (parts.next().flatten(), parts.next().flatten()) {
            (Some(major), Some(minor)) => Ok(Self { major, minor }),
            _ => Err(NoRelease(text.trim().into())),
        }
    }
}

/// The value of a key, and where it stands.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The value without quotes.
    pub value: String,
    /// Where the value stands.
    pub place: Place,
}

/// A `PartitionName` line.
#[derive(Clone, Debug)]
pub struct Partition {
    /// Its name.
    pub name: Setting,
    /// `Nodes`, as it was written.
    pub nodes: Option<Setting>,
    /// `Topology`: which topology of topology.yaml it uses.
    pub topology: Option<Setting>,
}

/// The parts of slurm.conf that Lockstep reads.
#[derive(Clone, Debug, Default)]
pub struct SlurmConf {
    nodes: Vec<String>,
    partitions: Vec<Partition>,
    node_sets: BTreeMap<String, String>,
    settings: BTreeMap<String, Setting>,
}

impl SlurmConf {
    /// Reads slurm.conf and what it includes.
    pub fn read(source: &Source<'_>, path: &Path, dialect: Dialect) -> (Self, Vec<Diagnostic>) {
        let (lines, diagnostics) = conf_text::read(source, path);
        let mut reader = Reader {
            conf: Self::default(),
            names: Names::new(dialect),
            declared: BTreeMap::new(),
            diagnostics,
        };
        for line in &lines {
            reader.line(line);
        }
        let Reader { mut conf, mut diagnostics, .. } = reader;
        if conf.nodes.is_empty() && diagnostics.is_empty() {
            let hint = "add `NodeName=` lines, or ask the running controller with --live";
            diagnostics.push(Diagnostic::new(NO_NODES, Place::file(path), "no NodeName line", hint));
        }
        conf.nodes.sort_by(|a, b| natural_order(a, b));
        (conf, diagnostics)
    }

    /// The nodes in the order of slurmctld's table.
    pub fn nodes(&self) -> &[String] {
        &self.nodes
    }

    /// The nodes with their indexes in slurmctld's table.
    pub fn node_names(&self) -> NodeNames {
        NodeNames::new(self.nodes.iter().map(Some))
    }

    /// The partitions in the order of the file.
    pub fn partitions(&self) -> &[Partition] {
        &self.partitions
    }

    /// The last value of a key, in upper or lower case.
    pub fn setting(&self, key: &str) -> Option<&Setting> {
        self.settings.get(&key.to_ascii_lowercase())
    }

    /// The nodes of a partition, with `ALL` and node sets resolved. Names that are no nodes are left out.
    pub fn nodes_of(
        &self,
        partition: &Partition,
        nodes: &NodeNames,
        dialect: Dialect,
    ) -> crate::nodeset::NodeSet {
        let mut set = crate::nodeset::NodeSet::new(nodes.size());
        let Some(list) = &partition.nodes else { return set };
        for name in Names::new(dialect).expand(&list.value, |_| list.place.clone()).unwrap_or_default() {
            if name.eq_ignore_ascii_case("ALL") {
                return crate::nodeset::NodeSet::full(nodes.size());
            }
            let members = match self.node_sets.get(&name) {
                Some(members) => {
                    Names::new(dialect).expand(members, |_| list.place.clone()).unwrap_or_default()
                }
                None => vec![name],
            };
            members.iter().filter_map(|name| nodes.id(name)).for_each(|node| set.insert(node));
        }
        set
    }
}

struct Reader {
    conf: SlurmConf,
    names: Names,
    declared: BTreeMap<String, Place>,
    diagnostics: Vec<Diagnostic>,
}

impl Reader {
    fn line(&mut self, line: &Line) {
        let mut pairs = line.pairs();
        let Some(first) = pairs.next() else { return };
        let find = |key: &str| line.pairs().find(|pair| pair.is(key)).map(setting);
        if first.is("NodeName") {
            self.node(first);
        } else if first.is("PartitionName") {
            if !first.value.eq_ignore_ascii_case("DEFAULT") {
                let (nodes, topology) = (find("Nodes"), find("Topology"));
                self.conf.partitions.push(Partition { name: setting(first), nodes, topology });
            }
        } else if first.is("NodeSet") {
            let nodes = find("Nodes").map_or(String::new(), |nodes| nodes.value);
            self.conf.node_sets.insert(first.value.into(), nodes);
        } else {
            let settings = line.pairs().map(|pair| (pair.key.to_ascii_lowercase(), setting(pair)));
            self.conf.settings.extend(settings);
        }
    }

    fn node(&mut self, pair: Pair<'_>) {
        if pair.value.eq_ignore_ascii_case("DEFAULT") {
            return;
        }
        let names = match self.names.expand(pair.value, |column| pair.value_place(column)) {
            Ok(names) => names,
            Err(diagnostic) => return self.diagnostics.push(diagnostic),
        };
        for name in names {
            if let Some(before) = self.declared.get(&name) {
                let what = format!("node `{name}` is declared again, first at {before}");
                let hint = "keep one of the two lines";
                return self.diagnostics.push(Diagnostic::new(NODE_TWICE, pair.value_place(1), what, hint));
            }
            self.declared.insert(name.clone(), pair.value_place(1));
            self.conf.nodes.push(name);
        }
    }
}

fn setting(pair: Pair<'_>) -> Setting {
    Setting { value: pair.value.into(), place: pair.value_place(1) }
}

/// The order in which slurmctld sorts its nodes by name: runs of digits count as numbers, unless one of them starts
/// with a zero; then they compare like decimals.
pub fn natural_order(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a.chars().peekable(), b.chars().peekable());
    loop {
        if let (Some(x), Some(y)) = (digit(&mut a), digit(&mut b)) {
            let by_number = if x == '0' || y == '0' { fraction_order } else { number_order };
            match by_number(&mut a, &mut b) {
                Ordering::Equal => continue,
                unequal => return unequal,
            }
        }
        match (a.next(), b.next()) {
            (None, None) => return Ordering::Equal,
            (x, y) if x == y => {}
            (x, y) => return x.cmp(&y),
        }
    }
}

fn digit(chars: &mut Peekable<Chars<'_>>) -> Option<char> {
    chars.peek().copied().filter(char::is_ascii_digit)
}

/// The longer run of digits is greater; of equally long ones the greater number.
fn number_order(a: &mut Peekable<Chars<'_>>, b: &mut Peekable<Chars<'_>>) -> Ordering {
    let mut first_difference = Ordering::Equal;
    loop {
        match (a.next_if(char::is_ascii_digit), b.next_if(char::is_ascii_digit)) {
            (None, None) => return first_difference,
            (Some(x), Some(y)) => first_difference = first_difference.then(x.cmp(&y)),
            (x, y) => return x.is_some().cmp(&y.is_some()),
        }
    }
}

/// The first different digit decides, a run that ends first is less.
fn fraction_order(a: &mut Peekable<Chars<'_>>, b: &mut Peekable<Chars<'_>>) -> Ordering {
    loop {
        match (a.next_if(char::is_ascii_digit), b.next_if(char::is_ascii_digit)) {
            (None, None) => return Ordering::Equal,
            (x, y) if x == y => {}
            (x, y) => return x.cmp(&y),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    fn read(files: &[(&str, &str)]) -> (SlurmConf, Vec<Diagnostic>) {
        let source = |path: &Path| {
            let found = files.iter().find(|(name, _)| Path::new(name) == path);
            found.map(|(_, text)| text.to_string()).ok_or(io::ErrorKind::NotFound.into())
        };
        SlurmConf::read(&source, Path::new(files[0].0), Dialect::default())
    }

    #[test]
    fn nodes_partitions_and_settings_across_includes() {
        let main = "ClusterName=Deep\nselecttype=select/cons_tres\nInclude nodes-%c.conf\nPartitionName=DEFAULT State=UP\n\
            PartitionName=train Nodes=set Topology=gpu\nPartitionName=all Nodes=ALL\nPartitionName=none\n\
            SchedulerParameters=defer,bf_window=1\nSchedulerParameters=bf_window=2\n";
        let nodes = "NodeName=DEFAULT CPUs=8\nNodeName=n[1-10] Gres=gpu:8 # eight\nNodeName=login State=FUTURE\nNodeSet=set Nodes=n[2-3],x\n";
        let (conf, found) = read(&[("slurm.conf", main), ("nodes-deep.conf", nodes)]);
        assert_eq!(found, []);
        assert_eq!(conf.nodes().join(" "), "login n1 n2 n3 n4 n5 n6 n7 n8 n9 n10");
        assert_eq!(conf.setting("SelectType").unwrap().value, "select/cons_tres");
        let parameters = conf.setting("SchedulerParameters").unwrap();
        assert_eq!((parameters.value.as_str(), parameters.place.line), ("bf_window=2", 9));
        let names = conf.node_names();
        let counts = conf.partitions().iter().map(|p| conf.nodes_of(p, &names, Dialect::default()).count());
        assert_eq!(counts.collect::<Vec<_>>(), [2, 11, 0]);
        assert_eq!(conf.partitions()[0].topology.as_ref().unwrap().value, "gpu");
    }

    #[test]
    fn a_file_without_nodes_and_a_node_declared_twice_are_errors() {
        let messages =
            |text| read(&[("slurm.conf", text)]).1.iter().map(|d| d.to_string()).collect::<Vec<_>>();
        assert_eq!(
            messages("ClusterName=x\n"),
            [
                "slurm.conf: error[S001]: no NodeName line; add `NodeName=` lines, or ask the running controller with --live"
            ]
        );
        assert_eq!(
            messages("NodeName=a[1-3]\nNodeName=a2\nNodeName=b[\n"),
            [
                "slurm.conf:2:10: error[S002]: node `a2` is declared again, first at slurm.conf:1:10; keep one of the two lines",
                "slurm.conf:3:11: error[T004]: `[` is never closed; add the missing `]`"
            ]
        );
    }

    #[test]
    fn names_sort_as_in_slurmctld() {
        let mut names = ["b", "a10b1", "a10b01", "a10", "a2", "a1", "a01", "a00", "a"];
        names.sort_by(|a, b| natural_order(a, b));
        assert_eq!(names, ["a", "a00", "a01", "a1", "a2", "a10", "a10b01", "a10b1", "b"]);
    }

    #[test]
    fn a_release_is_read_from_what_slurm_prints() {
        for text in ["22.05", "22.05.8", "slurm-wlm 22.05.8", "slurm 22.05.8-4"] {
            assert_eq!(text.parse::<Release>().unwrap().to_string(), "22.05", "{text}");
        }
        assert!("new".parse::<Release>().is_err());
        assert!("22.05".parse::<Release>().unwrap() < "24.11".parse().unwrap());
    }
}
