//! The least that must be lost for a gang to start.

use super::*;
use crate::placement::victims::{Candidate, Loss};
use std::collections::BTreeSet;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn no_victims_are_cheaper(
        fabric in trees(),
        jobs in prop::collection::vec(
            (prop::collection::btree_set(0u32..11, 1..4), 1u32..5, 0u64..4, 0u64..6, any::<[bool; 2]>()),
            0..9,
        ),
        permitted in any::<u32>(),
        nodes in 1u32..6,
        gpus in prop::option::weighted(0.5, 1..=GPUS),
        required in prop_oneof![3 => Just(0), 1 => (any::<u32>(), any::<u32>()).prop_map(|(a, b)| a & b)],
        wish in 0u32..6,
    ) {
        let size = fabric.node_count();
        let permitted = set(&fabric, permitted | permitted >> 9);
        let mut request = Request::new(nodes, share(gpus));
        let required = set(&fabric, required & required >> 11);
        request.required = (!required.is_empty()).then_some(required);
        request.strictly_contiguous = wish == 0;
        request.max_leaves = (wish == 1).then_some(1);
        let mut ledger = ledger(&fabric);
        let mut candidates = Vec::new();
        for (job, (on, gpus, priority, lost, stays)) in (0..).zip(&jobs) {
            let on = on.iter().copied().filter(|&node| (node as usize) < size);
            let on: Vec<u32> = on.filter(|&node| ledger.slots(node).free >= *gpus).collect();
            ledger.hold(JobId(job), holding(on, *gpus, 1000));
            if !(stays[0] && stays[1]) {
                candidates.push(Candidate { job: JobId(job), priority: *priority, lost: *lost });
            }
        }
        let mut planner = Planner::new(&fabric, &Mix::default());
        let Some(home) = planner.home(&fabric, fabric.listed(), &request) else { return Ok(()) };

        let free_without = |gone: &BTreeSet<JobId>| {
            let gives = |&node: &u32| ledger.has_free_without(node, &request.share, |job| gone.contains(&job));
            NodeSet::from_nodes(size, permitted.iter().filter(gives))
        };
        let subsets = (0u32..1 << candidates.len()).map(|bits| {
            let chosen = candidates.iter().enumerate().filter(|&(bit, _)| bits >> bit & 1 == 1);
            chosen.map(|(_, candidate)| *candidate).collect::<Vec<_>>()
        });
        let loss = |victims: &[Candidate]| Loss {
            jobs: victims.len() as u32,
            priority: victims.iter().map(|victim| victim.priority).sum(),
            lost: victims.iter().map(|victim| victim.lost).sum(),
        };
        let fits = |victims: &[Candidate]| {
            let free = free_without(&victims.iter().map(|victim| victim.job).collect());
            home.domains.iter().any(|&domain| {
                let all = choices(&under(&fabric, domain, &free), nodes as usize);
                all.iter().any(|chosen| serves(&fabric, &request, None, domain, chosen))
            })
        };
        let cheapest = subsets.filter(|victims| fits(victims)).map(|victims| loss(&victims)).min();
        let found = planner.victims(&fabric, &ledger, &permitted, &home, &request, &candidates);
        prop_assert_eq!(found.is_some(), cheapest.is_some());
        let Some(found) = found else { return Ok(()) };
        let victims: Vec<Candidate> =
            candidates.iter().filter(|candidate| found.victims.contains(&candidate.job)).copied().collect();
        prop_assert_eq!(loss(&victims), found.loss);
        let chosen: Vec<u32> = found.placement.nodes.iter().collect();
        prop_assert_eq!(chosen.len(), nodes as usize);
        prop_assert!(serves(&fabric, &request, None, found.placement.domain, &chosen));
        prop_assert!(found.placement.nodes.is_subset(&free_without(&found.victims.iter().copied().collect())));
        if wish > 1 {
            prop_assert_eq!(Some(found.loss), cheapest);
        } else {
            // In a row or on few leaves: no victim is needless.
            for spared in &victims {
                let others: Vec<Candidate> = victims.iter().filter(|other| other != &spared).copied().collect();
                let free = free_without(&others.iter().map(|victim| victim.job).collect());
                let domain = found.placement.domain;
                let all = choices(&under(&fabric, domain, &free), nodes as usize);
                prop_assert!(!all.iter().any(|chosen| serves(&fabric, &request, None, domain, chosen)));
            }
        }
    }
}
