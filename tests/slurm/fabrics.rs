//! Other fabrics in a real slurmctld: blocks on a Slurm that has no block plugin, and ten thousand nodes.

use crate::harness::{Cluster, Install, Nodes, Setup};

#[test]
fn blocks_hold_gangs_on_a_slurm_without_a_block_plugin() {
    // Four base blocks of four; two of them make a block of eight.
    let topology = "BlockName=b1 Nodes=n[1-4]\nBlockName=b2 Nodes=n[5-8]\nBlockName=b3 Nodes=n[9-12]\n\
                    BlockName=b4 Nodes=n[13-16]\nBlockSizes=4,8\n";
    let cluster = Cluster::start(Setup::new(Install::DropIn, Nodes::Cloud(16)).topology(topology));
    let held = cluster.submit(600, &["-w", "n2", "--exclusive"]);
    cluster.wait("the blocker has its node", |c| c.job(held).nodes == ["n2"]);
    let four = cluster.submit(600, &["-N4", "--exclusive"]);
    cluster.wait("a gang of a block's size has a block", |c| c.job(four).nodes == ["n5", "n6", "n7", "n8"]);
    let eight = cluster.submit(600, &["-N8", "--exclusive"]);
    let both: Vec<String> = (9..=16).map(|n| format!("n{n}")).collect();
    cluster.wait("a gang of two blocks has a block of blocks", |c| c.job(eight).nodes == both);
    let waits = cluster.submit(600, &["-N2", "--exclusive"]);
    cluster.wait("two nodes of the broken block", |c| c.job(waits).nodes == ["n1", "n3"]);
}

#[test]
fn a_reconfigure_of_ten_thousand_nodes_rebuilds_the_fabric_and_logs_the_time() {
    let mut cluster = Cluster::start(Setup::new(Install::DropIn, Nodes::Cloud(10_240)).wired(16, 16));
    let first = cluster.submit(600, &["-N200", "--exclusive"]);
    cluster.wait("a gang of 200 has one spine's leaves", |c| c.job(first).nodes.len() == 200);
    assert_eq!(cluster.wiring().excess(&cluster.job(first).nodes), 0);

    // Twice as many nodes a leaf: the fabric is another one, and the running gang keeps its place.
    let before = cluster.job(first).nodes;
    let wider = Setup::new(Install::DropIn, Nodes::Cloud(10_240)).wired(32, 16).topology.unwrap();
    cluster.set_topology(Some(&wider));
    cluster.reconfigure();
    let lines = cluster.logged(&["lockstep: fabric: 10240 nodes on 320 leaves", "read in", " ms"]);
    assert_eq!(lines.len(), 1, "{:#?}", cluster.logged(&["lockstep: "]));
    println!("{}", lines[0]);
    assert_eq!(cluster.job(first).nodes, before);
    let second = cluster.submit(600, &["-N32", "--exclusive"]);
    cluster.wait("a gang of 32 has one leaf", |c| c.job(second).nodes.len() == 32);
    assert_eq!(cluster.wiring().leaves(&cluster.job(second).nodes).len(), 1);

    cluster.reconfigure();
    println!("{}", cluster.logged(&["lockstep: fabric: unchanged"]).pop().unwrap());
}
