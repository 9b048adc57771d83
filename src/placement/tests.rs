use super::*;
use crate::cluster::{Capacity, Held, Holding, Ledger};
use crate::fabric::tree::{Below, Declared};
use crate::request::{JobId, Memory, Share};

/// Two spines over leaves of the given sizes; nodes numbered in fabric order.
pub fn fabric(spines: &[&[u32]]) -> Fabric {
    let mut declared = Vec::new();
    let mut node = 0;
    for (s, leaves) in spines.iter().enumerate() {
        let first = declared.len() + 1;
        declared.push(Declared {
            name: format!("spine{s}"),
            below: Below::Switches((first..first + leaves.len()).collect()),
        });
        for (l, &size) in leaves.iter().enumerate() {
            declared.push(Declared {
                name: format!("leaf{s}{l}"),
                below: Below::Nodes((node..node + size).collect()),
            });
            node += size;
        }
    }
    Fabric::new(node as usize, &declared)
}

fn gang(nodes: u32) -> Request {
    let share = Share { whole_node: true, cpus: 1, memory: Memory::Megabytes(0), gres: vec![] };
    Request { nodes, share, required: None, strictly_contiguous: false }
}

fn set(fabric: &Fabric, nodes: impl IntoIterator<Item = u32>) -> NodeSet {
    NodeSet::from_nodes(fabric.node_count(), nodes)
}

fn place(fabric: &Fabric, usable: &NodeSet, request: &Request) -> Verdict {
    let mut planner = Planner::new(fabric, &Mix::default());
    let home = planner.home(fabric, fabric.listed(), request).unwrap();
    planner.place(fabric, usable, &home, request, &[])
}

fn nodes(verdict: Verdict) -> Vec<u32> {
    match verdict {
        Verdict::Placed(placement) => placement.nodes.iter().collect(),
        Verdict::Refused(refusal) => panic!("{refusal}"),
    }
}

#[test]
fn a_gang_takes_the_tightest_leaf_that_holds_it() {
    let fabric = fabric(&[&[4, 4], &[4, 4]]);
    let usable = set(&fabric, [0, 1, 2, 3, 4, 5, 6, 9, 10, 12]);
    assert_eq!(nodes(place(&fabric, &usable, &gang(2))), [9, 10]);
    assert_eq!(nodes(place(&fabric, &usable, &gang(3))), [4, 5, 6]);
}

#[test]
fn a_gang_of_a_leafs_size_waits_rather_than_spread() {
    let fabric = fabric(&[&[4, 4], &[4, 4]]);
    let usable = set(&fabric, [0, 1, 2, 4, 5, 6, 8, 9, 10]);
    let Verdict::Refused(refusal) = place(&fabric, &usable, &gang(4)) else { panic!("placed") };
    assert_eq!(refusal.to_string(), "needs 4 nodes under one leaf; best leaf00 has 3 free of 4");
}

#[test]
fn a_larger_gang_takes_the_fewest_leaves_of_one_spine() {
    let fabric = fabric(&[&[4, 4, 4], &[4, 4, 4]]);
    // Spine 0 could hold six nodes on three leaves, spine 1 on two.
    let usable = set(&fabric, [0, 1, 4, 5, 8, 9, 12, 13, 14, 16, 17, 18, 20]);
    assert_eq!(nodes(place(&fabric, &usable, &gang(6))), [12, 13, 14, 16, 17, 18]);
    // Four leaves would do across the spines, but a gang of seven stays under one.
    assert_eq!(nodes(place(&fabric, &usable, &gang(7))), [12, 13, 14, 16, 17, 18, 20]);
    let Verdict::Refused(refusal) = place(&fabric, &usable, &gang(8)) else { panic!("placed") };
    assert_eq!(refusal.best.unwrap().usable, 7);
}

#[test]
fn excess_counts_leaves_beyond_an_empty_domains_need() {
    let fabric = fabric(&[&[4, 4, 4]]);
    let Verdict::Placed(placement) = place(&fabric, &set(&fabric, [0, 1, 4, 5, 8, 9]), &gang(6)) else {
        panic!("refused")
    };
    assert_eq!((placement.leaves, placement.excess), (3, 1));
}

#[test]
fn no_gang_crosses_the_trees_of_a_forest() {
    let fabric = fabric(&[&[4], &[4]]);
    assert_eq!(Planner::default().home(&fabric, fabric.listed(), &gang(5)), None);
}

#[test]
fn required_nodes_lift_the_home_level_and_are_all_taken() {
    let fabric = fabric(&[&[4, 4], &[4, 4]]);
    let mut request = gang(3);
    request.required = Some(set(&fabric, [5]));
    assert_eq!(nodes(place(&fabric, fabric.listed(), &request)), [4, 5, 6]);
    request.required = Some(set(&fabric, [1, 5]));
    assert_eq!(nodes(place(&fabric, fabric.listed(), &request)), [0, 1, 5]);
    request.required = Some(set(&fabric, [1, 9]));
    assert_eq!(Planner::default().home(&fabric, fabric.listed(), &request), None);
}

#[test]
fn strictly_contiguous_is_one_run_of_positions() {
    let fabric = fabric(&[&[4, 4]]);
    let mut request = gang(3);
    request.strictly_contiguous = true;
    assert_eq!(nodes(place(&fabric, &set(&fabric, [0, 1, 3, 4, 5, 6, 7]), &request)), [4, 5, 6]);
    assert!(matches!(place(&fabric, &set(&fabric, [0, 1, 3, 4, 6, 7]), &request), Verdict::Refused(_)));
}

#[test]
fn a_refused_set_is_not_proposed_again() {
    let fabric = fabric(&[&[4, 4]]);
    let mut planner = Planner::new(&fabric, &Mix::default());
    let home = planner.home(&fabric, fabric.listed(), &gang(4)).unwrap();
    let first = set(&fabric, [0, 1, 2, 3]);
    let refused = [first.clone()];
    assert_eq!(nodes(planner.place(&fabric, fabric.listed(), &home, &gang(4), &[])), [0, 1, 2, 3]);
    assert_eq!(nodes(planner.place(&fabric, fabric.listed(), &home, &gang(4), &refused)), [4, 5, 6, 7]);
}

#[test]
fn a_forecast_drains_the_domain_that_is_free_first() {
    let fabric = fabric(&[&[2, 2]]);
    let mut ledger = Ledger::new(4);
    for node in 0..4 {
        ledger.set_capacity(node, Capacity { cpus: 8, memory_mb: 0, gres: vec![] });
    }
    let holding = |node, end| Holding {
        nodes: vec![(node, Held { cpus: 8, ..Held::default() })],
        end,
        suspended: false,
    };
    ledger.hold(JobId(1), holding(0, 500));
    ledger.hold(JobId(2), holding(2, 300));
    ledger.hold(JobId(3), holding(3, 200));
    let mut planner = Planner::new(&fabric, &Mix::default());
    let home = planner.home(&fabric, fabric.listed(), &gang(2)).unwrap();
    let mut ask = |ledger: &Ledger| planner.forecast(&fabric, ledger, fabric.listed(), &home, &gang(2), 100);
    let forecast = ask(&ledger).unwrap();
    assert_eq!((forecast.start, forecast.placement.nodes.iter().collect::<Vec<_>>()), (300, vec![2, 3]));
    ledger.release(JobId(1));
    let forecast = ask(&ledger).unwrap();
    assert_eq!((forecast.start, forecast.placement.nodes.iter().collect::<Vec<_>>()), (100, vec![0, 1]));
}
