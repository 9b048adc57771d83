//! Every topology file that was found in the field is read, or refused with the right reason.

use lockstep::fabric::hostlist::Dialect;
use lockstep::fabric::tree::Fabric;
use lockstep::fabric::{Reading, TopologyFile};
use lockstep::slurm_conf::SlurmConf;
use std::io;
use std::path::Path;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/topologies");

fn source(path: &Path) -> io::Result<String> {
    std::fs::read_to_string(path)
}

/// Reads a file over the nodes of its slurm.conf, or over the nodes that it names if there is none.
fn read(name: &str) -> Reading {
    let path = Path::new(FOLDER).join(name);
    let conf = Path::new(FOLDER).join(name.replace("_topology.conf", "_slurm.conf"));
    let dialect = Dialect::default();
    let file = TopologyFile { source: &source, path: &path, dialect, topology: None, exclude: &[] };
    let nodes = if conf != path && conf.exists() {
        let (conf, found) = SlurmConf::read(&source, &conf, dialect);
        assert!(found.is_empty(), "{found:?}");
        conf.node_names()
    } else {
        TopologyFile::named_nodes([file])
    };
    file.read(&nodes)
}

/// Switches on each level from the leaves up, then the sizes of the smallest and largest leaf.
fn shape(fabric: &Fabric) -> (Vec<usize>, usize, usize) {
    let levels = (0..fabric.level_count()).map(|level| fabric.at_level(level as u16).len()).collect();
    let leaves: Vec<usize> =
        fabric.at_level(0).iter().map(|&leaf| fabric.switch(leaf).node_count()).collect();
    (levels, leaves.iter().min().copied().unwrap_or(0), leaves.iter().max().copied().unwrap_or(0))
}

fn check(name: &str, levels: &[usize], smallest: usize, largest: usize) {
    let reading = read(name);
    assert_eq!(reading.diagnostics, [], "{name}");
    assert_eq!(shape(&reading.fabric.expect(name)), (levels.to_vec(), smallest, largest), "{name}");
}

fn refused(name: &str) -> String {
    let reading = read(name);
    assert!(reading.fabric.is_none(), "{name}");
    let found: Vec<String> =
        reading.diagnostics.iter().map(|d| format!("{}: {}", d.code.id, d.what)).collect();
    found.join("\n")
}

#[test]
fn trees() {
    check("azure_slurm_topology.conf", &[5, 1], 2, 6);
    check("topograph_oci-sim-tree.conf", &[12, 6, 1], 8, 8);
    check("slurm_test_133_1_case1_topology.conf", &[500, 26, 2, 1], 20, 20);
    check("slurm_test_133_1_case2_topology.conf", &[500, 26, 1, 1], 20, 20);
    check("slurm_test_133_1_case3_topology.conf", &[20, 2, 1], 20, 20);
}

#[test]
fn forests() {
    check("slurm_test_133_1_case4_topology.conf", &[20, 2], 20, 20);
    let with_a_node_outside = read("slurm_test_133_1_case5_topology.conf");
    assert_eq!(shape(&with_a_node_outside.fabric.expect("a fabric")), (vec![20, 2], 20, 20));
    let [warning] = &with_a_node_outside.diagnostics[..] else { panic!() };
    assert_eq!(warning.code.id, "T104");
    assert_eq!(warning.what, "no switch reaches 1 node of the cluster: peta99999");
}

#[test]
fn blocks() {
    check("azure_block_topology.conf", &[4], 18, 18);
    check("slurm_unit_backfill_block.conf", &[8, 4, 2, 1], 4, 4);
    check("topograph_dra-block.conf", &[12, 6, 3], 8, 8);
}

#[test]
fn what_is_no_topology_for_slurm_is_refused() {
    assert_eq!(refused("azure_slurm_illegal_block_topology.conf"), "T010: no switches found");
    // Topograph's own models of a network, not Slurm's topology.yaml.
    for model in ["topograph_model_medium.yaml", "topograph_model_nvl72.yaml"] {
        assert_eq!(refused(model), "T020: expected sequence start");
    }
}

#[test]
fn no_file_is_left_out() {
    let source = include_str!("topologies.rs");
    for entry in std::fs::read_dir(FOLDER).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(
            name.ends_with("_slurm.conf") || source.contains(&format!("\"{name}\"")),
            "{name} is not tested"
        );
    }
}
