//! From names to a fabric: finds every name's switch or node, and settles what is not a forest by fixed rules.
//!
//! Errors mean that nobody can say what the fabric is: a name declared twice, a child that no line declares, a loop.
//! All else is settled: names that are no node of the cluster are left out here, and [`Fabric::new`] keeps a switch
//! with its first parent and a node on its first leaf, which [`super::review`] then reports.

use super::diagnostic::{Code, Diagnostic, Place, codes};
use super::draft::{Draft, DraftSwitch, Hanging};
use super::review::{MAX_SHOWN, Review, counted, in_short};
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
    UNKNOWN_NODES = "T103" Warning "names that are no nodes of the cluster";
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
            Fabric::new(self.nodes.size(), &sizes.join(&declared))
        } else {
            self.check_loops(&switches, &declared)?;
            Fabric::new(self.nodes.size(), &declared)
        };
        let base = blocks.and_then(|sizes| sizes.base);
        let review = Review {
            path: self.path,
            nodes: self.nodes,
            switches: &switches,
            declared: &declared,
            fabric: &fabric,
        };
        self.diagnostics.extend(review.findings(base));
        if fabric.listed().is_empty() {
            let what = "no node of the cluster hangs on any switch".into();
            let hint = "give the leaves `Nodes=`, with names as in slurm.conf";
            self.report(NO_NODES, Place::file(self.path), what, hint);
            return None;
        }
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
        let before = self.diagnostics.len();
        let index = self.index(switches);
        let mut unknown = Unknown::default();
        let declared = switches.iter().map(|switch| {
            let below = match &switch.below {
                Hanging::Nothing => Below::Nodes(Vec::new()),
                Hanging::Nodes(names, place) => Below::Nodes(
                    names.iter().filter_map(|name| unknown.or_id(self.nodes, name, place)).collect(),
                ),
                Hanging::Switches(names, place) => {
                    let names = names.iter().filter(|name| !excluded.contains(name.as_str()));
                    Below::Switches(
                        names.filter_map(|name| self.child(switch, name, place, &index)).collect(),
                    )
                }
            };
            Declared { name: switch.name.clone(), below }
        });
        let declared: Vec<Declared> = declared.collect();
        let sound = self.diagnostics.len() == before;
        self.diagnostics.extend(unknown.finding());
        sound.then_some(declared)
    }

    fn index<'a>(&mut self, switches: &'a [DraftSwitch]) -> HashMap<&'a str, usize> {
        let mut index: HashMap<&str, usize> = HashMap::with_capacity(switches.len());
        for (i, switch) in switches.iter().enumerate() {
            let first = *index.entry(&switch.name).or_insert(i);
            if first != i {
                let what = format!("`{}` is declared again, first at {}", switch.name, switches[first].place);
                self.report(DUPLICATE, switch.place.clone(), what, "rename one of them or join their lines");
            }
        }
        index
    }

    fn child(
        &mut self,
        parent: &DraftSwitch,
        name: &str,
        place: &Place,
        index: &HashMap<&str, usize>,
    ) -> Option<usize> {
        let child = index.get(name).copied();
        if child.is_none() {
            let what = format!("switch `{}` names the child `{name}`, which no line declares", parent.name);
            let hint = format!("add a line `SwitchName={name} ...` or remove it here");
            self.report(MISSING_CHILD, place.clone(), what, hint);
        }
        child
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
}

/// Names that are no nodes of the cluster: counted in one finding.
#[derive(Default)]
struct Unknown<'a> {
    names: Vec<&'a str>,
    first: Option<&'a Place>,
}

impl<'a> Unknown<'a> {
    fn or_id(&mut self, nodes: &NodeNames, name: &'a str, place: &'a Place) -> Option<NodeId> {
        let id = nodes.id(name);
        if id.is_none() {
            self.names.push(name);
            self.first.get_or_insert(place);
        }
        id
    }

    fn finding(self) -> Option<Diagnostic> {
        let count = counted(self.names.len(), "name");
        let what = format!("{count} are no nodes of the cluster: {}", in_short(&self.names));
        let hint = "correct them, or add the nodes to slurm.conf; they are left out";
        Some(Diagnostic::new(UNKNOWN_NODES, self.first?.clone(), what, hint))
    }
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
