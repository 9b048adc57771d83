//! Texts through the whole reader: what the fabric is, and what people are told.

use super::tree::{Below, Declared, Fabric};
use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;

/// A cluster whose nodes are those of a hostlist, in its order.
fn cluster(hostlist: &str) -> NodeNames {
    NodeNames::new(hostlist::expand(hostlist, Dialect::default()).unwrap().into_iter().map(Some))
}

fn topology_file<'a>(source: &'a Source<'a>, path: &'a str) -> TopologyFile<'a> {
    TopologyFile { source, path: Path::new(path), dialect: Dialect::default(), topology: None, exclude: &[] }
}

/// Reads files that exist only in memory; the first is the topology file.
fn read_files(files: &[(&str, &str)], nodes: &str, exclude: &[&str]) -> Reading {
    let texts: BTreeMap<&Path, &str> = files.iter().map(|(name, text)| (Path::new(*name), *text)).collect();
    let source = |path: &Path| {
        texts.get(path).map(|text| text.to_string()).ok_or(io::Error::from(io::ErrorKind::NotFound))
    };
    let exclude: Vec<String> = exclude.iter().map(|name| name.to_string()).collect();
    let file = TopologyFile { exclude: &exclude, ..topology_file(&source, files[0].0) };
    file.read(&cluster(nodes))
}

fn read_text(text: &str, nodes: &str) -> Reading {
    read_files(&[("topology.conf", text)], nodes, &[])
}

fn messages(reading: &Reading) -> String {
    reading.diagnostics.iter().map(|d| format!("{d}\n")).collect()
}

/// The forest as an indented list with its node indexes.
fn drawn(fabric: &Fabric) -> String {
    let mut drawn = String::new();
    let mut depths = Vec::new();
    for (id, switch) in fabric.switches() {
        let depth = switch.parent.map_or(0, |parent| depths[parent.0 as usize] + 1);
        depths.push(depth);
        let nodes = if switch.is_leaf() { format!(" {:?}", fabric.nodes_under(id)) } else { String::new() };
        writeln!(drawn, "{}{}{nodes}", "  ".repeat(depth), switch.name).unwrap();
    }
    drawn
}

/// What came of a text, for a snapshot: the forest or "no fabric", then the messages.
fn outcome(reading: &Reading) -> String {
    let fabric = reading.fabric.as_ref().map_or("no fabric\n".into(), drawn);
    fabric + &messages(reading)
}

#[test]
fn trees_with_comments_continuations_quotes_and_mixed_case() {
    let text = "# two trees\nSWITCHNAME=top switches=s[0-1]  # comment\nSwitchName=s0 \\\n  Nodes=n[0-1],\\\nn3 LinkSpeed=100\n\nswitchname=s1 Nodes=\"n2\"\nSwitchName = far Nodes= n4\r\n";
    insta::assert_snapshot!(outcome(&read_text(text, "n[0-4]")), @r#"
        top
          s0 [0, 1, 3]
          s1 [2]
        far [4]
        "#);
}

/// Crash loops and rejected jobs in soperator PR 2298 and scaffolding-kit PRs 14 and 23; topograph's CA records.
#[test]
fn a_file_that_says_nothing_gives_no_fabric_and_one_clear_message() {
    let seen = [
        ("empty", read_text("", "n[1-4]")),
        ("newline", read_text("\n", "n[1-4]")),
        ("comments", read_text("# CA records, no switches\n", "n[1-4]")),
        ("bare", read_text("SwitchName=root\n", "n[1-4]")),
        ("no node", read_text("SwitchName=a Nodes=x[1-4]\n", "n[1-4]")),
    ];
    let absent =
        topology_file(&|_| Err(io::ErrorKind::NotFound.into()), "topology.conf").read(&cluster("n[1-4]"));
    assert!(absent.fabric.is_none() && absent.diagnostics.len() == 1);
    insta::assert_snapshot!(seen.iter().map(|(name, r)| format!("{name}:\n{}", outcome(r))).collect::<String>() + &messages(&absent), @r#"
        empty:
        no fabric
        topology.conf: error[T010]: no switches found; declare the leaves, as in `SwitchName=leaf1 Nodes=n[1-16]`
        newline:
        no fabric
        topology.conf: error[T010]: no switches found; declare the leaves, as in `SwitchName=leaf1 Nodes=n[1-16]`
        comments:
        no fabric
        topology.conf: error[T010]: no switches found; declare the leaves, as in `SwitchName=leaf1 Nodes=n[1-16]`
        bare:
        no fabric
        topology.conf: error[T014]: no node of the cluster hangs on any switch; give the leaves `Nodes=`, with names as in slurm.conf
        topology.conf:1:12: warning[T105]: `root` names neither nodes nor switches and is left out; complete it, or remove it: topology/tree refuses such a switch before 25.05
        no node:
        no fabric
        topology.conf: error[T014]: no node of the cluster hangs on any switch; give the leaves `Nodes=`, with names as in slurm.conf
        topology.conf:1:12: warning[T105]: `a` has no node of the cluster and is left out; correct its nodes, or remove it
        topology.conf:1:20: warning[T103]: 4 names are no nodes of the cluster: x[1-4]; correct them, or add the nodes to slurm.conf; they are left out
        topology.conf: error[T001]: cannot read topology.conf: entity not found; make it a file of UTF-8 text that SlurmUser may read
        "#);
}

/// soperator PR 1188.
#[test]
fn a_missing_child_is_named_with_line_and_parent() {
    insta::assert_snapshot!(outcome(&read_text("SwitchName=top Switches=a,b\nSwitchName=a Nodes=n[1-2]\n", "n[1-2]")), @r#"
        no fabric
        topology.conf:1:25: error[T012]: switch `top` names the child `b`, which no line declares; add a line `SwitchName=b ...` or remove it here
        "#);
}

/// An endless loop in Slurm, 2015.
#[test]
fn a_loop_is_printed() {
    let text = "SwitchName=a Switches=b\nSwitchName=b Switches=c\nSwitchName=c Switches=b\nSwitchName=me Switches=me\nSwitchName=x Nodes=n1\n";
    insta::assert_snapshot!(outcome(&read_text(text, "n1")), @r#"
        no fabric
        topology.conf:2:12: error[T013]: 2 switches form a loop: b -> c -> b; no switch may lie below itself: take one of these out of `Switches=`
        "#);
}

#[test]
fn a_name_declared_twice_is_refused() {
    insta::assert_snapshot!(outcome(&read_text("SwitchName=a Nodes=n1\nSwitchName=a Nodes=n2\n", "n[1-2]")), @r#"
        no fabric
        topology.conf:2:12: error[T011]: `a` is declared again, first at topology.conf:1:12; rename one of them or join their lines
        "#);
}

/// soperator's fixtures, where the last parent silently wins.
#[test]
fn a_leaf_under_two_spines_stays_with_the_first_in_fabric_order() {
    let text = "SwitchName=l Nodes=n1\nSwitchName=m Nodes=n2\nSwitchName=s1 Switches=l\nSwitchName=s2 Switches=m,l\n";
    insta::assert_snapshot!(outcome(&read_text(text, "n[1-2]")), @r#"
        s1
          l [0]
        s2
          m [1]
        topology.conf:4:12: warning[T101]: switch `s2` names 1 child again: l (`l` stays under `s1`); name each switch under one parent; it stays under the first in fabric order
        "#);
}

/// pyxis 102, and cluster-toolkit PR 3316 for nodes that the file does not list yet.
#[test]
fn names_that_are_no_nodes_are_counted_in_one_warning_and_unlisted_nodes_in_another() {
    let text = "SwitchName=a Nodes=n[1-3],gone[1-40]\nSwitchName=b Nodes=n4,old\nSwitchName=c Nodes=old2\n";
    insta::assert_snapshot!(outcome(&read_text(text, "n[1-6]")), @r#"
        a [0, 1, 2]
        b [3]
        topology.conf: warning[T104]: no switch reaches 2 nodes of the cluster: n[5-6]; add them to a leaf; until then no gang under a rule is placed on them
        topology.conf:1:20: warning[T103]: 42 names are no nodes of the cluster: gone[1-24],...; correct them, or add the nodes to slurm.conf; they are left out
        topology.conf:3:12: warning[T105]: `c` has no node of the cluster and is left out; correct its nodes, or remove it
        "#);
}

/// Slurm-web 127, spur 589.
#[test]
fn switches_are_split_outside_brackets_only() {
    let text = "SwitchName=top Switches=sw[1,3-4],x\nSwitchName=sw1 Nodes=n1\nSwitchName=sw3 Nodes=n2\nSwitchName=sw4 Nodes=n3\nSwitchName=x Nodes=n4\n";
    insta::assert_snapshot!(outcome(&read_text(text, "n[1-4]")), @r#"
        top
          sw1 [0]
          sw3 [1]
          sw4 [2]
          x [3]
        "#);
}

const STORAGE: &str = "SwitchName=storage Nodes=n[1-4]\nSwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n[3-4]\nSwitchName=top Switches=a,b,storage\n";

/// topograph 265.
#[test]
fn a_storage_switch_that_reaches_every_node_is_warned_about() {
    insta::assert_snapshot!(outcome(&read_text(STORAGE, "n[1-4]")), @r#"
        top
          a [0, 1]
          b [2, 3]
        topology.conf:1:12: warning[T102]: leaf `storage` names 4 nodes that already hang on another leaf: n[1-4] (the first on `a`); name each node on one leaf; it stays on the first in fabric order. If `storage` or `a` is no part of the compute fabric, put it into `exclude` in lockstep.toml
        "#);
}

/// soperator PR 2585, an invented root over separate fabrics, goes the same way.
#[test]
fn an_excluded_switch_counts_as_absent_and_its_children_stay() {
    let files = [("topology.conf", STORAGE)];
    insta::assert_snapshot!(outcome(&read_files(&files, "n[1-4]", &["storage", "top", "stroage"])), @r#"
        a [0, 1]
        b [2, 3]
        topology.conf: warning[T107]: `stroage` is excluded, but no line declares it; correct or remove it in the exclude list
        "#);
}

/// cyclecloud-slurm 45 keeps hand-written switches in a file of their own.
#[test]
fn include_is_followed_and_places_are_those_of_the_included_file() {
    let files = [
        ("etc/topology.conf", "Include by-hand.conf\nSwitchName=a Nodes=n1\ninclude gone.conf\n"),
        ("etc/by-hand.conf", "\n  SwitchName=top Switches=a,[\nInclude topology.conf\nInclude x y\n"),
    ];
    insta::assert_snapshot!(outcome(&read_files(&files, "n1", &[])), @r#"
        no fabric
        etc/by-hand.conf:2:29: error[T004]: `[` is never closed; add the missing `]`
        etc/by-hand.conf:3:9: error[T003]: etc/topology.conf includes itself; remove the Include
        etc/by-hand.conf:4:9: error[T003]: text after the name of the file; give each Include a line of its own
        etc/topology.conf:3:9: error[T001]: cannot read etc/gone.conf: entity not found; make it a file of UTF-8 text that SlurmUser may read
        "#);
}

#[test]
fn lines_that_slurm_would_not_take_are_refused_with_their_column() {
    let text = "SwitchName=a Nodes=n1 Switches=b\nSwitchName=b Nodes= \nSwitchName=c Nodes= Switches=d\nSwitchName=d Node=n1\n\
        Switch=e Nodes=n1\nSwitchName=f Nodes=n1 n2\nSwitchName=g Nodes=n1,n[2-\nBlockName=h Nodes=n1\nnonsense\n";
    insta::assert_snapshot!(outcome(&read_text(text, "n[1-2]")), @r#"
        no fabric
        topology.conf:1:1: error[T008]: switch `a` has both Nodes and Switches; give it `Nodes=` if it is a leaf, `Switches=` if it is not
        topology.conf:2:14: error[T002]: `Nodes=` has no value; write a value after it, or leave `Nodes=` out
        topology.conf:3:14: error[T002]: `Nodes=` has no value; write a value after it, or leave `Nodes=` out
        topology.conf:4:14: error[T007]: `Node` is not a key that belongs here; a switch has Nodes or Switches, and perhaps LinkSpeed
        topology.conf:5:1: error[T007]: `Switch` is not a key that belongs here; start the line with SwitchName, BlockName, BlockSizes or Include
        topology.conf:6:23: error[T002]: `n2` is not a Key=value pair; write Key=value, put a value with spaces into double quotes, start a comment with `#`
        topology.conf:7:24: error[T004]: `[` is never closed; add the missing `]`
        topology.conf:8:1: error[T009]: `BlockName` in a file of the other form; describe the fabric as switches or as blocks, not both
        topology.conf:9:1: error[T002]: `nonsense` is not a Key=value pair; write Key=value, put a value with spaces into double quotes, start a comment with `#`
        "#);
}

#[test]
fn blocks_join_to_larger_blocks_as_in_slurm() {
    let text = "BlockSizes=2,4,16\nBlockName=b1 Nodes=n[1-2]\nBlockName=b2 Nodes=n[3-4]\nBlockName=b3 Nodes=n5\nBlockName=b4\nBlockName=b5 Nodes=n[9-10]\n";
    insta::assert_snapshot!(outcome(&read_text(text, "n[1-10]")), @r#"
        b[1-5]
          b[1-2]
            b1 [0, 1]
            b2 [2, 3]
          b[3-4]
            b3 [4]
          b5 [8, 9]
        topology.conf: warning[T104]: no switch reaches 3 nodes of the cluster: n[6-8]; add them to a leaf; until then no gang under a rule is placed on them
        topology.conf:4:11: warning[T106]: block `b3` has 1 of the 2 nodes of BlockSizes; complete the block, or make BlockSizes fit; gangs see the nodes that are there
        topology.conf:5:11: warning[T105]: `b4` names neither nodes nor switches and is left out; complete it, or remove it: topology/tree refuses such a switch before 25.05
        "#);
}

#[test]
fn blocks_without_sizes_double_up_to_four_times() {
    let text: String = (1..=3).map(|i| format!("BlockName=b{i} Nodes=n{i}\n")).collect();
    insta::assert_snapshot!(outcome(&read_text(&text, "n[1-3]")), @r#"
        b[1-3]
          b[1-2]
            b1 [0]
            b2 [1]
          b3 [2]
        "#);
}

/// Divisions by zero in Slurm 24.05.4 and 26.05.3.
#[test]
fn block_sizes_that_slurm_cannot_use_are_refused_with_their_column() {
    let sizes = ["0", "4,0", "4,6", "4,12", "-4", "4,x", "", "4,262144", "99999999999999999999"];
    let seen =
        sizes.map(|sizes| messages(&read_text(&format!("BlockSizes={sizes}\nBlockName=b Nodes=n1\n"), "n1")));
    insta::assert_snapshot!(seen.concat(), @r#"
        topology.conf:1:12: error[T006]: 0 is not a number of nodes; give sizes that are 1, 2, 4, 8, ... times the first, as in `BlockSizes=18,36,72`
        topology.conf:1:14: error[T006]: 0 is not a number of nodes; give sizes that are 1, 2, 4, 8, ... times the first, as in `BlockSizes=18,36,72`
        topology.conf:1:14: error[T006]: 6 is not 4 times a power of two up to 32768; give sizes that are 1, 2, 4, 8, ... times the first, as in `BlockSizes=18,36,72`
        topology.conf:1:14: error[T006]: 12 is not 4 times a power of two up to 32768; give sizes that are 1, 2, 4, 8, ... times the first, as in `BlockSizes=18,36,72`
        topology.conf:1:12: error[T006]: -4 is not a number of nodes; give sizes that are 1, 2, 4, 8, ... times the first, as in `BlockSizes=18,36,72`
        topology.conf:1:14: error[T006]: `x` is not a number of nodes; give sizes that are 1, 2, 4, 8, ... times the first, as in `BlockSizes=18,36,72`
        topology.conf:1:1: error[T002]: `BlockSizes=` has no value; write a value after it, or leave `BlockSizes=` out
        topology.conf:1:14: error[T006]: 262144 is not 4 times a power of two up to 32768; give sizes that are 1, 2, 4, 8, ... times the first, as in `BlockSizes=18,36,72`
        topology.conf:1:12: error[T006]: `99999999999999999999` is not a number of nodes; give sizes that are 1, 2, 4, 8, ... times the first, as in `BlockSizes=18,36,72`
        "#);
}

/// cluster-toolkit PRs 2947 and 6236, soperator PR 2201: tiers trimmed by hand or lost.
#[test]
fn a_deep_tree_keeps_all_its_tiers() {
    let tiers: String = (1..300).map(|i| format!("SwitchName=t{i} Switches=t{}\n", i - 1)).collect();
    let fabric = read_text(&(tiers + "SwitchName=t0 Nodes=n1\n"), "n1").fabric.unwrap();
    assert_eq!(fabric.level_count(), 300);
}

#[test]
fn a_text_that_stands_for_too_much_is_refused_at_once() {
    let lines: String = (0..100).map(|i| format!("SwitchName=s{i} Nodes=n[1-65536],m[1-65536]\n")).collect();
    let reading = read_text(&lines, "n1");
    assert!(reading.fabric.is_none());
    assert_eq!(reading.diagnostics[0].code.id, "T005");
    assert_eq!(reading.diagnostics.len(), 21);
    assert!(reading.diagnostics[20].what.starts_with("48 more like these"), "{}", reading.diagnostics[20]);
}

const YAML: &str = "
- topology: flat
  flat: true
- topology: tree
  cluster_default: true
  tree:
    switches:
      - {switch: top, children: 's[1-2]'}
      - switch: s1
        nodes: n[1-2]
      - switch: s2
        nodes: \"n[3-4]\"
- topology: blocks
  block:
    block_sizes: [2, 4]
    blocks:
      - block: b1
        nodes: n[1-2]
      - block: b2
        nodes: n[3-4]
";

fn read_yaml(text: &str, topology: Option<&str>) -> Reading {
    let source = |_: &Path| Ok(text.to_string());
    TopologyFile { topology, ..topology_file(&source, "topology.yaml") }.read(&cluster("n[1-4]"))
}

#[test]
fn of_several_topologies_in_yaml_the_default_or_the_named_one_is_read() {
    let seen = [None, Some("blocks"), Some("flat"), Some("gone")].map(|name| outcome(&read_yaml(YAML, name)));
    insta::assert_snapshot!(seen.join("\n"), @r#"
        top
          s1 [0, 1]
          s2 [2, 3]
        
        b[1-2]
          b1 [0, 1]
          b2 [2, 3]
        
        no fabric
        topology.yaml:2:13: error[T022]: topology `flat` has neither `tree` nor `block`, so no switches; name a topology with a `tree` or a `block`
        
        no fabric
        topology.yaml: error[T021]: no topology is named `gone`; add an entry such as `- topology: NAME` with a `tree` or a `block`
        "#);
    assert_eq!(topology_yaml::names(YAML), ["flat", "tree", "blocks"]);
}

/// Assertions in Slurm 26.05.3.
#[test]
fn wrong_yaml_is_refused_with_the_path_of_the_field() {
    let texts = [
        "switches: {}",
        "- topology: t\n  tree: []\n",
        "- topology: t\n  tree:\n    switches:\n      - {switch: a, nodes: [n1, n2]}\n",
        "- topology: t\n  tree: {switches: {}}\n",
        "- topology: t\n  block: {block_sizes: 4, blocks: []}\n",
        "- topology: t\n  block: {block_sizes: [4, 6], blocks: []}\n",
        "- topology: t\n  block: {block_sizes: [0], blocks: []}\n",
        "- topology: t\n  tree: {switches: [{switch: a, nodes: 'n1,n['}, {switch: b, nodes: n1, children: a}, {switch: c, nodes: 'n1', typo: 1}]}\n",
        "- topology: t\n  tree: {switches: [{switch: a, nodes: 'n1,n['}, {switch: b, nodes: n1, children: a}]}\n",
        "- topology: t\n  tree: {switches: []}\n  flat: true\n",
        "- topology: t\n",
        "- [",
        "",
        "- topology: t\n  tree: {switches: []}\n",
    ];
    insta::assert_snapshot!(texts.map(|text| messages(&read_yaml(text, None))).concat(), @r#"
        topology.yaml:1:1: error[T020]: expected sequence start; see topology.yaml(5) for the form: a list of topologies, with hostlists as strings
        topology.yaml:2:9: error[T020]: [0].tree: expected mapping start; see topology.yaml(5) for the form: a list of topologies, with hostlists as strings
        topology.yaml:4:28: error[T020]: [0].tree.switches[0].nodes: expected string scalar; see topology.yaml(5) for the form: a list of topologies, with hostlists as strings
        topology.yaml:2:20: error[T020]: [0].tree.switches: expected sequence start; see topology.yaml(5) for the form: a list of topologies, with hostlists as strings
        topology.yaml:2:24: error[T020]: [0].block.block_sizes: expected sequence start; see topology.yaml(5) for the form: a list of topologies, with hostlists as strings
        topology.yaml:2:28: error[T006]: 6 is not 4 times a power of two up to 32768; give sizes that are 1, 2, 4, 8, ... times the first, as in `BlockSizes=18,36,72`
        topology.yaml:2:25: error[T006]: 0 is not a number of nodes; give sizes that are 1, 2, 4, 8, ... times the first, as in `BlockSizes=18,36,72`
        topology.yaml:2:112: error[T020]: [0].tree.switches[2].typo: unknown field `typo`, expected one of switch, children, nodes; see topology.yaml(5) for the form: a list of topologies, with hostlists as strings
        topology.yaml:2:45: error[T004]: `[` is never closed; add the missing `]`
        topology.yaml:2:59: error[T008]: switch `b` has both nodes and children; give it `nodes` if it is a leaf, `children` if it is not
        topology.yaml:1:13: error[T022]: topology `t` is of several kinds at once; name a topology with a `tree` or a `block`
        topology.yaml:1:13: error[T022]: topology `t` has neither `tree` nor `block`, so no switches; name a topology with a `tree` or a `block`
        topology.yaml:1:3: error[T020]: unclosed bracket '['; see topology.yaml(5) for the form: a list of topologies, with hostlists as strings
        topology.yaml: error[T021]: no topology is defined; add an entry such as `- topology: NAME` with a `tree` or a `block`
        topology.yaml: error[T010]: no switches found; declare the leaves, as in `SwitchName=leaf1 Nodes=n[1-16]`
        "#);
}

/// Forests of up to 30 switches over up to 60 nodes: each switch hangs under an earlier one or is a root, each node on
/// a leaf, all in any order.
fn forest() -> impl Strategy<Value = Fabric> {
    let nodes =
        (1usize..60).prop_flat_map(|count| Just((0..count as u32).collect::<Vec<_>>()).prop_shuffle());
    let leaf_of = prop::collection::vec(any::<prop::sample::Index>(), 60);
    let parents = prop::collection::vec(any::<prop::sample::Index>(), 1..30);
    (parents, nodes, leaf_of).prop_map(|(parents, nodes, leaf_of)| {
        let mut children = vec![Vec::new(); parents.len()];
        for (child, parent) in
            parents.iter().enumerate().map(|(child, parent)| (child, parent.index(child + 1)))
        {
            if parent != child {
                children[parent].push(child);
            }
        }
        let bare: Vec<usize> = (0..parents.len()).filter(|&i| children[i].is_empty()).collect();
        let mut below: Vec<Below> = children.into_iter().map(Below::Switches).collect();
        bare.iter().for_each(|&leaf| below[leaf] = Below::Nodes(Vec::new()));
        for (node, leaf) in nodes.iter().zip(leaf_of) {
            if let Below::Nodes(on_leaf) = &mut below[bare[leaf.index(bare.len())]] {
                on_leaf.push(*node);
            }
        }
        let named = |(i, below)| Declared { name: format!("s{i:02}"), below };
        Fabric::new(nodes.len(), &below.into_iter().enumerate().map(named).collect::<Vec<_>>())
    })
}

proptest! {
    #[test]
    fn a_fabric_written_and_read_again_is_the_same(fabric in forest()) {
        let names = NodeNames::new((0..fabric.node_count()).map(|i| Some(format!("n{i}"))));
        let text = topology_conf::write(&fabric, &names);
        let source = |_: &Path| Ok(text.clone());
        let reading = topology_file(&source, "topology.conf").read(&names);
        prop_assert!(reading.diagnostics.iter().all(|d| d.code.id == "T104"), "{}", messages(&reading));
        prop_assert_eq!(reading.fabric, Some(fabric));
    }
}

#[test]
fn blocks_written_as_a_tree_keep_their_shape() {
    let blocks = read_text(
        "BlockSizes=1,2\nBlockName=b1 Nodes=n1\nBlockName=b2 Nodes=n2\nBlockName=c Nodes=n3\n",
        "n[1-3]",
    );
    let text = topology_conf::write(&blocks.fabric.unwrap(), &cluster("n[1-3]"));
    assert_eq!(
        text,
        "SwitchName=b_1-2_ Switches=b[1-2]\nSwitchName=b1 Nodes=n1\nSwitchName=b2 Nodes=n2\nSwitchName=c Nodes=n3\n"
    );
}

#[test]
fn an_empty_value_in_quotes_is_an_empty_block() {
    let text = "BlockName=a Nodes=n1\nBlockName=b Nodes=\"\"\nBlockSizes=\"1,2\"\n";
    insta::assert_snapshot!(outcome(&read_text(text, "n1")), @r#"
        a,b
          a [0]
        topology.conf:2:11: warning[T105]: `b` has no node of the cluster and is left out; correct its nodes, or remove it
        "#);
}

#[test]
fn an_escaped_hash_is_no_comment_and_a_line_ends_with_its_file() {
    let text = "SwitchName=a\\#1 Nodes=n1 # comment \\\nSwitchName=b Nodes=n2 \\";
    insta::assert_snapshot!(outcome(&read_text(text, "n[1-2]")), @r#"
        a#1 [0]
        b [1]
        "#);
}

#[test]
fn columns_count_characters_across_escapes_and_joined_lines() {
    let text = "SwitchName=é Nodes=é,[ \nSwitchName=b \\\n \\Switches=\"s[1\"\n";
    insta::assert_snapshot!(outcome(&read_text(text, "n1")), @r#"
        no fabric
        topology.conf:1:22: error[T004]: `[` is never closed; add the missing `]`
        topology.conf:3:14: error[T004]: `[` is never closed; add the missing `]`
        "#);
}
