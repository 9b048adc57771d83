//! How long it takes, and how much memory, to read a fabric and to lay it out.
//!
//! Run `cargo bench --no-default-features --bench fabric`. Besides times it prints the bytes allocated and, as
//! `max alloc`, the most that were in use at once.

use divan::{AllocProfiler, Bencher};
use lockstep::fabric::hostlist::{self, Dialect};
use lockstep::fabric::{NodeNames, TopologyFile};
use std::fmt::Write;
use std::path::Path;

#[global_allocator]
static ALLOC: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

/// A tree over `nodes` nodes: leaves of 16, then `fanout` switches under each, in all `levels` levels.
struct Site {
    conf: String,
    yaml: String,
    names: NodeNames,
}

fn site(nodes: usize, fanout: usize, levels: usize) -> Site {
    let mut conf = String::new();
    let mut yaml = String::from("- topology: main\n  tree:\n    switches:\n");
    let leaves = nodes / 16;
    for leaf in 0..leaves {
        let (first, last) = (leaf * 16, leaf * 16 + 15);
        let _ = writeln!(conf, "SwitchName=s0-{leaf} Nodes=node[{first:06}-{last:06}]");
        let _ = writeln!(yaml, "      - switch: s0-{leaf}\n        nodes: node[{first:06}-{last:06}]");
    }
    let mut below = leaves;
    for level in 1..levels {
        let count = if level + 1 == levels { 1 } else { below.div_ceil(fanout) };
        let each = below.div_ceil(count);
        for switch in 0..count {
            let (first, last) = (switch * each, (switch * each + each).min(below) - 1);
            let child = level - 1;
            let _ = writeln!(conf, "SwitchName=s{level}-{switch} Switches=s{child}-[{first}-{last}]");
            let _ = writeln!(
                yaml,
                "      - switch: s{level}-{switch}\n        children: s{child}-[{first}-{last}]"
            );
        }
        below = count;
    }
    Site { conf, yaml, names: NodeNames::new((0..leaves * 16).map(|node| Some(format!("node{node:06}")))) }
}

fn bench_read(bencher: Bencher<'_, '_>, text: &str, path: &str, site: &Site, levels: usize) {
    let source = |_: &Path| Ok(text.to_string());
    let path = Path::new(path);
    let file =
        TopologyFile { source: &source, path, dialect: Dialect::default(), topology: None, exclude: &[] };
    let reading = file.read(&site.names);
    assert_eq!(reading.diagnostics, []);
    assert_eq!(reading.fabric.map(|fabric| fabric.level_count()), Some(levels));
    bencher.bench_local(|| file.read(&site.names));
}

#[divan::bench]
fn conf_10240_nodes_4_levels(bencher: Bencher<'_, '_>) {
    let site = site(10_240, 16, 4);
    bench_read(bencher, &site.conf, "topology.conf", &site, 4);
}

#[divan::bench]
fn conf_100000_nodes_5_levels(bencher: Bencher<'_, '_>) {
    let site = site(100_000, 16, 5);
    bench_read(bencher, &site.conf, "topology.conf", &site, 5);
}

#[divan::bench]
fn yaml_10240_nodes_4_levels(bencher: Bencher<'_, '_>) {
    let site = site(10_240, 16, 4);
    bench_read(bencher, &site.yaml, "topology.yaml", &site, 4);
}

#[divan::bench]
fn yaml_100000_nodes_5_levels(bencher: Bencher<'_, '_>) {
    let site = site(100_000, 16, 5);
    bench_read(bencher, &site.yaml, "topology.yaml", &site, 5);
}

/// The names of slurmctld's node table, which a reading needs once.
#[divan::bench(args = [10_240, 100_000])]
fn node_names(bencher: Bencher<'_, '_>, count: usize) {
    let names: Vec<String> = (0..count).map(|node| format!("node{node:06}")).collect();
    bencher.bench_local(|| NodeNames::new(names.iter().map(Some)));
}

#[divan::bench(args = ["node[00001-65536]", "rack[1-64]node[1-1024]"])]
fn expand_65536_names(list: &str) -> usize {
    hostlist::expand(list, Dialect::default()).map_or(0, |names| names.len())
}

/// Must be refused without taking memory.
#[divan::bench]
fn refuse_a_hostlist_of_4_billion_names() -> bool {
    hostlist::expand("rack[1-65536]node[1-65536]", Dialect::default()).is_err()
}
