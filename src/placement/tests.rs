use super::verdict::Instead;
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
    Request::new(nodes, share)
}

fn set(fabric: &Fabric, nodes: impl IntoIterator<Item = u32>) -> NodeSet {
    NodeSet::from_nodes(fabric.node_count(), nodes)
}

fn place(fabric: &Fabric, usable: &NodeSet, request: &Request) -> Result<Placement, Refusal> {
    let mut planner = Planner::new(fabric, &Mix::default());
    let home = planner.home(fabric, fabric.listed(), request).unwrap();
    planner.place(fabric, &Ledger::new(fabric.node_count()), usable, &home, request, &[]).cloned()
}

fn nodes(placed: Result<Placement, Refusal>) -> Vec<u32> {
    placed.unwrap().nodes.iter().collect()
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
    let refusal = place(&fabric, &usable, &gang(4)).unwrap_err();
    assert_eq!(
        refusal.describe(&fabric, None).to_string(),
        "needs 4 nodes under one leaf; best leaf00 has 3 free of 4"
    );
}

#[test]
fn a_larger_gang_takes_the_fewest_leaves_of_one_spine() {
    let fabric = fabric(&[&[4, 4, 4], &[4, 4, 4]]);
    // Spine 0 could hold six nodes on three leaves, spine 1 on two.
    let usable = set(&fabric, [0, 1, 4, 5, 8, 9, 12, 13, 14, 16, 17, 18, 20]);
    assert_eq!(nodes(place(&fabric, &usable, &gang(6))), [12, 13, 14, 16, 17, 18]);
    // Four leaves would do across the spines, but a gang of seven stays under one.
    assert_eq!(nodes(place(&fabric, &usable, &gang(7))), [12, 13, 14, 16, 17, 18, 20]);
    let refusal = place(&fabric, &usable, &gang(8)).unwrap_err();
    assert_eq!(refusal.best.unwrap().usable, 7);
}

#[test]
fn excess_counts_leaves_beyond_an_empty_domains_need() {
    let fabric = fabric(&[&[4, 4, 4]]);
    let placement = place(&fabric, &set(&fabric, [0, 1, 4, 5, 8, 9]), &gang(6)).unwrap();
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
    assert!(place(&fabric, &set(&fabric, [0, 1, 3, 4, 6, 7]), &request).is_err());
}

#[test]
fn a_refused_set_is_not_proposed_again() {
    let fabric = fabric(&[&[4, 4]]);
    let mut planner = Planner::new(&fabric, &Mix::default());
    let home = planner.home(&fabric, fabric.listed(), &gang(4)).unwrap();
    let first = set(&fabric, [0, 1, 2, 3]);
    let ledger = Ledger::new(8);
    let mut place = |refused: &[NodeSet]| {
        nodes(planner.place(&fabric, &ledger, fabric.listed(), &home, &gang(4), refused).cloned())
    };
    assert_eq!(place(&[]), [0, 1, 2, 3]);
    assert_eq!(place(&[first]), [4, 5, 6, 7]);
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
    let mut ask = |ledger: &Ledger| {
        let forecast = planner.forecast(&fabric, ledger, fabric.listed(), &home, &gang(2), 100).unwrap();
        (forecast.start, forecast.placement.nodes.iter().collect::<Vec<_>>())
    };
    assert_eq!(ask(&ledger), (300, vec![2, 3]));
    ledger.release(JobId(1));
    assert_eq!(ask(&ledger), (100, vec![0, 1]));
}

#[test]
fn segments_lie_whole_on_their_leaves() {
    // Three leaves of 17, where a gang of 36 in segments of 12 was once given 17 + 17 + 2.
    let fabric = fabric(&[&[17, 17, 17]]);
    let mut request = gang(36);
    let on_leaves = |request: &Request| {
        let nodes = nodes(place(&fabric, fabric.listed(), request));
        let on = |leaf: u32| nodes.iter().filter(|&&node| node / 17 == leaf).count();
        [on(0), on(1), on(2)]
    };
    assert_eq!(on_leaves(&request), [17, 17, 2]);
    request.segment = Some(12);
    assert_eq!(on_leaves(&request), [12, 12, 12]);
    // The last segment may be smaller, and lies where it fits.
    (request.nodes, request.at_least, request.segment) = (20, 20, Some(8));
    assert_eq!(on_leaves(&request), [16, 4, 0]);
    (request.nodes, request.at_least, request.segment) = (52, 52, Some(12));
    assert_eq!(Planner::default().home(&fabric, fabric.listed(), &request), None);
}

#[test]
fn elastic_gangs_take_the_most_that_fit_and_few_leaves_bound_them() {
    let fabric = fabric(&[&[4, 4, 4]]);
    let mut request = gang(10);
    request.at_least = 4;
    let usable = set(&fabric, [0, 1, 2, 4, 5, 8, 9, 10, 11]);
    assert_eq!(nodes(place(&fabric, &usable, &request)).len(), 9);
    request.max_leaves = Some(3);
    assert_eq!(nodes(place(&fabric, &usable, &request)).len(), 9);
    (request.nodes, request.max_leaves) = (8, Some(2));
    assert_eq!(nodes(place(&fabric, &usable, &request)), [0, 1, 2, 8, 9, 10, 11]);
}

#[test]
fn gangs_too_large_for_tables_get_the_fewest_leaves_too() {
    let leaves = [8u32; 600];
    let fabric = fabric(&[&leaves, &leaves]);
    // Every third leaf has half its nodes; 4,000 nodes under one spine of 4,000 usable or more.
    let usable = NodeSet::from_nodes(9600, (0..9600).filter(|node| node / 8 % 3 != 0 || node % 2 == 0));
    let mut request = gang(3300);
    let placement = place(&fabric, &usable, &request).unwrap();
    assert_eq!((placement.nodes.count(), placement.leaves), (3300, 400 + 25));
    request.segment = Some(6);
    let placement = place(&fabric, &usable, &request);
    assert_eq!(placement.unwrap_err().best.unwrap().usable, 4000, "only 400 leaves have six");
    (request.nodes, request.at_least, request.segment) = (1596, 1596, Some(4));
    assert_eq!(place(&fabric, &usable, &request).unwrap().leaves, 200, "two segments a leaf, one alone");
    (request.nodes, request.at_least, request.segment, request.max_leaves) = (3300, 3000, None, Some(420));
    assert_eq!(place(&fabric, &usable, &request).unwrap().nodes.count(), 400 * 8 + 20 * 4);
}

#[test]
fn one_gpu_goes_where_it_breaks_least() {
    let gpu = crate::request::GresKind(0);
    let fabric = fabric(&[&[2, 2]]);
    let mut ledger = Ledger::new(4);
    ledger.set_slot_kind(gpu);
    for node in 0..4 {
        ledger.set_capacity(node, Capacity { cpus: 64, memory_mb: 0, gres: vec![(gpu, 8)] });
    }
    let hold = |ledger: &mut Ledger, job, node, gpus| {
        let held = Held { cpus: 1, memory_mb: 0, gres: vec![(gpu, gpus)] };
        ledger.hold(JobId(job), Holding { nodes: vec![(node, held)], end: 100, suspended: false });
    };
    let share =
        |gpus| Share { whole_node: false, cpus: 1, memory: Memory::Megabytes(0), gres: vec![(gpu, gpus)] };
    // The site keeps room for pairs and fours inside nodes.
    let mix = Mix::new([(1, 8), (2, 16)], [(2, 2), (4, 4)]);
    let place = |ledger: &Ledger, gpus| {
        let (mut planner, request) = (Planner::new(&fabric, &mix), Request::new(1, share(gpus)));
        let free = planner.free(ledger, 4, &request.share, 0).clone();
        let home = planner.home(&fabric, fabric.listed(), &request).unwrap();
        nodes(planner.place(&fabric, ledger, &free, &home, &request, &[]).cloned())
    };
    assert_eq!(place(&ledger, 1), [0]);
    hold(&mut ledger, 1, 2, 5);
    assert_eq!(place(&ledger, 1), [2], "the node in use, and the leaf that is broken already");
    assert_eq!(place(&ledger, 8), [3], "the other node of the broken leaf");
    hold(&mut ledger, 2, 3, 4);
    assert_eq!(place(&ledger, 1), [2], "three are left there: a pair still fits");
    assert_eq!(place(&ledger, 4), [3]);
    assert_eq!(place(&ledger, 5), [0]);
}

#[test]
fn powered_down_nodes_come_last_and_light_ones_first() {
    use crate::cluster::Reluctance;
    let fabric = fabric(&[&[4]]);
    let mut ledger = Ledger::new(4);
    ledger.set_reluctance(0, Reluctance { powered_down: true, weight: 1 });
    ledger.set_reluctance(1, Reluctance { powered_down: false, weight: 9 });
    let mut planner = Planner::new(&fabric, &Mix::default());
    let home = planner.home(&fabric, fabric.listed(), &gang(2)).unwrap();
    let mut place = |nodes_wanted| {
        nodes(planner.place(&fabric, &ledger, fabric.listed(), &home, &gang(nodes_wanted), &[]).cloned())
    };
    assert_eq!(place(2), [2, 3]);
    assert_eq!(place(3), [1, 2, 3]);
}

#[test]
fn people_are_told_who_is_in_the_way_and_what_would_start() {
    let fabric = fabric(&[&[4, 4], &[4, 4]]);
    let mut ledger = Ledger::new(16);
    for node in 0..16 {
        ledger.set_capacity(node, Capacity { cpus: 8, memory_mb: 0, gres: vec![] });
    }
    for (job, node) in (1..).zip([0, 4, 8, 12]) {
        let nodes = vec![(node, Held { cpus: 8, ..Held::default() })];
        ledger.hold(JobId(job), Holding { nodes, end: 1000 - Time::from(node), suspended: false });
    }
    let mut planner = Planner::new(&fabric, &Mix::default());
    let mut explain = |request: &Request| {
        let home = planner.home(&fabric, fabric.listed(), request).unwrap();
        planner.explain(&fabric, &ledger, fabric.listed(), &home, request, 100)
    };
    assert_eq!(explain(&gang(3)), None, "it starts");
    let four = explain(&gang(4)).unwrap();
    let refusal = four.refusal.describe(&fabric, None).to_string();
    assert_eq!(refusal, "needs 4 nodes under one leaf; best leaf00 has 3 free of 4");
    assert_eq!(
        four.drains.map(|(id, start)| (fabric.switch(id).name.as_str(), start)),
        Some(("leaf11", 988))
    );
    assert_eq!(four.blockers, [JobId(4)]);
    let instead: Vec<_> = four.instead.iter().map(ToString::to_string).collect();
    let wider = "under a switch of level 1 it would start now";
    assert_eq!(instead, ["2 x 2 nodes would start now", "3 nodes would start now", wider]);
    let eight = explain(&gang(8)).unwrap();
    assert_eq!((eight.drains.map(|drains| drains.1), eight.blockers), (Some(992), vec![JobId(3), JobId(4)]));
    let parts = Instead::Parts { gangs: 3, nodes: 3 };
    assert_eq!(eight.instead, [parts, Instead::Fewer { nodes: 6 }]);
}
