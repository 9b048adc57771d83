//! The questions that job_test asks of what Lockstep knows: which nodes now, which nodes later, and what was promised.
//!
//! Each question takes the lock of [`super::state`] for one step; between two of them cons_tres may be asked.

use super::counters::{self, Outcome};
use super::state::{Promise, REFRESH_SECONDS, State, with};
use super::{lifecycle, log};
use crate::fabric::tree::SwitchId;
use crate::nodeset::NodeSet;
use crate::placement::verdict::{Placement, Refusal};
use crate::placement::victims::Candidate;
use crate::placement::{domain_nodes, fewest_leaves, fullest_domains, leaves_used};
use crate::request::{JobId, Request, Time};
use crate::site::demand::Demand;
use crate::site::{Forecast, Gang, PassThrough, Site};
use std::collections::BTreeSet;
use std::time::Duration;

/// How long a promise binds, and how long a gang whose promise broke asks cons_tres instead.
pub const PROMISE_SECONDS: Time = 60;
/// How many feasible requests are remembered before all are forgotten.
const REMEMBERED: usize = 65_536;

/// How long a call may take in all its steps of ours; beyond it the job goes to cons_tres for a while. Decisions take far
/// below a millisecond (docs/evaluation.md), so this is for what nobody thought of.
const BUDGET: Duration = Duration::from_millis(200);
/// How long a job that took longer goes to cons_tres.
const OVER_BUDGET_SECONDS: Time = 600;

/// Takes note of how long a call kept slurmctld's locks outside of cons_tres.
pub fn note_time(job: JobId, took: Duration) {
    if took > BUDGET && !is_over_budget(job) {
        let now = lifecycle::now();
        log::error(format_args!(
            "JobId={}: the decision took {} ms; cons_tres decides for it for {} minutes",
            job.0,
            took.as_millis(),
            OVER_BUDGET_SECONDS / 60
        ));
        with(|state| {
            state.over_budget.retain(|_, until| *until > now);
            state.over_budget.insert(job, now + OVER_BUDGET_SECONDS);
        });
    }
}

/// Whether cons_tres decides for a job since its last decision took too long.
pub fn is_over_budget(job: JobId) -> bool {
    with(|state| state.over_budget.get(&job).is_some_and(|&until| until > lifecycle::now()))
}

/// Whether there is a fabric to place gangs on.
pub fn has_fabric() -> bool {
    with(|state| state.site.fabric.is_some())
}

/// What a job demands as a gang.
///
/// # Errors
/// Why it is none, or not Lockstep's to place.
pub fn gang(demand: &Demand) -> Result<Gang, PassThrough> {
    with(|state| {
        let now = lifecycle::now();
        state.refresh(now, REFRESH_SECONDS);
        state.settle_doubt();
        match state.site.gang(demand, now) {
            // A capacity that slurmctld learnt since the last look may be what is missing.
            Ok(Gang { places: Err(_), .. }) | Err(PassThrough::OnlyPreferred) => {
                state.refresh(now, 1);
                state.site.gang(demand, now)
            }
            gang => gang,
        }
    })
}

/// A node set for a gang, or why it waits.
///
/// What was promised to the gang comes first, then the choice of the moment at the lowest level that it may lie under by
/// now, by the even share or else (where tasks need not be dealt evenly) by the least that each node must have. Sets that
/// were refused in this call do not come again.
pub fn propose(gang: &Gang, permitted: &NodeSet, refused: &[NodeSet]) -> Result<Placement, Refusal> {
    with(|state| {
        let now = lifecycle::now();
        let mut permitted = permitted.clone();
        state.keep_from_others(gang.job, gang.priority, now, &mut permitted);
        if let Some(near) = state.near(gang.het, &gang.even, &permitted, now) {
            permitted = near;
        }
        if let Some(promise) = state.promises.get(&gang.job)
            && promise.until > now
            && promise.still_serves(gang, &permitted)
            && !refused.contains(&promise.placement.nodes)
        {
            let nodes = &promise.placement.nodes;
            let free =
                |request: &Request| nodes.iter().all(|node| state.site.ledger.has_free(node, &request.share));
            if gang.requests().any(free) {
                return Ok(promise.placement.clone());
            }
        }
        state.site.place(gang, &permitted, refused, now)
    })
}

impl Promise {
    fn still_serves(&self, gang: &Gang, permitted: &NodeSet) -> bool {
        let nodes = &self.placement.nodes;
        let count = nodes.count();
        (gang.even.at_least as usize..=gang.even.nodes as usize).contains(&count)
            && nodes.is_subset(permitted)
            && nodes.is_subset(&gang.eligible)
            && gang.even.required.as_ref().is_none_or(|required| required.is_subset(nodes))
            && gang.places().iter().any(|allowed| allowed.home.domains.contains(&self.placement.domain))
    }
}

/// Remembers where a gang is about to start, for the audit and so that the next call chooses the same.
pub fn promise(gang: &Gang, placement: Placement) {
    keep_promise(gang, placement, None);
}

/// Remembers where a gang will start once the jobs that were preempted for it have left, and keeps others off.
pub fn promise_after_preemption(gang: &Gang, placement: Placement) {
    keep_promise(gang, placement, Some(gang.priority));
}

fn keep_promise(gang: &Gang, placement: Placement, preempts_with: Option<u32>) {
    with(|state| {
        let now = lifecycle::now();
        state.promises.retain(|_, promise| promise.until > now);
        let promise = Promise { placement, until: now + PROMISE_SECONDS, preempts_with };
        state.promises.insert(gang.job, promise);
    });
}

/// Where a gang goes if some of the candidates leave, and who: what was decided before as long as its victims are leaving,
/// else the domain that costs the least. None if preempting all of them would not do.
pub fn evict(
    gang: &Gang,
    permitted: &NodeSet,
    candidates: &[Candidate],
) -> Option<(Placement, BTreeSet<JobId>)> {
    with(|state| {
        let now = lifecycle::now();
        let mut nodes = permitted.clone();
        nodes.intersect_with(&gang.eligible);
        state.keep_from_others(gang.job, gang.priority, now, &mut nodes);
        let known: BTreeSet<JobId> = candidates.iter().map(|candidate| candidate.job).collect();
        if let Some(promise) = state.promises.get(&gang.job)
            && promise.preempts_with.is_some()
            && promise.until > now
            && promise.still_serves(gang, &nodes)
        {
            let in_the_way = promise.placement.nodes.iter().flat_map(|node| state.site.ledger.holders(node));
            let victims = in_the_way.filter(|job| known.contains(job)).collect();
            return Some((promise.placement.clone(), victims));
        }
        let Site { fabric: Some(fabric), planner, ledger, .. } = &mut state.site else { return None };
        let home = gang.home()?;
        let eviction = planner.victims(fabric, ledger, &nodes, home, &gang.even, candidates)?;
        Some((eviction.placement, eviction.victims.into_iter().collect()))
    })
}

/// cons_tres refused what the ledger took for free: for a while its forecasts count for this gang, not ours.
pub fn promise_broken(gang: &Gang) {
    with(|state| {
        state.promises.remove(&gang.job);
        state.mistrust(gang.job);
    });
}

/// Whether it is news that no domain could ever hold this gang: slurmctld asks several times over.
pub fn is_news_that_it_never_fits(gang: &Gang) -> bool {
    with(|state| state.never_fits.replace(gang.job) != Some(gang.job))
}

/// Forecasts a gang's start; none if the permitted nodes never suffice. With it, where cons_tres must be asked because the
/// ledger's word does not count for this gang at present: all permitted nodes of the domain.
pub fn forecast(gang: &Gang, permitted: &NodeSet, now: Time) -> Option<(Forecast, Option<NodeSet>)> {
    with(|state| {
        let mut nodes = permitted.clone();
        nodes.intersect_with(&gang.eligible);
        if let Some(near) = state.near(gang.het, &gang.even, &nodes, now) {
            nodes = near;
        }
        let forecast = state.site.forecast(gang, &nodes, now)?;
        let mistrusted = state.mistrusted.get(&gang.job).is_some_and(|&until| until > now);
        let fabric = state.site.fabric.as_ref()?;
        let ask_inside = mistrusted.then(|| domain_nodes(fabric, forecast.placement.domain, &nodes));
        Some((forecast, ask_inside))
    })
}

/// The permitted nodes of so many domains that have enough of them for the gang, those with the most free nodes first:
/// where cons_tres may look for victims.
pub fn domains(gang: &Gang, permitted: &NodeSet, most: usize) -> Vec<NodeSet> {
    with(|state| {
        let usable = state.site.usable(gang, permitted, &gang.even, lifecycle::now());
        let mut nodes = permitted.clone();
        nodes.intersect_with(&gang.eligible);
        let (Some(fabric), Some(home)) = (&state.site.fabric, gang.home()) else { return Vec::new() };
        let domains = fullest_domains(fabric, &usable, home);
        domains
            .into_iter()
            .map(|(domain, _)| domain_nodes(fabric, domain, &nodes))
            .filter(|nodes| nodes.count() >= gang.even.at_least as usize)
            .take(most)
            .collect()
    })
}

/// Whether cons_tres found this very request feasible since the last reconfigure.
pub fn is_known_feasible(fingerprint: u64) -> bool {
    with(|state| state.feasible.contains(&fingerprint))
}

/// Remembers that cons_tres found this request feasible.
pub fn remember_feasible(fingerprint: u64) {
    with(|state| {
        if state.feasible.len() >= REMEMBERED {
            state.feasible.clear();
        }
        state.feasible.insert(fingerprint);
    });
}

/// What stock Slurm did with a gang, held against what Lockstep would have done: for a site that only observes.
pub fn compare(gang: &Gang, stock: Option<&NodeSet>, ours: &Result<Placement, Refusal>) {
    with(|state| {
        let (Some(fabric), Some(home)) = (&state.site.fabric, gang.home()) else { return };
        let Some(stock) = stock else {
            if ours.is_ok() {
                counters::count(Outcome::WouldStart);
            }
            return;
        };
        counters::count(Outcome::Observed);
        if ours.is_err() {
            counters::count(Outcome::WouldWait);
        }
        let fewest = fewest_leaves(fabric, &gang.eligible, home, stock.count() as u32);
        let is_inside = |&domain: &SwitchId| stock.is_subset(&domain_nodes(fabric, domain, stock));
        if !home.domains.iter().any(is_inside) || leaves_used(fabric, stock) > fewest {
            counters::count(Outcome::WouldPlaceCloser);
        }
    });
}

impl State {
    /// The nodes of these under the switch where the components of a het job come together: the lowest that can hold all of
    /// them, the first to be free. None for any other job, or where that switch has no room for this component.
    ///
    /// slurmctld asks for one component after the other, and starts them all at once when each has said when and where: so
    /// the switch is chosen once and binds for a while.
    pub fn near(
        &mut self,
        het: Option<(JobId, u32)>,
        request: &Request,
        nodes: &NodeSet,
        now: Time,
    ) -> Option<NodeSet> {
        let (leader, all_nodes) = het?;
        let Self { site: Site { fabric, planner, ledger, capable, .. }, het_plans, .. } = self;
        let fabric = fabric.as_ref()?;
        het_plans.retain(|_, (_, until)| *until > now);
        let domain = match het_plans.get(&leader) {
            Some(&(domain, _)) => domain,
            None => {
                let whole = Request::new(all_nodes, request.share.clone());
                let home = planner.home(fabric, capable.of(ledger, &whole.share), &whole)?;
                let forecast = planner.forecast(fabric, ledger, nodes, &home, &whole, now)?;
                let domain = forecast.placement.domain;
                het_plans.insert(leader, (domain, now + PROMISE_SECONDS));
                domain
            }
        };
        let near = domain_nodes(fabric, domain, nodes);
        (near.count() >= request.at_least as usize).then_some(near)
    }

    /// For a while a job's forecasts are cons_tres's.
    pub fn mistrust(&mut self, job: JobId) {
        let now = lifecycle::now();
        self.mistrusted.retain(|_, until| *until > now);
        self.mistrusted.insert(job, now + PROMISE_SECONDS);
    }
}
