//! The command line against a running controller.

use crate::harness::{Cluster, Install, Nodes, Setup};
use lockstep::fabric::hostlist::{Dialect, expand};
use lockstep::slurm_conf::SlurmConf;
use std::collections::BTreeMap;
use std::path::Path;

/// Runs lockstep in the cluster's environment: its exit code and stdout.
fn lockstep(cluster: &Cluster, args: &[&str]) -> (Option<i32>, String) {
    let output = cluster.command(env!("CARGO_BIN_EXE_lockstep")).args(args).output().unwrap();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn check_asks_the_running_controller() {
    let mut cluster = Cluster::start(Setup::new(Install::DropIn, Nodes::Cloud(16)).wired(4, 2));
    let (code, said) = lockstep(&cluster, &["check", "--live"]);
    assert_eq!(code, Some(0), "{said}");
    for words in ["drop-in, ", "16 nodes on 4 leaves", "0 errors, 0 warnings"] {
        assert!(said.contains(words), "{words} is missing in:\n{said}");
    }

    // The controller runs on with what it started with.
    cluster.setup.topology_plugin = "topology/tree";
    cluster.write_conf();
    let (code, said) = lockstep(&cluster, &["check", "--live"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("error[C006]: the running controller has TopologyPlugin=topology/none"), "{said}");
}

#[test]
fn check_tells_stock_slurm_from_lockstep() {
    let cluster = Cluster::start(Setup::new(Install::Stock, Nodes::Cloud(4)).wired(2, 2));
    let (code, said) = lockstep(&cluster, &["check", "--live"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("warning[C101]"), "{said}");
}

/// Name, level and nodes of every switch.
type Switches = BTreeMap<String, (u64, Vec<String>)>;

fn sorted_hosts(list: &str) -> Vec<String> {
    let mut hosts = expand(list, Dialect::default()).unwrap();
    hosts.sort();
    hosts
}

#[test]
fn topology_tree_reads_the_same_switches_from_the_same_file() {
    let folder = tempfile::TempDir::new().unwrap();
    let included = folder.path().join("more.conf");
    std::fs::write(&included, "switchname=leaf5 NODES=n[17-18]\n").unwrap();
    let text = format!(
        "# three trees, all that Slurm's grammar allows\n\
         SWITCHNAME=top switches=spine[1-2],leaf4   # leaves on two levels\n\
         SwitchName=spine1 LinkSpeed=100 Switches=\"leaf1\"\n\
         SwitchName=spine2 \\\n  Switches=leaf[2,3]\n\
         SwitchName = leaf1 Nodes= n[1-4]\n\
         \tSwitchName=leaf2 Nodes=n[5-6],\\\nn[7-8]\n\
         SwitchName=leaf3 Nodes=n[9-11],n12\r\n\
         Include {}\n\
         SwitchName=leaf4 Nodes=n[16,13-15]\n",
        included.display()
    );
    let mut setup = Setup::new(Install::Stock, Nodes::Cloud(18)).topology(&text);
    setup.topology_plugin = "topology/tree";
    let cluster = Cluster::start(setup);

    let field = |line: &str, key: &str| {
        line.split_whitespace().find_map(|word| Some(word.strip_prefix(key)?.to_string())).unwrap()
    };
    let told = cluster.slurm("scontrol", &["show", "topology"]);
    let theirs: Switches = told
        .lines()
        .map(|line| {
            let level = field(line, "Level=").parse().unwrap();
            (field(line, "SwitchName="), (level, sorted_hosts(&field(line, "Nodes="))))
        })
        .collect();
    let (_, json) = lockstep(&cluster, &["topo", "--json"]);
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    let ours: Switches = (value["switches"].as_array().unwrap().iter())
        .map(|switch| {
            let text = |key: &str| switch[key].as_str().unwrap().to_string();
            (text("name"), (switch["level"].as_u64().unwrap(), sorted_hosts(&text("nodes"))))
        })
        .collect();
    assert_eq!(ours, theirs);
    assert_eq!(ours.len(), 8);
}

#[test]
fn slurmctld_sorts_its_nodes_as_we_do() {
    let names = ["b2", "b10", "b01", "b1", "a", "a00", "a0", "c1x2", "c1x10", "c01x1", "b010"];
    let lines = names.map(|name| format!("NodeName={name} NodeAddr=127.0.0.1")).join("\n");
    let cluster = Cluster::start(Setup::new(Install::Stock, Nodes::Cloud(12)).wired(4, 2).extra(&lines));
    let told = cluster.slurm("scontrol", &["--oneliner", "show", "nodes"]);
    let theirs: Vec<&str> =
        told.lines().filter_map(|line| line.strip_prefix("NodeName=")?.split(' ').next()).collect();
    let source = |path: &Path| std::fs::read_to_string(path);
    let (conf, found) = SlurmConf::read(&source, &cluster.conf_path(), Dialect::default());
    assert_eq!(found, []);
    assert_eq!(conf.nodes(), theirs);
    assert_eq!(theirs.len(), 23);
}
