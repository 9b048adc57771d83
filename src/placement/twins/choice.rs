//! The home level, and the best choice among all domains of it.

use super::*;

/// The wishes of a gang.
#[derive(Clone, Debug)]
struct Wishes {
    nodes: u32,
    less: u32,
    gpus: Option<u32>,
    required: u32,
    segment: Option<u32>,
    max_leaves: Option<u32>,
    uniform: Option<u32>,
}

fn wishes() -> impl Strategy<Value = Wishes> {
    let required = prop_oneof![3 => Just(0), 1 => (any::<u32>(), any::<u32>()).prop_map(|(a, b)| a & b)];
    let less = prop_oneof![2 => Just(0u32), 1 => 1u32..4];
    let gpus = prop_oneof![2 => Just(None), 1 => (1..=GPUS).prop_map(Some)];
    let segment = prop::option::weighted(0.3, 1u32..5);
    let max_leaves = prop::option::weighted(0.2, 1u32..4);
    let uniform = prop::option::weighted(0.2, any::<u32>());
    (1u32..9, less, gpus, required, segment, max_leaves, uniform).prop_map(
        |(nodes, less, gpus, required, segment, max_leaves, uniform)| Wishes {
            nodes,
            less,
            gpus,
            required,
            segment,
            max_leaves,
            uniform,
        },
    )
}

fn mixes() -> impl Strategy<Value = Mix> {
    let gangs = prop::collection::vec((1u32..7, 1u64..20), 0..4);
    let parts = prop::collection::vec((1u32..=GPUS, 1u64..20), 0..3);
    (gangs, parts).prop_map(|(gangs, parts)| Mix::new(gangs, parts))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn no_choice_is_better_than_the_planners(
        fabric in trees(),
        permitted in any::<u32>(),
        held in prop::collection::vec(prop_oneof![1 => Just(None), 1 => (1..=GPUS).prop_map(Some)], NODES),
        reluctances in prop::option::weighted(0.3, prop::collection::vec((any::<bool>(), 0u32..3), NODES)),
        wishes in wishes(),
        mix in mixes(),
    ) {
        let mut ledger = ledger(&fabric);
        for node in 0..fabric.node_count() as u32 {
            if let Some(gpus) = held[node as usize] {
                ledger.hold(JobId(node), holding([node], gpus, 100));
            }
            if let Some(&(powered_down, weight)) = reluctances.as_ref().and_then(|all| all.get(node as usize)) {
                ledger.set_reluctance(node, Reluctance { powered_down, weight });
            }
        }
        let mut request = Request::new(wishes.nodes, share(wishes.gpus));
        request.at_least = wishes.nodes.saturating_sub(wishes.less).max(1);
        let required = set(&fabric, wishes.required & permitted);
        prop_assume!(required.count() <= request.at_least as usize);
        request.required = (!required.is_empty()).then_some(required);
        request.segment = wishes.segment;
        request.max_leaves = wishes.max_leaves;
        request.uniform = wishes.uniform.map_or(vec![], |bits| vec![set(&fabric, bits), set(&fabric, !bits)]);

        let mut planner = Planner::new(&fabric, &mix);
        let home = planner.home(&fabric, fabric.listed(), &request);
        // The lowest level where some choice of all nodes would serve.
        let segment = request.segment.filter(|&segment| segment < request.nodes);
        let holds_segment = |&level: &Level| {
            let type_of = request.uniform.iter().chain(request.uniform.is_empty().then_some(fabric.listed()));
            type_of.into_iter().any(|only| {
                let mut ids = fabric.at_level(level).iter();
                ids.any(|&id| under(&fabric, id, only).len() >= segment.unwrap_or(0) as usize)
            })
        };
        let segments = segment.and_then(|_| (0..fabric.level_count() as Level).find(holds_segment));
        let could_hold = |&&domain: &&SwitchId| {
            let all = under(&fabric, domain, fabric.listed());
            let all = choices(&all, request.nodes as usize);
            all.iter().any(|nodes| serves(&fabric, &request, segments, domain, nodes))
        };
        let lowest = (0..fabric.level_count() as Level)
            .map(|level| (level, fabric.at_level(level).iter().filter(could_hold).copied().collect::<Vec<_>>()))
            .find(|(_, domains)| !domains.is_empty());
        let Some(home) = home else {
            prop_assert_eq!(lowest, None);
            return Ok(());
        };
        prop_assert_eq!(Some((home.level, home.domains.clone())), lowest);
        prop_assert_eq!(home.segment_level, segments);

        let mut usable = set(&fabric, permitted);
        usable.intersect_with(planner.free(&ledger, fabric.node_count(), &request.share, 0));
        let price = |domain, nodes: &[u32]| {
            // The holes are those in the nodes that the gang itself could use: of one type, if it must.
            let mut holes = usable.clone();
            let type_of = request.uniform.iter().find(|set| nodes.iter().all(|&node| set.contains(node)));
            type_of.into_iter().for_each(|only| holes.intersect_with(only));
            price(&fabric, &ledger, &mix, &holes, &request, domain, nodes)
        };
        let sizes = request.at_least as usize..=request.nodes as usize;
        let best = home
            .domains
            .iter()
            .flat_map(|&domain| sizes.clone().map(move |size| (domain, size)))
            .filter_map(|(domain, size)| {
                let all = choices(&under(&fabric, domain, &usable), size);
                let served = all.iter().filter(|nodes| serves(&fabric, &request, segments, domain, nodes));
                served.map(|nodes| price(domain, nodes)).min()
            })
            .min();
        match planner.place(&fabric, &ledger, &usable, &home, &request, &[]).cloned() {
            Ok(placement) => {
                let nodes: Vec<u32> = placement.nodes.iter().collect();
                prop_assert!(placement.nodes.is_subset(&usable));
                prop_assert!(nodes.len() >= request.at_least as usize);
                prop_assert!(serves(&fabric, &request, segments, placement.domain, &nodes));
                prop_assert_eq!(Some(price(placement.domain, &nodes)), best);
                let again = planner.place(&fabric, &ledger, &usable, &home, &request, &[]);
                prop_assert_eq!(again, Ok(&placement));
            }
            Err(refusal) => prop_assert_eq!(best, None, "{}", refusal.describe(&fabric, None)),
        }
    }

    #[test]
    fn no_window_is_better_than_the_planners(
        fabric in trees(),
        usable in any::<u32>(),
        (nodes, less) in (1u32..7, 0u32..3),
        required in (any::<u32>(), any::<u32>(), any::<u32>()),
        segment in prop::option::weighted(0.2, 1u32..4),
    ) {
        let ledger = ledger(&fabric);
        let usable = set(&fabric, usable | usable >> 3);
        let mut request = Request::new(nodes, share(None));
        request.at_least = nodes.saturating_sub(less).max(1);
        request.strictly_contiguous = true;
        let required = set(&fabric, required.0 & required.1 & required.2);
        request.required = (!required.is_empty()).then_some(required);
        request.segment = segment;
        let mut planner = Planner::new(&fabric, &Mix::default());
        let Some(home) = planner.home(&fabric, fabric.listed(), &request) else { return Ok(()) };
        let leaves = |nodes: &[u32]| {
            let mut leaves: Vec<_> = nodes.iter().map(|&node| fabric.leaf_of(node)).collect();
            leaves.sort_unstable();
            leaves.dedup();
            leaves.len()
        };
        let best = home
            .domains
            .iter()
            .flat_map(|&domain| (request.at_least..=nodes).map(move |size| (domain, size as usize)))
            .filter_map(|(domain, size)| {
                let all = choices(&under(&fabric, domain, &usable), size);
                let served = all.iter().filter(|chosen| serves(&fabric, &request, home.segment_level, domain, chosen));
                served.map(|chosen| (nodes as usize - size, leaves(chosen))).min()
            })
            .min();
        match planner.place(&fabric, &ledger, &usable, &home, &request, &[]) {
            Ok(placement) => {
                let chosen: Vec<u32> = placement.nodes.iter().collect();
                prop_assert!(serves(&fabric, &request, home.segment_level, placement.domain, &chosen));
                prop_assert_eq!(best, Some((nodes as usize - chosen.len(), leaves(&chosen))));
            }
            Err(_) => prop_assert_eq!(best, None),
        }
    }
}
