//! What Lockstep knows while slurmctld runs: the fabric, the ledger, and what it promised; behind one lock.
//!
//! Nothing of it is saved. The functions here take the lock for one step each and never call cons_tres, so the lock is
//! never held while something else could want it.

use super::counters::{self, Outcome, PassThrough};
use super::demand::{Demand, Gang};
use super::gres_kinds::GresKinds;
use super::views::{self, Job};
use super::{lifecycle, log, sys};
use crate::cluster::{Capacity, Held, Holding, Ledger};
use crate::fabric::diagnostic::{Diagnostic, Severity};
use crate::fabric::hostlist::{self, Dialect};
use crate::fabric::tree::Fabric;
use crate::fabric::{NodeNames, TopologyFile};
use crate::nodeset::NodeSet;
use crate::placement::verdict::{Placement, Refusal, Verdict};
use crate::placement::{Planner, domain_nodes};
use crate::request::{JobId, Request, Time};
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::time::Instant;

/// How long a promise binds, and how long a job whose promise broke asks cons_tres instead.
const PROMISE_SECONDS: Time = 60;
/// How old what the ledger knows of capacities and job ends may be: slurmctld tells neither.
const REFRESH_SECONDS: Time = 10;
/// How many feasible requests are remembered before all are forgotten.
const REMEMBERED: usize = 65_536;
/// How many findings in the topology are logged one by one.
const FINDINGS_LOGGED: usize = 5;

#[derive(Default)]
struct State {
    names: NodeNames,
    fabric: Option<Fabric>,
    /// What was last said about the topology, so as to say it once.
    said: String,
    ledger: Ledger,
    ledger_doubtful: bool,
    refreshed: Time,
    planner: Planner,
    kinds: GresKinds,
    /// Requests that cons_tres found feasible under this configuration, by hash.
    feasible: HashSet<u64>,
    /// Where a gang is about to start.
    promises: BTreeMap<JobId, Promise>,
    /// Gangs that cons_tres refused on nodes that the ledger took for free, and until when they ask cons_tres.
    mistrusted: BTreeMap<JobId, Time>,
}

struct Promise {
    placement: Placement,
    until: Time,
}

static STATE: Mutex<Option<Box<State>>> = Mutex::new(None);

fn with<R>(step: impl FnOnce(&mut State) -> R) -> R {
    step(STATE.lock().get_or_insert_default())
}

/// Forgets everything; false if there was nothing.
pub fn drop_all() -> bool {
    STATE.lock().take().is_some()
}

/// Reads nodes, topology and jobs from slurmctld's records and the file.
pub fn read_cluster(topology: &Path) {
    let names = NodeNames::new(views::nodes().iter().map(|node| node.as_ref().and_then(|node| node.name())));
    with(|state| {
        let started = Instant::now();
        let reading = TopologyFile {
            source: &|path| std::fs::read_to_string(path),
            path: topology,
            dialect: dialect(),
            topology: None,
            exclude: &[],
        }
        .read(&names);
        let same_nodes = state.names.size() == names.size() && state.fabric.is_some();
        match reading.fabric {
            Some(fabric) => {
                let unchanged = state.fabric.as_ref() == Some(&fabric);
                state.say(fabric_line(&fabric), unchanged, started, &reading.diagnostics);
                state.fabric = Some(fabric);
            }
            None => {
                state.say_broken(&reading.diagnostics, same_nodes);
                if !same_nodes {
                    state.fabric = None;
                }
            }
        }
        state.ledger = Ledger::new(names.size());
        state.names = names;
        state.feasible.clear();
        state.promises.clear();
        state.refresh(lifecycle::now(), true);
        state.rebuild_ledger();
    });
}

/// Whether there is a fabric to place gangs on.
pub fn has_fabric() -> bool {
    with(|state| state.fabric.is_some())
}

/// The ledger may be wrong: it is rebuilt before the next decision.
pub fn doubt_ledger() {
    with(|state| state.ledger_doubtful = true);
}

/// Enters what a job holds.
pub fn hold(job: &Job) {
    with(|state| state.hold(job));
}

/// A job holds nothing any more.
pub fn release(job: JobId) {
    with(|state| {
        state.ledger.release(job);
        state.promises.remove(&job);
        state.mistrusted.remove(&job);
    });
}

/// A job gave its cores back (true) or took them again.
pub fn set_suspended(job: JobId, suspended: bool) {
    with(|state| state.ledger.set_suspended(job, suspended));
}

/// Holds a gang's real allocation against what was decided for it.
pub fn audit(job: &Job) {
    with(|state| {
        let Some(Promise { placement, .. }) = state.promises.remove(&JobId(job.id())) else { return };
        let Some(fabric) = &state.fabric else { return };
        let held = NodeSet::from_nodes(placement.nodes.size(), job.held().iter().map(|held| held.node));
        let names = hostlist::fold(held.iter().filter_map(|node| state.names.name(node)));
        let domain = &fabric.switch(placement.domain).name;
        if held == placement.nodes {
            log::info(format_args!(
                "JobId={} starts on {} nodes under {domain} ({} leaves, excess {}): {names}",
                job.id(),
                held.count(),
                placement.leaves,
                placement.excess
            ));
        } else {
            counters::count(Outcome::AuditBreach);
            let decided = hostlist::fold(placement.nodes.iter().filter_map(|node| state.names.name(node)));
            log::error(format_args!(
                "audit: JobId={} started on {names}, but {decided} under {domain} was decided",
                job.id()
            ));
        }
    });
}

/// Turns what a job demands into a gang: how many nodes it gets, what each gives, and where its home is.
pub fn gang(demand: Demand) -> Result<Gang, PassThrough> {
    with(|state| {
        let now = lifecycle::now();
        state.refresh(now, false);
        if std::mem::take(&mut state.ledger_doubtful) {
            state.rebuild_ledger();
        }
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
        // The wanted number if some domain could ever hold it, else the largest that one could.
        let mut gang = state.size(&demand, demand.most);
        if gang.home.is_none() && demand.least < demand.most {
            // A capacity that slurmctld learnt since the last look may be what is missing.
            state.refresh(now, true);
            let (mut fits, mut fails) = (demand.least, demand.most);
            while fits + 1 < fails {
                let middle = fits + (fails - fits) / 2;
                if state.size(&demand, middle).home.is_some() { fits = middle } else { fails = middle }
            }
            gang = state.size(&demand, fits);
        } else if gang.home.is_none() {
            state.refresh(now, true);
            gang = state.size(&demand, demand.most);
        }
        Ok(gang)
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
                && !refused.contains(nodes)
                && (free(&gang.even) || gang.floor.as_ref().is_some_and(free))
            {
                return Ok(promise.placement.clone());
            }
        }
        let mut first_refusal = None;
        for request in gang.requests() {
            let usable = usable(&state.ledger, gang, permitted, request);
            match state.planner.place(fabric, &usable, home, request, refused) {
                Verdict::Placed(placement) => return Ok(placement),
                Verdict::Refused(refusal) => first_refusal = first_refusal.or(Some(refusal)),
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
    /// All permitted nodes of the domain, if the ledger's word does not count for this gang at present.
    pub ask_inside: Option<NodeSet>,
}

/// Forecasts a gang's start; none if the permitted nodes never suffice.
pub fn forecast(gang: &Gang, permitted: &NodeSet, now: Time) -> Option<Forecast> {
    with(|state| {
        let (fabric, home) = (state.fabric.as_ref()?, gang.home.as_ref()?);
        let mut nodes = permitted.clone();
        nodes.intersect_with(&gang.eligible);
        let mut best: Option<(crate::placement::forecast::Forecast, &Request)> = None;
        for request in gang.requests() {
            let found = state.planner.forecast(fabric, &state.ledger, &nodes, home, request, now);
            if let Some(found) = found
                && best.as_ref().is_none_or(|(best, _)| found.start < best.start)
            {
                best = Some((found, request));
            }
        }
        let (found, request) = best?;
        let placement = found.placement;
        let whole: u32 = placement.nodes.iter().map(|node| state.ledger.cpus(node)).sum();
        let mistrusted = state.mistrusted.get(&gang.job).is_some_and(|&until| until > now);
        Some(Forecast {
            start: found.start,
            total_cpus: if request.share.whole_node { whole } else { request.nodes * request.share.cpus },
            ask_inside: mistrusted.then(|| domain_nodes(fabric, placement.domain, &nodes)),
            placement,
        })
    })
}

/// The permitted nodes of each domain that has enough of them for the gang, those with the most free nodes first: where
/// cons_tres may look for victims.
pub fn domains(gang: &Gang, permitted: &NodeSet) -> Vec<NodeSet> {
    with(|state| {
        let (Some(fabric), Some(home)) = (&state.fabric, &gang.home) else { return Vec::new() };
        let usable = usable(&state.ledger, gang, permitted, &gang.even);
        let mut nodes = permitted.clone();
        nodes.intersect_with(&gang.eligible);
        let domains = state.planner.fullest_domains(fabric, &usable, home);
        domains
            .into_iter()
            .map(|(domain, _)| domain_nodes(fabric, domain, &nodes))
            .filter(|nodes| nodes.count() >= gang.even.nodes as usize)
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
            nodes,
            share,
            required: demand.required.clone(),
            strictly_contiguous: demand.strictly_contiguous,
        };
        let floor = (floor != even).then(|| request(floor));
        let even = request(even);
        let mut eligible = demand.configured.clone();
        self.ledger.keep_capable(&floor.as_ref().unwrap_or(&even).share, &mut eligible);
        let fabric = self.fabric.as_ref();
        let home = fabric.and_then(|fabric| self.planner.home(fabric, &eligible, &even));
        Gang { job: demand.job, even, floor, eligible, home }
    }

    fn hold(&mut self, job: &Job) {
        let held = job.held();
        let nodes = held
            .iter()
            .map(|held| {
                let gres =
                    held.gres.iter().map(|(name, kind, count)| (name.as_str(), kind.as_deref(), *count));
                let cpus = if held.whole_node { self.ledger.cpus(held.node) } else { held.cpus };
                (held.node, Held { cpus, memory_mb: held.memory_mb, gres: self.kinds.count(gres) })
            })
            .collect();
        let holding = Holding { nodes, end: job.end_time(), suspended: job.gave_cores_back() };
        self.ledger.hold(JobId(job.id()), holding);
    }

    fn rebuild_ledger(&mut self) {
        self.ledger.release_all();
        for job in views::jobs().iter().filter(|job| job.holds_nodes()) {
            self.hold(job);
        }
    }

    /// Looks again at what slurmctld changes without telling: what nodes have, and when jobs must end.
    fn refresh(&mut self, now: Time, at_once: bool) {
        if !at_once && (self.refreshed..self.refreshed + REFRESH_SECONDS).contains(&now) {
            return;
        }
        self.refreshed = now;
        for (index, node) in views::nodes().into_iter().enumerate() {
            let Some(node) = node else { continue };
            let gres = node.gres();
            let named = gres.iter().flat_map(|gres| {
                // A node that tells types counts each of them; what is left over has the name alone.
                let typed: u64 = gres.by_kind.iter().map(|(_, count)| count).sum();
                let kinds = gres
                    .by_kind
                    .iter()
                    .map(|(kind, count)| (gres.name.as_str(), Some(kind.as_str()), *count));
                kinds.chain([(gres.name.as_str(), None, gres.total.saturating_sub(typed))])
            });
            let capacity =
                Capacity { cpus: node.cpus(), memory_mb: node.memory_mb(), gres: self.kinds.count(named) };
            self.ledger.set_capacity(index as u32, capacity);
        }
        let jobs: Vec<JobId> = self.ledger.jobs().map(|(job, _)| job).collect();
        for id in jobs {
            match views::find_job(id.0) {
                Some(job) => self.ledger.set_end(id, job.end_time()),
                None => self.ledger.release(id),
            }
        }
    }

    fn say(&mut self, fabric: String, unchanged: bool, started: Instant, findings: &[Diagnostic]) {
        let took = started.elapsed().as_secs_f64() * 1e3;
        if unchanged && self.said == fabric {
            log::info(format_args!("fabric: unchanged, read in {took:.1} ms"));
            return;
        }
        log::info(format_args!("fabric: {fabric}, read in {took:.1} ms"));
        self.said = fabric;
        for finding in findings.iter().take(FINDINGS_LOGGED) {
            log::info(finding);
        }
        if findings.len() > FINDINGS_LOGGED {
            let more = findings.len() - FINDINGS_LOGGED;
            log::info(format_args!("and {more} more findings; `lockstep check` lists them"));
        }
    }

    fn say_broken(&mut self, findings: &[Diagnostic], keeps_last: bool) {
        let mut errors = findings.iter().filter(|finding| finding.code.severity == Severity::Error);
        let what = errors.next().map_or_else(|| "no fabric".into(), ToString::to_string);
        let more = match errors.count() {
            0 => String::new(),
            n => format!(" (and {n} more; `lockstep check` lists them)"),
        };
        let until = if keeps_last {
            "the last good fabric stays in use"
        } else {
            "all jobs go to cons_tres unchanged"
        };
        let line =
            format!("{what}{more}; {until} until the file is mended and `scontrol reconfigure` is run");
        if self.said != line {
            log::error(&line);
            self.said = line;
        }
    }
}

fn fabric_line(fabric: &Fabric) -> String {
    format!(
        "{} nodes on {} leaves, {} switches in {} levels (of {} nodes in all)",
        fabric.listed().count(),
        fabric.at_level(0).len(),
        fabric.switch_count(),
        fabric.level_count(),
        fabric.node_count()
    )
}

/// The permitted nodes that could serve and have the share free now.
fn usable(ledger: &Ledger, gang: &Gang, permitted: &NodeSet, request: &Request) -> NodeSet {
    let mut nodes = permitted.clone();
    nodes.intersect_with(&gang.eligible);
    ledger.keep_free(&request.share, &mut nodes);
    nodes
}

fn fingerprint(gang: &Gang) -> u64 {
    let mut hasher = DefaultHasher::new();
    (gang.job, gang.even.nodes, &gang.even.share, &gang.even.required, &gang.eligible).hash(&mut hasher);
    hasher.finish()
}

fn dialect() -> Dialect {
    Dialect::of_slurm(
        (sys::SLURM_VERSION_NUMBER >> 16) as u16,
        (sys::SLURM_VERSION_NUMBER >> 8) as u16 & 0xff,
    )
}
