//! The fabric changes under running and waiting jobs, again and again.

use super::traffic::{self, CHECK_LEDGER, Traffic, finish, some};
use crate::churn::Dice;
use crate::harness::{Cluster, Install, Nodes, Setup, Wiring};
use std::collections::BTreeSet;

const NODES: usize = 48;
const TURNS: usize = 20;
/// How many gangs of those that fit in a leaf must be seen to start in each turn.
const GANGS: usize = 3;

/// A fabric with two leaves a spine.
struct Fabric {
    leaf: usize,
    text: String,
    wiring: Wiring,
}

impl Fabric {
    fn of_leaves(leaf: usize) -> Self {
        let setup = Setup::new(Install::DropIn, Nodes::Cloud(NODES)).wired(leaf, 2);
        let core = format!("SwitchName=core Switches=spine[1-{}]\n", NODES.div_ceil(2 * leaf));
        let text = setup.topology.unwrap() + &core;
        Self { leaf, wiring: Wiring::of(&text), text }
    }
}

#[test]
fn twenty_reconfigures_with_other_fabrics_under_churn() {
    let fabrics = [4, 8, 6].map(Fabric::of_leaves);
    // Leaf 2 is missing.
    let broken = "SwitchName=leaf1 Nodes=n[1-24]\nSwitchName=spine1 Switches=leaf[1-2]\n";
    let setup = Setup::new(Install::DropIn, Nodes::Cloud(NODES)).topology(&fabrics[0].text);
    let setup = setup.extra(CHECK_LEDGER);
    let mut cluster = Cluster::start(setup);
    let (mut traffic, mut dice) = (Traffic::default(), Dice(7_061_201));
    let sizes = [1, 1, 2, 3, 4, 4, 5, 6, 6, 8, 8, 12];
    let mut in_force = &fabrics[0];
    let mut seen = [0; 3];
    finish(traffic.submit(&cluster, &mut dice, 20, &sizes));
    for turn in 0..TURNS {
        // Jobs come while slurmctld reads its configuration.
        let mut under_way = traffic.submit(&cluster, &mut dice, 3, &sizes);
        let next = [Some(1), None, Some(2), Some(0), None][turn % 5];
        cluster.set_topology(Some(next.map_or(broken, |index| &fabrics[index].text)));
        cluster.reconfigure();
        in_force = next.map_or(in_force, |index| &fabrics[index]);
        assert!(cluster.controller_lives());
        finish(under_way.drain(..));

        // Whoever waits now starts on this fabric, and so does whoever comes until the next reconfigure.
        let before: BTreeSet<u32> = traffic.look(&cluster).holding.into_iter().collect();
        let mut gangs = 0;
        cluster.wait("gangs start", |c| {
            finish(under_way.drain(..));
            let look = traffic.look(c);
            for job in look.started.iter().filter(|job| traffic::size(job) > 1) {
                assert!(!before.contains(&job.id.parse().unwrap()));
                if traffic::size(job) <= in_force.leaf {
                    let leaves = in_force.wiring.leaves(&job.nodes);
                    assert_eq!(leaves.len(), 1, "turn {turn}: crosses a leaf for nothing: {job:?}");
                    gangs += 1;
                } else if traffic::size(job) <= 2 * in_force.leaf {
                    let spines = in_force.wiring.spines(&job.nodes);
                    assert_eq!(spines.len(), 1, "turn {turn}: crosses a spine for nothing: {job:?}");
                }
            }
            under_way.extend(traffic.cancel(c, &some(&look.holding, &mut dice, 5)));
            if look.waiting.len() > 30 {
                under_way.extend(traffic.cancel(c, &some(&look.waiting, &mut dice, 4)));
            }
            let count = 1 + dice.below(3);
            under_way.extend(traffic.submit(c, &mut dice, count, &sizes));
            gangs >= GANGS
        });
        finish(under_way);
        seen[fabrics.iter().position(|fabric| fabric.leaf == in_force.leaf).unwrap()] += gangs;
        traffic::check_log(&cluster);
    }
    println!("{TURNS} reconfigures; gangs seen on leaves of 4, 8 and 6: {seen:?}");
    // Twenty turns end with the broken file, and with the fabric of the turn before in force.
    assert_eq!(cluster.logged(&["error: lockstep: ", "last good fabric stays"]).len(), 2 * TURNS / 5);
    traffic::cancel_all(&cluster);
    traffic::check_gangs_fill_the_machine(&cluster, in_force.leaf);
    traffic::check_log(&cluster);
}
