//! The earliest start, and the domain that costs the least to drain.

use super::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn no_domain_is_free_before_the_forecast(
        fabric in trees(),
        jobs in prop::collection::vec((0u32..11, 1u32..5, prop_oneof![1 => 90i64..99, 6 => 100i64..140]), 0..20),
        permitted in any::<u32>(),
        nodes in 1u32..7,
        gpus in prop::option::weighted(0.3, 1..=GPUS),
        required in prop_oneof![3 => Just(0), 1 => (any::<u32>(), any::<u32>()).prop_map(|(a, b)| a & b)],
        strictly_contiguous in any::<bool>(),
        segment in prop::option::weighted(0.2, 1u32..4),
        later in 0i64..40,
    ) {
        let size = fabric.node_count();
        // Most nodes may be used: a forecast is of interest where few are out of reach.
        let permitted = set(&fabric, permitted | permitted >> 9);
        let mut request = Request::new(nodes, share(gpus));
        let required = set(&fabric, required & required >> 11);
        request.required = (!required.is_empty()).then_some(required);
        request.strictly_contiguous = strictly_contiguous;
        request.segment = segment;
        let now = 99;
        let mut ledger = ledger(&fabric);
        let mut planner = Planner::new(&fabric, &Mix::default());
        let Some(home) = planner.home(&fabric, fabric.listed(), &request) else { return Ok(()) };
        for (job, &(node, gpus, end)) in (0..).zip(&jobs) {
            let full = node as usize >= size || ledger.slots(node).free < gpus;
            if !full {
                ledger.hold(JobId(job), holding([node], gpus, end));
                // What is remembered between two questions must be brought up to date by what happened.
                let _ = planner.forecast(&fabric, &ledger, &permitted, &home, &request, now - 1);
            }
        }

        // A job past its end is thought to leave in half a minute.
        let ends = |node: u32, now: Time| -> Vec<(Time, u32)> {
            let holders = ledger.holders(node).map(|job| (jobs[job.0 as usize].2, jobs[job.0 as usize].1));
            holders.map(|(end, gpus)| (if end > now { end } else { now + 30 }, gpus)).collect()
        };
        let gives = |node: u32, time: Time, now: Time| {
            let held: Vec<_> = ends(node, now).into_iter().filter(|&(end, _)| end > time).collect();
            gpus.map_or(held.is_empty(), |asked| held.iter().map(|job| job.1).sum::<u32>() + asked <= GPUS)
        };
        let check = |planner: &mut Planner, now: Time| {
            let free_at = |time: Time| {
                NodeSet::from_nodes(size, permitted.iter().filter(|&node| gives(node, time, now)))
            };
            let fits_at = |domain: SwitchId, time: Time| {
                let all = choices(&under(&fabric, domain, &free_at(time)), nodes as usize);
                all.iter().any(|chosen| serves(&fabric, &request, home.segment_level, domain, chosen))
            };
            let starts = home.domains.iter().map(|&domain| {
                let start = (now..now + 80).find(|&time| fits_at(domain, time));
                let mut releases: Vec<Time> = under(&fabric, domain, &permitted)
                    .into_iter()
                    .filter_map(|node| (now..now + 80).find(|&time| gives(node, time, now)))
                    .collect();
                releases.sort_unstable();
                let last = releases.get(nodes as usize - 1).copied();
                let idle: Time = releases.iter().take(nodes as usize).map(|time| last.unwrap_or(0) - time).sum();
                start.map(|start| (start, idle, domain))
            });
            let earliest = starts.flatten().min();
            let forecast = planner.forecast(&fabric, &ledger, &permitted, &home, &request, now);
            let forecast = forecast.map(|forecast| (forecast.start, forecast.placement.clone()));
            prop_assert_eq!(forecast.as_ref().map(|forecast| forecast.0), earliest.map(|(start, ..)| start));
            let Some((start, placement)) = forecast else { return Ok(()) };
            let free = free_at(start);
            prop_assert!(placement.nodes.is_subset(&free));
            let chosen: Vec<u32> = placement.nodes.iter().collect();
            prop_assert!(serves(&fabric, &request, home.segment_level, placement.domain, &chosen));
            prop_assert_eq!(chosen.len(), nodes as usize);
            if start == now {
                let placed = planner.place(&fabric, &ledger, &free, &home, &request, &[]);
                prop_assert_eq!(placed, Ok(&placement));
            } else if request == Request::new(nodes, share(gpus)) {
                // Of all domains that are ready then, the one that stands idle the shortest, at the least price.
                let idles = home.domains.iter().filter_map(|&domain| {
                    let times = under(&fabric, domain, &permitted).into_iter();
                    let mut times: Vec<Time> =
                        times.filter_map(|node| (now..=start).find(|&time| gives(node, time, now))).collect();
                    times.sort_unstable();
                    let idle = times.get(..nodes as usize)?.iter().map(|time| start - time).sum::<Time>();
                    let later = Request { share: share(None), ..request.clone() };
                    let all = choices(&under(&fabric, domain, &free), nodes as usize);
                    let mix = Mix::default();
                    let price = |chosen: &Vec<u32>| {
                        (idle, price(&fabric, &ledger, &mix, &free, &later, domain, chosen))
                    };
                    let here = (domain == placement.domain).then(|| price(&chosen));
                    Some((all.iter().map(price).min()?, here))
                });
                let idles: Vec<_> = idles.collect();
                let best = idles.iter().map(|(best, _)| best).min();
                prop_assert_eq!(idles.iter().find_map(|(_, here)| here.as_ref()), best);
            }
            Ok(())
        };
        check(&mut planner, now)?;
        check(&mut planner, now + later)?;
    }
}
