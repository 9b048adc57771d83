//! The engine against brute force: on small fabrics every possible choice is looked at, and none may be better.

use super::*;
use crate::cluster::{Capacity, Held, Holding};
use crate::fabric::tree::{Below, Declared};
use crate::request::{JobId, Memory};
use proptest::prelude::*;

/// A tree of up to three levels with a few nodes, as nested lists: spines of racks of leaf sizes.
fn trees() -> impl Strategy<Value = Vec<Vec<Vec<u32>>>> {
    let racks = prop::collection::vec(prop::collection::vec(1u32..4, 1..3), 1..3);
    prop::collection::vec(racks, 1..3)
}

fn build(spines: &[Vec<Vec<u32>>]) -> Fabric {
    let mut declared = Vec::new();
    let mut add = |below| {
        declared.push(Declared { name: format!("s{}", declared.len()), below });
        declared.len() - 1
    };
    let (mut node, mut tops) = (0, Vec::new());
    for racks in spines {
        let mut middles = Vec::new();
        for leaves in racks {
            let mut bottoms = Vec::new();
            for &size in leaves {
                bottoms.push(add(Below::Nodes((node..node + size).collect())));
                node += size;
            }
            middles.push(add(Below::Switches(bottoms)));
        }
        tops.push(add(Below::Switches(middles)));
    }
    add(Below::Switches(tops));
    Fabric::new(node as usize, &declared)
}

/// What a set of nodes costs, straight from the definitions: switches by level, hole cost, free nodes left on the leaves
/// it touches, and how full its domain is.
fn cost(fabric: &Fabric, mix: &[(u32, u64)], usable: &NodeSet, domain: SwitchId, nodes: &[u32]) -> Vec<u64> {
    let count = |id: SwitchId, among: &dyn Fn(u32) -> bool| {
        fabric.nodes_under(id).iter().filter(|&&node| among(node)).count() as u64
    };
    let free = |id| count(id, &|node| usable.contains(node));
    let taken = |id| count(id, &|node| nodes.contains(&node));
    let inside = |id: SwitchId| {
        std::iter::successors(Some(id), |&id| fabric.switch(id).parent).any(|above| above == domain)
    };
    let mut parts: Vec<u64> = (0..fabric.level_count() as u16)
        .map(|level| fabric.at_level(level).iter().filter(|&&id| inside(id) && taken(id) > 0).count() as u64)
        .collect();
    let holds = |level: u16, size: u32| {
        fabric.at_level(level).iter().any(|&id| fabric.switch(id).node_count() >= size as usize)
    };
    let mut lost = 0;
    for &(size, weight) in mix {
        let Some(home) = (0..fabric.level_count() as u16).find(|&level| holds(level, size)) else { continue };
        for &id in fabric.at_level(home) {
            let before = free(id) / u64::from(size);
            lost += weight * (before - (free(id) - taken(id)) / u64::from(size));
        }
    }
    parts.push(lost);
    parts.push(fabric.at_level(0).iter().filter(|&&id| taken(id) > 0).map(|&id| free(id) - taken(id)).sum());
    parts.push(free(domain));
    parts
}

/// Every choice of so many of the given nodes.
fn choices(from: &[u32], size: usize) -> Vec<Vec<u32>> {
    match (size, from) {
        (0, _) => vec![vec![]],
        (_, []) => vec![],
        (_, [first, rest @ ..]) => {
            let with = choices(rest, size - 1).into_iter().map(|mut nodes| {
                nodes.push(*first);
                nodes
            });
            with.chain(choices(rest, size)).collect()
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn no_choice_is_better_than_the_planners(
        spines in trees(),
        usable_bits in any::<u32>(),
        wanted in 1u32..9,
        required_bits in prop_oneof![3 => Just(0), 1 => any::<u32>()],
        mix in prop::collection::vec((1u32..7, 1u64..20), 0..4),
    ) {
        let fabric = build(&spines);
        let size = fabric.node_count();
        prop_assume!(size <= 14);
        let bits = |bits: u32| NodeSet::from_nodes(size, (0..size as u32).filter(|node| bits >> node & 1 == 1));
        let usable = bits(usable_bits);
        let required = bits(required_bits & required_bits >> 7 & usable_bits);
        prop_assume!(required.count() <= wanted as usize);
        let share = Share { whole_node: true, cpus: 1, memory: Memory::Megabytes(0), gres: vec![] };
        let required = (!required.is_empty()).then_some(required);
        let request = Request { nodes: wanted, share, required, strictly_contiguous: false };

        let mut planner = Planner::new(&fabric, &Mix::new(mix.iter().copied()));
        let Some(home) = planner.home(&fabric, fabric.listed(), &request) else {
            prop_assert!(wanted as usize > size);
            return Ok(());
        };
        let best = home
            .domains
            .iter()
            .flat_map(|&domain| {
                let under: Vec<u32> =
                    fabric.nodes_under(domain).iter().copied().filter(|&node| usable.contains(node)).collect();
                let all = choices(&under, wanted as usize).into_iter();
                let all = all.filter(|nodes| request.required.iter().flat_map(NodeSet::iter).all(|node| nodes.contains(&node)));
                all.map(|nodes| cost(&fabric, &mix, &usable, domain, &nodes)).min()
            })
            .min();
        match planner.place(&fabric, &usable, &home, &request, &[]) {
            Verdict::Placed(placement) => {
                let nodes: Vec<u32> = placement.nodes.iter().collect();
                prop_assert_eq!(nodes.len(), wanted as usize);
                prop_assert!(placement.nodes.is_subset(&usable));
                prop_assert!(request.required.iter().all(|required| required.is_subset(&placement.nodes)));
                prop_assert_eq!(Some(cost(&fabric, &mix, &usable, placement.domain, &nodes)), best);
            }
            Verdict::Refused(refusal) => prop_assert_eq!(best, None, "{}", refusal),
        }
    }

    #[test]
    fn no_domain_is_free_before_the_forecast(
        spines in trees(),
        ends in prop::collection::vec(prop_oneof![1 => Just(0), 3 => 100i64..120], 14),
        permitted_bits in any::<u32>(),
        wanted in 1u32..7,
        required_bits in prop_oneof![3 => Just(0), 1 => any::<u32>()],
        strictly_contiguous in any::<bool>(),
    ) {
        let fabric = build(&spines);
        let size = fabric.node_count();
        prop_assume!(size <= 14);
        let bits = |bits: u32| NodeSet::from_nodes(size, (0..size as u32).filter(|node| bits >> node & 1 == 1));
        // Most nodes may be used: a forecast is of interest where few are out of reach.
        let permitted = bits(permitted_bits | permitted_bits >> 9);
        let required = bits(required_bits & required_bits >> 5 & required_bits >> 11);
        prop_assume!(required.count() <= wanted as usize);
        let share = Share { whole_node: true, cpus: 1, memory: Memory::Megabytes(0), gres: vec![] };
        let required = (!required.is_empty()).then_some(required);
        let request = Request { nodes: wanted, share, required, strictly_contiguous };
        let now = 99;
        let mut ledger = Ledger::new(size);
        for node in 0..size as u32 {
            ledger.set_capacity(node, Capacity { cpus: 1, ..Capacity::default() });
            if ends[node as usize] > 0 {
                let nodes = vec![(node, Held { cpus: 1, ..Held::default() })];
                ledger.hold(JobId(node), Holding { nodes, end: ends[node as usize], suspended: false });
            }
        }
        let mut planner = Planner::new(&fabric, &Mix::default());
        let Some(home) = planner.home(&fabric, fabric.listed(), &request) else { return Ok(()) };

        // At each moment, in each domain: are there enough nodes, the required ones among them, in a row if they must be?
        let free_at = |time: Time| permitted.iter().filter(|&node| ends[node as usize] <= time).collect::<Vec<_>>();
        let fits_at = |time: Time| {
            let free = free_at(time);
            home.domains.iter().any(|&domain| {
                let under: Vec<u32> =
                    fabric.nodes_under(domain).iter().copied().filter(|node| free.contains(node)).collect();
                choices(&under, wanted as usize).into_iter().any(|nodes| {
                    let has_required = request.required.iter().flat_map(NodeSet::iter).all(|node| nodes.contains(&node));
                    let mut positions: Vec<_> = nodes.iter().filter_map(|&node| fabric.position(node)).collect();
                    positions.sort_unstable();
                    let in_a_row = positions.windows(2).all(|pair| pair[1] == pair[0] + 1);
                    has_required && (in_a_row || !strictly_contiguous)
                })
            })
        };
        let earliest = (now..120).find(|&time| fits_at(time));
        let forecast = planner.forecast(&fabric, &ledger, &permitted, &home, &request, now);
        prop_assert_eq!(forecast.as_ref().map(|forecast| forecast.start), earliest);
        if let Some(forecast) = forecast {
            let free = NodeSet::from_nodes(size, free_at(forecast.start));
            prop_assert!(forecast.placement.nodes.is_subset(&free));
            prop_assert_eq!(forecast.placement.nodes.count(), wanted as usize);
            if forecast.start == now {
                let placed = planner.place(&fabric, &free, &home, &request, &[]);
                prop_assert_eq!(placed, Verdict::Placed(forecast.placement));
            }
        }
    }
}
