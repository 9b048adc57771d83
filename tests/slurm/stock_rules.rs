//! The simulator's idea of stock Slurm, held against stock Slurm: where would a gang go, on hundreds of random sets of free
//! nodes?

use crate::harness::{Cluster, Install, Nodes, Setup, hosts};
use lockstep::fabric::hostlist;
use lockstep::fabric::hostlist::Dialect;
use lockstep::fabric::{NodeNames, TopologyFile};
use lockstep::nodeset::NodeSet;
use lockstep::simulator::baseline::slurm_tree::SlurmTree;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::path::Path;

const NODES: u32 = 36;
const ROUNDS: usize = 300;

#[test]
fn gangs_go_where_stock_slurm_puts_them_in_a_forest() {
    compare("");
}

#[test]
fn gangs_go_where_stock_slurm_puts_them_under_one_core() {
    compare("SwitchName=core Switches=spine[1-3]\n");
}

/// Three spines of three leaves of four nodes, and what is above them.
fn compare(above: &str) {
    let mut setup = Setup::new(Install::Stock, Nodes::Cloud(NODES as usize)).wired(4, 3);
    setup.topology_plugin = "topology/tree";
    let topology = setup.topology.clone().unwrap() + above;
    setup.topology = Some(topology.clone());
    let cluster = Cluster::start(setup);
    let names: Vec<String> = (1..=NODES).map(|number| format!("n{number}")).collect();
    let nodes = NodeNames::new(names.iter().map(Some));
    let source = |_: &Path| Ok(topology.clone());
    let path = Path::new("topology.conf");
    let file =
        TopologyFile { source: &source, path, dialect: Dialect::default(), topology: None, exclude: &[] };
    let fabric = file.read(&nodes).fabric.unwrap();
    let states = (prop::collection::vec(0u32..10, NODES as usize), 2u32..9, 1u32..20);
    let mut runner = TestRunner::deterministic();
    let (mut different, mut placed) = (Vec::new(), 0);
    for _ in 0..ROUNDS {
        let (draws, busy, size) = states.new_tree(&mut runner).unwrap().current();
        let (taken, free): (Vec<u32>, Vec<u32>) = (0..NODES).partition(|&node| draws[node as usize] < busy);
        if (free.len() as u32) < size || taken.is_empty() {
            continue;
        }
        let expected = SlurmTree::default()
            .place(&fabric, &NodeSet::from_nodes(NODES as usize, free), size)
            .map(|nodes| nodes.iter().map(|node| names[node as usize].clone()).collect::<Vec<_>>());
        let excluded = hostlist::fold(taken.iter().map(|&node| names[node as usize].as_str()));
        let size = format!("-N{size}");
        let args = ["--test-only", "--exclusive", &size, "-x", &excluded, "--wrap", "true"];
        let output = cluster.try_slurm("sbatch", &args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        // "Job 3 to start at ... using 64 processors on nodes n[1-4] in partition all"
        let chosen = said.split(" nodes ").nth(1).and_then(|rest| rest.split_whitespace().next()).map(hosts);
        placed += usize::from(chosen.is_some());
        if chosen != expected {
            different.push(format!("{size} without {excluded}: {chosen:?}, not {expected:?}"));
        }
    }
    assert!(placed > ROUNDS / 3, "too few gangs fit: {placed}");
    assert!(different.is_empty(), "{} of {ROUNDS} differ:\n{}", different.len(), different.join("\n"));
}
