//! From names to a fabric: finds every name's switch or node, and settles what is not a forest by fixed rules.
//!
//! Errors mean that nobody can say what the fabric is: a name declared twice, a child that no line declares, a loop.
//! Warnings are settled: a switch named by several parents stays with the first of them in fabric order, a node
//! named by several leaves stays on the first of them in fabric order, names that are no node of the cluster are left
//! out, nodes that no leaf names are outside the fabric.

use super::blocks::BlockSizes;
use super::diagnostic::{Code, Diagnostic, Place, codes};
use super::draft::{Draft, DraftSwitch, Hanging};
use super::hostlist;
use super::tree::{Below, Declared, Fabric};
use super::{NodeNames, Reading};
use crate::nodeset::NodeId;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

codes! {
    /// The codes of this module.
    CODES;
    NO_SWITCHES = "T010" Error "no switch or block is declared";
    DUPLICATE = "T011" Error "a name is declared twice";
    MISSING_CHILD = "T012" Error "a switch names a child that no line declares";
    LOOP = "T013" Error "switches that form a loop";
    NO_NODES = "T014" Error "no node of the cluster hangs on any switch";
    SEVERAL_PARENTS = "T101" Warning "a switch is named by several parents, or twice by one";
    SEVERAL_LEAVES = "T102" Warning "nodes that hang on several leaves";
    UNKNOWN_NODES = "T103" Warning "names that are no nodes of the cluster";
    UNLISTED_NODES = "T104" Warning "nodes of the cluster that no switch reaches";
    EMPTY_LEAF = "T105" Warning "a switch or block without a node of the cluster";
    SHORT_BLOCK = "T106" Warning "a block with fewer nodes than BlockSizes says";
    UNUSED_EXCLUDE = "T107" Warning "an excluded switch that no line declares";
}

/// Makes a fabric of a draft. `exclude` names switches whose lines count as absent; `found` is what the reader found.
pub fn assemble(
    draft: Draft,
    path: &Path,
    nodes: &NodeNames,
    exclude: &[String],
    found: Vec<Diagnostic>,
) -> Reading {
    let broken = found.iter().any(Diagnostic::is_error);
    let mut assembly = Assembly { path, nodes, diagnostics: found };
    // A line that could not be read would bring faults of its own wherever its switch is named.
    let fabric = if broken { None } else { assembly.fabric(draft, exclude) };
    let mut diagnostics = assembly.diagnostics;
    diagnostics.sort_by(|a, b| a.place.cmp(&b.place));
    Reading { fabric, diagnostics: at_most_a_page(diagnostics) }
}

/// How many findings of one kind are shown.
const MAX_OF_A_KIND: usize = 20;

/// Keeps the first findings of each kind, and says how many more there are: a file with a fault in each of its
/// 100,000 lines must not fill slurmctld's log.
fn at_most_a_page(mut diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut seen: BTreeMap<&str, (usize, Diagnostic)> = BTreeMap::new();
    diagnostics.retain(|diagnostic| {
        let (count, _) = seen.entry(diagnostic.code.id).or_insert_with(|| (0, diagnostic.clone()));
        *count += 1;
        *count <= MAX_OF_A_KIND
    });
    for (count, first) in seen.into_values().filter(|(count, _)| *count > MAX_OF_A_KIND) {
        let what = format!("{} more like these: {}", count - MAX_OF_A_KIND, first.code.meaning);
        diagnostics.push(Diagnostic::new(
            first.code,
            Place::file(&first.place.file),
            what,
            "mend those above first",
        ));
    }
    diagnostics
}

struct Assembly<'a> {
    path: &'a Path,
    nodes: &'a NodeNames,
    diagnostics: Vec<Diagnostic>,
}

impl Assembly<'_> {
    fn report(&mut self, code: Code, place: Place, what: String, hint: impl Into<String>) {
        self.diagnostics.push(Diagnostic::new(code, place, what, hint));
    }

    fn fabric(&mut self, draft: Draft, exclude: &[String]) -> Option<Fabric> {
        let Draft { mut switches, blocks } = draft;
        let excluded = self.exclude(&mut switches, exclude);
        if switches.is_empty() {
            let hint = "declare the leaves, as in `SwitchName=leaf1 Nodes=n[1-16]`";
            self.report(NO_SWITCHES, Place::file(self.path), "no switches found".into(), hint);
            return None;
        }
        let declared = self.resolve(&switches, &excluded)?;
        let fabric = if let Some(sizes) = &blocks {
            self.check_sizes(&switches, &declared, sizes);
            Fabric::new(self.nodes.size(), &sizes.join(&declared))
        } else {
            self.check_loops(&switches, &declared)?;
            Fabric::new(self.nodes.size(), &declared)
        };
        self.review_leaves(&switches, &declared, &fabric);
        if fabric.listed().is_empty() {
            let what = "no node of the cluster hangs on any switch".into();
            let hint = "give the leaves `Nodes=`, with names as in slurm.conf";
            self.report(NO_NODES, Place::file(self.path), what, hint);
            return None;
        }
        self.review_parents(&switches, &declared, &fabric);
        self.review_unlisted(&fabric);
        Some(fabric)
    }

    /// Drops the excluded switches and says which were dropped.
    fn exclude<'a>(&mut self, switches: &mut Vec<DraftSwitch>, exclude: &'a [String]) -> HashSet<&'a str> {
        let mut unused: HashSet<&str> = exclude.iter().map(String::as_str).collect();
        let excluded = unused.clone();
        switches.retain(|switch| {
            unused.remove(switch.name.as_str());
            !excluded.contains(switch.name.as_str())
        });
        for name in exclude.iter().filter(|name| unused.contains(name.as_str())) {
            let what = format!("`{name}` is excluded, but no line declares it");
            self.report(
                UNUSED_EXCLUDE,
                Place::file(self.path),
                what,
                "correct or remove it in the exclude list",
            );
        }
        excluded
    }

    /// Turns names into indexes. None if a name is declared twice or a child not at all.
    fn resolve(&mut self, switches: &[DraftSwitch], excluded: &HashSet<&str>) -> Option<Vec<Declared>> {
        let mut sound = true;
        let mut index: HashMap<&str, usize> = HashMap::with_capacity(switches.len());
        for (i, switch) in switches.iter().enumerate() {
            if let Some(&first) = index.get(switch.name.as_str()) {
                let what = format!("`{}` is declared again, first at {}", switch.name, switches[first].place);
                self.report(DUPLICATE, switch.place.clone(), what, "rename one of them or join their lines");
                sound = false;
            } else {
                index.insert(&switch.name, i);
            }
        }
        let mut declared = Vec::with_capacity(switches.len());
        let mut unknown = Vec::new();
        let mut first_unknown = None;
        for switch in switches {
            let below = match &switch.below {
                Hanging::Nothing => Below::Nodes(Vec::new()),
                Hanging::Nodes(names, place) => {
                    let mut ids = Vec::with_capacity(names.len());
                    for name in names {
                        match self.nodes.id(name) {
                            Some(id) => ids.push(id),
                            None => {
                                first_unknown.get_or_insert(place);
                                unknown.push(name.as_str());
                            }
                        }
                    }
                    Below::Nodes(ids)
                }
                Hanging::Switches(names, place) => {
                    let mut ids = Vec::with_capacity(names.len());
                    for name in names.iter().filter(|name| !excluded.contains(name.as_str())) {
                        if let Some(&id) = index.get(name.as_str()) {
                            ids.push(id);
                        } else {
                            let what = format!(
                                "switch `{}` names the child `{name}`, which no line declares",
                                switch.name
                            );
                            let hint = format!("add a line `SwitchName={name} ...` or remove it here");
                            self.report(MISSING_CHILD, place.clone(), what, hint);
                            sound = false;
                        }
                    }
                    Below::Switches(ids)
                }
            };
            declared.push(Declared { name: switch.name.clone(), below });
        }
        if let Some(place) = first_unknown {
            let what = format!(
                "{} are no nodes of the cluster: {}",
                counted(unknown.len(), "name"),
                in_short(&unknown)
            );
            self.report(
                UNKNOWN_NODES,
                place.clone(),
                what,
                "correct them, or add the nodes to slurm.conf; they are left out",
            );
        }
        sound.then_some(declared)
    }

    fn check_loops(&mut self, switches: &[DraftSwitch], declared: &[Declared]) -> Option<()> {
        let Some(cycle) = find_loop(declared) else { return Some(()) };
        let mut shown: Vec<&str> = cycle.iter().map(|&i| switches[i].name.as_str()).take(MAX_SHOWN).collect();
        if cycle.len() > MAX_SHOWN {
            shown.push("...");
        }
        shown.extend(cycle.first().map(|&i| switches[i].name.as_str()));
        let what = format!("{} form a loop: {}", counted(cycle.len(), "switch"), shown.join(" -> "));
        if let Some(&first) = cycle.first() {
            let hint = "no switch may lie below itself: take one of these out of `Switches=`";
            self.report(LOOP, switches[first].place.clone(), what, hint);
        }
        None
    }

    fn check_sizes(&mut self, switches: &[DraftSwitch], declared: &[Declared], sizes: &BlockSizes) {
        let Some(base) = sizes.base else { return };
        for (switch, block) in switches.iter().zip(declared) {
            if let Below::Nodes(nodes) = &block.below
                && (1..base as usize).contains(&nodes.len())
            {
                let what =
                    format!("block `{}` has {} of the {base} nodes of BlockSizes", switch.name, nodes.len());
                let hint = "complete the block, or make BlockSizes fit; gangs see the nodes that are there";
                self.report(SHORT_BLOCK, switch.place.clone(), what, hint);
            }
        }
    }

    fn review_parents(&mut self, switches: &[DraftSwitch], declared: &[Declared], fabric: &Fabric) {
        let mut named = vec![false; declared.len()];
        let mut several = false;
        for child in declared.iter().flat_map(Declared::children) {
            several |= named.get_mut(*child).is_some_and(|named| std::mem::replace(named, true));
        }
        if !several {
            return;
        }
        let parents: HashMap<&str, &str> = fabric
            .switches()
            .filter_map(|(_, switch)| {
                Some((switch.name.as_str(), fabric.switch(switch.parent?).name.as_str()))
            })
            .collect();
        for (switch, parent) in switches.iter().zip(declared) {
            let mut seen = HashSet::new();
            let lost: Vec<&str> = (parent.children().iter())
                .filter(|&&child| {
                    !seen.insert(child)
                        || parents.get(declared[child].name.as_str()).is_some_and(|kept| *kept != parent.name)
                })
                .map(|&child| declared[child].name.as_str())
                .collect();
            if let Some(kept) = lost.first().and_then(|first| parents.get(first)) {
                let what = format!(
                    "switch `{}` names {} that another line or this one named before: {} (`{}` stays under `{kept}`)",
                    switch.name,
                    counted(lost.len(), "child"),
                    in_short(&lost),
                    lost[0]
                );
                let hint = "name each switch under one parent; it stays under the first in fabric order";
                self.report(SEVERAL_PARENTS, switch.place.clone(), what, hint);
            }
        }
    }

    fn review_leaves(&mut self, switches: &[DraftSwitch], declared: &[Declared], fabric: &Fabric) {
        for (switch, leaf) in switches.iter().zip(declared) {
            let Below::Nodes(nodes) = &leaf.below else { continue };
            if nodes.is_empty() {
                let (what, hint) = match switch.below {
                    Hanging::Nothing => (
                        "names neither nodes nor switches",
                        "complete it, or remove it: before 25.05 Slurm takes no such switch",
                    ),
                    _ => ("has no node of the cluster", "correct its nodes, or remove it"),
                };
                let what = format!("`{}` {what} and is left out", switch.name);
                self.report(EMPTY_LEAF, switch.place.clone(), what, hint);
                continue;
            }
            let kept_by = |node: NodeId| fabric.leaf_of(node).map_or("", |leaf| &fabric.switch(leaf).name);
            let lost: Vec<NodeId> =
                nodes.iter().copied().filter(|&node| kept_by(node) != leaf.name).collect();
            if let Some(&first) = lost.first() {
                let names: Vec<&str> = lost.iter().filter_map(|&node| self.nodes.name(node)).collect();
                let first = kept_by(first);
                let what = format!(
                    "leaf `{}` names {} that already hang on another leaf: {} (the first on `{first}`)",
                    switch.name,
                    counted(lost.len(), "node"),
                    in_short(&names)
                );
                let hint = format!(
                    "name each node on one leaf; it stays on the first in fabric order. If `{}` or `{first}` is no part of the compute fabric, put it into `exclude` in lockstep.toml",
                    switch.name
                );
                self.report(SEVERAL_LEAVES, switch.place.clone(), what, hint);
            }
        }
    }

    fn review_unlisted(&mut self, fabric: &Fabric) {
        let names: Vec<&str> =
            unlisted(self.nodes, fabric).filter_map(|node| self.nodes.name(node)).collect();
        if !names.is_empty() {
            let what = format!(
                "no switch reaches {} of the cluster: {}",
                counted(names.len(), "node"),
                in_short(&names)
            );
            let hint = "add them to a leaf; until then no gang under a rule is placed on them";
            self.report(UNLISTED_NODES, Place::file(self.path), what, hint);
        }
    }
}

/// The nodes of the cluster that the fabric does not list.
pub fn unlisted<'a>(nodes: &'a NodeNames, fabric: &'a Fabric) -> impl Iterator<Item = NodeId> + 'a {
    (0..nodes.size() as NodeId).filter(|&node| nodes.name(node).is_some() && !fabric.listed().contains(node))
}

/// How many names a message shows.
const MAX_SHOWN: usize = 24;

fn in_short(names: &[&str]) -> String {
    let mut folded = hostlist::fold(names.iter().take(MAX_SHOWN));
    if names.len() > MAX_SHOWN {
        folded.push_str(",...");
    }
    folded
}

fn counted(count: usize, noun: &str) -> String {
    let plural = match noun {
        "child" => "children",
        "switch" => "switches",
        "node" => "nodes",
        _ => "names",
    };
    format!("{count} {}", if count == 1 { noun } else { plural })
}

/// The switches of one loop in the order of the path; none if there is no loop.
fn find_loop(declared: &[Declared]) -> Option<Vec<usize>> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        OnPath,
        Done,
    }
    let mut marks = vec![Mark::New; declared.len()];
    for start in 0..declared.len() {
        if marks[start] != Mark::New {
            continue;
        }
        marks[start] = Mark::OnPath;
        let mut path = vec![(start, declared[start].children().iter())];
        while let Some((at, children)) = path.last_mut() {
            match children.next() {
                None => {
                    marks[*at] = Mark::Done;
                    path.pop();
                }
                Some(&child) if marks[child] == Mark::OnPath => {
                    return Some(path.iter().map(|(i, _)| *i).skip_while(|i| *i != child).collect());
                }
                Some(&child) if marks[child] == Mark::New => {
                    marks[child] = Mark::OnPath;
                    path.push((child, declared[child].children().iter()));
                }
                Some(_) => {}
            }
        }
    }
    None
}
