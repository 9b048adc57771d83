//! The questions that job_test asks of what Lockstep knows: how large is the gang and where is its home, which nodes now,
//! which nodes later, and what was promised.
//!
//! Each question takes the lock of [`super::state`] for one step; between two of them cons_tres may be asked.

use super::counters::PassThrough;
use super::demand::{Demand, Gang};
use super::lifecycle;
use super::state::{Promise, State, with};
use crate::cluster::Ledger;
use crate::nodeset::NodeSet;
use crate::placement::candidates::Home;
use crate::placement::verdict::{Placement, Refusal};
use crate::placement::{Planner, domain_nodes, fullest_domains};
use crate::request::{Request, Time};
use std::hash::{DefaultHasher, Hash, Hasher};

/// How long a promise binds, and how long a gang whose promise broke asks cons_tres instead.
const PROMISE_SECONDS: Time = 60;
/// How old what the ledger knows of capacities and job ends may be: slurmctld tells neither.
const REFRESH_SECONDS: Time = 10;
/// How many feasible requests are remembered before all are forgotten.
const REMEMBERED: usize = 65_536;

/// Whether there is a fabric to place gangs on.
pub fn has_fabric() -> bool {
    with(|state| state.fabric.is_some())
}

/// Turns what a job demands into a gang: how many nodes it gets, what each gives, and where its home is.
pub fn gang(demand: Demand) -> Result<Gang, PassThrough> {
    with(|state| {
        let now = lifecycle::now();
        state.refresh(now, REFRESH_SECONDS);
        state.settle_doubt();
        let Some(listed) = state.fabric.as_ref().map(|fabric| fabric.listed().clone()) else {
            return Err(PassThrough::NoFabric);
        };
        if listed.size() != demand.configured.size() {
            return Err(PassThrough::Unreadable);
        }
        if demand.required.as_ref().is_some_and(|required| !required.is_subset(&listed)) {
            return Err(PassThrough::NodesOffFabric);
        }
        if !demand.configured.intersects(&listed) {
            return Err(PassThrough::OffFabric);
        }
        let mut gang = state.size(&demand, demand.most);
        if gang.home.is_none() {
            // A capacity that slurmctld learnt since the last look may be what is missing.
            state.refresh(now, 1);
            gang = state.size(&demand, demand.most);
        }
        if gang.home.is_none() && demand.least < demand.most {
            // No domain could ever hold the wanted number: the largest that one could.
            let (mut fits, mut fails) = (demand.least, demand.most);
            while fits + 1 < fails {
                let middle = fits + (fails - fits) / 2;
                if state.size(&demand, middle).home.is_some() { fits = middle } else { fails = middle }
            }
            gang = state.size(&demand, fits);
        }
        Ok(gang)
    })
}

/// The node for a job of one node, where it costs the gangs to come the least; none if that is for cons_tres to say.
///
/// Among nodes of different weight, Slurm's users expect the lightest first, so only these are looked at.
pub fn single(demand: &Demand, permitted: &NodeSet) -> Option<Placement> {
    with(|state| {
        let now = lifecycle::now();
        state.refresh(now, REFRESH_SECONDS);
        state.settle_doubt();
        let fabric = state.fabric.as_ref().filter(|fabric| fabric.node_count() == permitted.size())?;
        if demand.required.is_some() {
            return None;
        }
        let (share, _) = demand.shares(1, &mut state.kinds);
        let mut nodes = permitted.clone();
        nodes.intersect_with(&demand.configured);
        nodes.intersect_with(state.planner.free(&state.ledger, permitted.size(), &share, now));
        if state.ledger.has_reluctance() {
            let lightest = nodes.iter().map(|node| state.ledger.reluctance(node)).min()?;
            let heavier = nodes.iter().filter(|&node| state.ledger.reluctance(node) > lightest);
            let heavier = NodeSet::from_nodes(nodes.size(), heavier);
            nodes.subtract(&heavier);
        }
        let home = Home { level: 0, domains: fabric.at_level(0).to_vec(), segment_level: None };
        let request = Request::new(1, share);
        let placed = state.planner.place(fabric, &state.ledger, &nodes, &home, &request, &[]);
        placed.ok().cloned()
    })
}

/// A node set for a gang, or why it waits.
///
/// What was promised to the gang comes first, then the choice of the moment, then (where tasks need not be dealt
/// evenly) a choice by the least that each node must have. Sets that were refused in this call do not come again.
pub fn propose(gang: &Gang, permitted: &NodeSet, refused: &[NodeSet]) -> Result<Placement, Refusal> {
    with(|state| {
        let (Some(fabric), Some(home)) = (&state.fabric, &gang.home) else { return Err(gang.never()) };
        if let Some(promise) = state.promises.get(&gang.job) {
            let nodes = &promise.placement.nodes;
            let free =
                |request: &Request| nodes.iter().all(|node| state.ledger.has_free(node, &request.share));
            if promise.until > lifecycle::now()
                && nodes.count() == gang.even.nodes as usize
                && nodes.is_subset(permitted)
                && nodes.is_subset(&gang.eligible)
                && gang.even.required.as_ref().is_none_or(|required| required.is_subset(nodes))
                && !refused.contains(nodes)
                && (free(&gang.even) || gang.floor.as_ref().is_some_and(free))
            {
                return Ok(promise.placement.clone());
            }
        }
        let mut first_refusal = None;
        for request in gang.requests() {
            let usable = usable(&mut state.planner, &state.ledger, gang, permitted, request);
            match state.planner.place(fabric, &state.ledger, &usable, home, request, refused) {
                Ok(placement) => return Ok(placement.clone()),
                Err(refusal) => first_refusal = first_refusal.or(Some(refusal)),
            }
        }
        Err(first_refusal.unwrap_or_else(|| gang.never()))
    })
}

/// Remembers where a gang is about to start, for the audit and so that the next call chooses the same.
pub fn promise(gang: &Gang, placement: Placement) {
    with(|state| {
        let now = lifecycle::now();
        state.promises.retain(|_, promise| promise.until > now);
        state.promises.insert(gang.job, Promise { placement, until: now + PROMISE_SECONDS });
    });
}

/// cons_tres refused what the ledger took for free: for a while its forecasts count for this gang, not ours.
pub fn promise_broken(gang: &Gang) {
    with(|state| {
        let now = lifecycle::now();
        state.promises.remove(&gang.job);
        state.mistrusted.retain(|_, until| *until > now);
        state.mistrusted.insert(gang.job, now + PROMISE_SECONDS);
    });
}

/// When and where a gang would start.
pub struct Forecast {
    /// Now or later.
    pub start: Time,
    /// Exactly the gang's nodes.
    pub placement: Placement,
    /// CPUs in all.
    pub total_cpus: u32,
    /// Why it does not start now; none if it does.
    pub refusal: Option<Refusal>,
    /// All permitted nodes of the domain, if the ledger's word does not count for this gang at present.
    pub ask_inside: Option<NodeSet>,
}

/// Whether it is news that no domain could ever hold this gang: slurmctld asks several times over.
pub fn is_news_that_it_never_fits(gang: &Gang) -> bool {
    with(|state| state.never_fits.replace(gang.job) != Some(gang.job))
}

/// Forecasts a gang's start; none if the permitted nodes never suffice.
pub fn forecast(gang: &Gang, permitted: &NodeSet, now: Time) -> Option<Forecast> {
    with(|state| {
        let (fabric, home) = (state.fabric.as_ref()?, gang.home.as_ref()?);
        let mut nodes = permitted.clone();
        nodes.intersect_with(&gang.eligible);
        let mut best: Option<(Time, Placement, Option<Refusal>, &Request)> = None;
        for request in gang.requests() {
            let found = state.planner.forecast(fabric, &state.ledger, &nodes, home, request, now);
            if let Some(found) = found
                && best.as_ref().is_none_or(|(best, ..)| found.start < *best)
            {
                best = Some((found.start, found.placement.clone(), found.refusal, request));
            }
        }
        let (start, placement, refusal, request) = best?;
        let whole = placement.nodes.iter().map(|node| state.ledger.cpus(node)).fold(0, u32::saturating_add);
        let shares = request.nodes.saturating_mul(request.share.cpus);
        let mistrusted = state.mistrusted.get(&gang.job).is_some_and(|&until| until > now);
        Some(Forecast {
            start,
            refusal,
            total_cpus: if request.share.whole_node { whole } else { shares },
            ask_inside: mistrusted.then(|| domain_nodes(fabric, placement.domain, &nodes)),
            placement,
        })
    })
}

/// The permitted nodes of so many domains that have enough of them for the gang, those with the most free nodes first:
/// where cons_tres may look for victims.
pub fn domains(gang: &Gang, permitted: &NodeSet, most: usize) -> Vec<NodeSet> {
    with(|state| {
        let (Some(fabric), Some(home)) = (&state.fabric, &gang.home) else { return Vec::new() };
        let usable = usable(&mut state.planner, &state.ledger, gang, permitted, &gang.even);
        let mut nodes = permitted.clone();
        nodes.intersect_with(&gang.eligible);
        let domains = fullest_domains(fabric, &usable, home);
        domains
            .into_iter()
            .map(|(domain, _)| domain_nodes(fabric, domain, &nodes))
            .filter(|nodes| nodes.count() >= gang.even.nodes as usize)
            .take(most)
            .collect()
    })
}

/// Whether cons_tres found this very request feasible since the last reconfigure.
pub fn is_known_feasible(gang: &Gang) -> bool {
    with(|state| state.feasible.contains(&fingerprint(gang)))
}

/// Remembers that cons_tres found this request feasible.
pub fn remember_feasible(gang: &Gang) {
    with(|state| {
        if state.feasible.len() >= REMEMBERED {
            state.feasible.clear();
        }
        state.feasible.insert(fingerprint(gang));
    });
}

impl State {
    /// The gang of so many nodes; its home is none if no domain could hold it.
    fn size(&mut self, demand: &Demand, nodes: u32) -> Gang {
        let (even, floor) = demand.shares(nodes, &mut self.kinds);
        let request = |share| Request {
            required: demand.required.clone(),
            strictly_contiguous: demand.strictly_contiguous,
            ..Request::new(nodes, share)
        };
        let floor = (floor != even).then(|| request(floor));
        let even = request(even);
        let mut eligible = demand.configured.clone();
        self.ledger.keep_capable(&floor.as_ref().unwrap_or(&even).share, &mut eligible);
        let fabric = self.fabric.as_ref();
        let home = fabric.and_then(|fabric| self.planner.home(fabric, &eligible, &even));
        Gang { job: demand.job, even, floor, eligible, home }
    }
}

/// The permitted nodes that could serve and have the share free now.
fn usable(
    planner: &mut Planner,
    ledger: &Ledger,
    gang: &Gang,
    permitted: &NodeSet,
    request: &Request,
) -> NodeSet {
    let mut nodes = permitted.clone();
    nodes.intersect_with(&gang.eligible);
    nodes.intersect_with(planner.free(ledger, permitted.size(), &request.share, lifecycle::now()));
    nodes
}

fn fingerprint(gang: &Gang) -> u64 {
    let mut hasher = DefaultHasher::new();
    (gang.job, gang.even.nodes, &gang.even.share, &gang.even.required, &gang.eligible).hash(&mut hasher);
    hasher.finish()
}
