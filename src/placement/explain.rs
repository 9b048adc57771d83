//! Why a gang waits, for whom, until when, and what would start in its place: what people ask about a pending job.

use super::Planner;
use super::candidates::{self, Counts, Home};
use super::verdict::{Explanation, Instead};
use crate::cluster::Ledger;
use crate::fabric::tree::{Fabric, Level};
use crate::nodeset::NodeSet;
use crate::request::{Request, Time};

impl Planner {
    /// Explains why a gang does not start now on permitted nodes; none if it does.
    pub fn explain(
        &mut self,
        fabric: &Fabric,
        ledger: &Ledger,
        permitted: &NodeSet,
        home: &Home,
        request: &Request,
        now: Time,
    ) -> Option<Explanation> {
        let mut free = permitted.clone();
        free.intersect_with(self.free(ledger, permitted.size(), &request.share, now));
        let (refusal, drains, blockers) = match self.forecast(fabric, ledger, permitted, home, request, now) {
            Some(forecast) => {
                let placement = forecast.placement;
                let in_use = placement.nodes.iter().filter(|&node| !free.contains(node));
                let blockers = ledger.last_to_end_first(in_use.flat_map(|node| ledger.holders(node)));
                (forecast.refusal?, Some((placement.domain, forecast.start)), blockers)
            }
            None => (self.place(fabric, ledger, &free, home, request, &[]).err()?, None, Vec::new()),
        };
        let instead = self.instead(fabric, permitted, &free, home, request);
        Some(Explanation { refusal, drains, blockers, instead })
    }

    /// What would start now in the place of a gang that does not.
    fn instead(
        &mut self,
        fabric: &Fabric,
        permitted: &NodeSet,
        free: &NodeSet,
        home: &Home,
        request: &Request,
    ) -> Vec<Instead> {
        let mut instead = Vec::new();
        // With more wishes than a number of nodes, what would start is not told by counting.
        let counts_suffice = request.required.is_none()
            && !request.strictly_contiguous
            && request.segment.is_none()
            && request.max_leaves.is_none()
            && request.uniform.is_empty();
        if !counts_suffice {
            return instead;
        }
        let mut counts = Counts::default();
        counts.count(fabric, free);
        let mut fit = |nodes: u32| -> u32 {
            let home = self.home(fabric, permitted, &Request::new(nodes, request.share.clone()));
            home.map_or(0, |home| home.domains.iter().map(|&domain| counts.of(domain) / nodes).sum())
        };
        let gangs = (2..=request.at_least).find(|&gangs| fit(request.at_least.div_ceil(gangs)) >= gangs);
        if let Some(gangs) = gangs.filter(|&gangs| request.at_least.div_ceil(gangs) > 1) {
            instead.push(Instead::Parts { gangs, nodes: request.at_least.div_ceil(gangs) });
        }
        let most = |level: Level| fabric.at_level(level).iter().map(|&id| counts.of(id)).max().unwrap_or(0);
        let sizes = (0..fabric.level_count() as Level).map(|level| most(level).min(request.at_least - 1));
        if let Some(nodes) = sizes.filter(|&nodes| nodes > 0 && fit(nodes) > 0).max() {
            instead.push(Instead::Fewer { nodes });
        }
        let level = (home.level + 1..fabric.level_count() as Level).find(|&level| {
            let holds = |&id| candidates::holds(fabric, free, &counts, None, id, request, request.at_least);
            fabric.at_level(level).iter().any(holds)
        });
        instead.extend(level.map(|level| Instead::Wider { level }));
        instead
    }
}
