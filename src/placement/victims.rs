//! Whom to preempt for a gang: in which domain, and which jobs, so that as little as possible is lost.
//!
//! Least is, in this order: how many jobs, their priorities added up, the node-seconds of work that are lost (of the whole
//! job, wherever else it runs). In a domain, jobs that share no node are independent of each other: what it costs to free
//! m nodes is worked out for each group of jobs that hang together, and a knapsack over the groups finds the cheapest way
//! to free enough. Groups of more than [`TRIED_OUT`] jobs are not tried out in full but thinned out step by step.

use super::Planner;
use super::candidates::Home;
use super::pool::Moment;
use super::verdict::Placement;
use crate::cluster::Ledger;
use crate::fabric::tree::{Fabric, SwitchId};
use crate::nodeset::{NodeId, NodeSet};
use crate::request::{JobId, Request, Time};
use std::collections::{BTreeMap, BTreeSet};

/// Of how many jobs that hang together all combinations are tried.
const TRIED_OUT: usize = 12;

/// A running job that may be preempted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The job.
    pub job: JobId,
    /// Its priority: the lower, the sooner it goes.
    pub priority: u64,
    /// Node-seconds of work that are lost with it, on all its nodes.
    pub lost: u64,
}

/// What preempting jobs costs; less is better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Loss {
    /// How many jobs.
    pub jobs: u32,
    /// Their priorities, added up.
    pub priority: u64,
    /// Node-seconds of work.
    pub lost: u64,
}

/// Whom to preempt, and where the gang then goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Eviction {
    /// The victims, by number.
    pub victims: Vec<JobId>,
    /// What that costs.
    pub loss: Loss,
    /// The gang's nodes.
    pub placement: Placement,
}

impl Loss {
    fn of(candidate: &Candidate) -> Self {
        Self { jobs: 1, priority: candidate.priority, lost: candidate.lost }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            jobs: self.jobs + other.jobs,
            priority: self.priority.saturating_add(other.priority),
            lost: self.lost.saturating_add(other.lost),
        }
    }
}

/// A way to free so many nodes.
#[derive(Clone, Debug, Default)]
struct Way {
    frees: usize,
    loss: Loss,
    jobs: Vec<JobId>,
}

impl Planner {
    /// The cheapest victims in any one domain of the gang's home level; none if preempting all candidates would not do.
    pub fn victims(
        &mut self,
        fabric: &Fabric,
        ledger: &Ledger,
        permitted: &NodeSet,
        home: &Home,
        request: &Request,
        candidates: &[Candidate],
    ) -> Option<Eviction> {
        let candidates: BTreeMap<JobId, Candidate> = candidates.iter().map(|&c| (c.job, c)).collect();
        let mut best: Option<Eviction> = None;
        for &domain in &home.domains {
            let scene = Scene::new(fabric, ledger, permitted, domain, request, &candidates);
            let bound = best.as_ref().map(|best| best.loss);
            let Some(cheapest) = scene.cheapest() else { continue };
            if bound.is_some_and(|bound| bound < cheapest.loss) {
                continue;
            }
            let found = match self.evict(fabric, ledger, home, &scene, cheapest.jobs) {
                Some(found) => Some(found),
                None => self.thin_out(fabric, ledger, home, &scene),
            };
            let worth = |eviction: &Eviction| (eviction.loss, eviction.placement.leaves);
            if let Some(found) = found
                && best.as_ref().is_none_or(|best| worth(&found) < worth(best))
            {
                best = Some(found);
            }
        }
        best
    }

    /// Where the gang goes once these jobs are gone; none if it still does not fit.
    fn evict(
        &mut self,
        fabric: &Fabric,
        ledger: &Ledger,
        home: &Home,
        scene: &Scene,
        victims: Vec<JobId>,
    ) -> Option<Eviction> {
        let gone: BTreeSet<JobId> = victims.iter().copied().collect();
        let free = scene.free_without(&gone);
        let here = Home { domains: vec![scene.domain], ..*home };
        let Self { holes, chooser, pool, placement, .. } = self;
        let classes = 0..scene.request.uniform.len().max(1);
        let found = classes.into_iter().any(|class| {
            let only = scene.request.uniform.get(class);
            pool.fill(fabric, ledger, &free, only, scene.request, Moment::Later);
            let search = pool.search(fabric, ledger, holes, &here, scene.request);
            chooser.choose(&search, scene.domain, placement)
        });
        let loss = victims.iter().filter_map(|job| scene.candidates.get(job)).map(Loss::of);
        let loss = loss.fold(Loss::default(), Loss::plus);
        found.then(|| Eviction { victims, loss, placement: placement.clone() })
    }

    /// For gangs to which not any nodes will do (in a row, in segments, on few leaves, of one type): all candidates of the
    /// domain, less those that can stay, the dearest first. No victim is needless then, though there may be fewer others.
    fn thin_out(&mut self, fabric: &Fabric, ledger: &Ledger, home: &Home, scene: &Scene) -> Option<Eviction> {
        let jobs: BTreeSet<JobId> =
            scene.freeable.iter().flat_map(|(_, jobs)| jobs.iter().copied()).collect();
        let mut jobs: Vec<JobId> = jobs.into_iter().collect();
        let mut found = self.evict(fabric, ledger, home, scene, jobs.clone())?;
        let mut dearest = jobs.clone();
        dearest.sort_by_key(|job| std::cmp::Reverse(scene.candidates.get(job).map(Loss::of)));
        for stays in dearest {
            let others: Vec<JobId> = jobs.iter().copied().filter(|&job| job != stays).collect();
            if let Some(cheaper) = self.evict(fabric, ledger, home, scene, others.clone()) {
                (jobs, found) = (others, cheaper);
            }
        }
        Some(found)
    }
}

/// One domain: what is free in it, and what jobs would have to leave for more.
struct Scene<'a> {
    ledger: &'a Ledger,
    request: &'a Request,
    candidates: &'a BTreeMap<JobId, Candidate>,
    domain: SwitchId,
    size: usize,
    free: Vec<NodeId>,
    /// Nodes that are free once all candidates are gone, with the candidates on each.
    freeable: Vec<(NodeId, Vec<JobId>)>,
}

impl<'a> Scene<'a> {
    fn new(
        fabric: &'a Fabric,
        ledger: &'a Ledger,
        permitted: &NodeSet,
        domain: SwitchId,
        request: &'a Request,
        candidates: &'a BTreeMap<JobId, Candidate>,
    ) -> Self {
        let (mut free, mut freeable) = (Vec::new(), Vec::new());
        for &node in fabric.nodes_under(domain).iter().filter(|&&node| permitted.contains(node)) {
            if ledger.has_free(node, &request.share) {
                free.push(node);
            } else if ledger.has_free_without(node, &request.share, |job| candidates.contains_key(&job)) {
                freeable
                    .push((node, ledger.holders(node).filter(|job| candidates.contains_key(job)).collect()));
            }
        }
        Self { ledger, request, candidates, domain, size: permitted.size(), free, freeable }
    }

    fn frees(&self, node: NodeId, gone: &BTreeSet<JobId>) -> bool {
        self.ledger.has_free_without(node, &self.request.share, |job| gone.contains(&job))
    }

    fn free_without(&self, gone: &BTreeSet<JobId>) -> NodeSet {
        let freed = self.freeable.iter().map(|&(node, _)| node).filter(|&node| self.frees(node, gone));
        NodeSet::from_nodes(self.size, self.free.iter().copied().chain(freed))
    }

    /// The cheapest victims that free enough nodes, the required ones among them; none if all candidates do not.
    fn cheapest(&self) -> Option<Way> {
        let needed = (self.request.at_least as usize).saturating_sub(self.free.len());
        let is_within_reach = |node: NodeId| {
            self.free.contains(&node) || self.freeable.iter().any(|&(freeable, _)| freeable == node)
        };
        if !self.request.required.iter().flat_map(NodeSet::iter).all(is_within_reach) {
            return None;
        }
        // By number of nodes freed, up to as many as are needed: the cheapest way there.
        let mut ways: Vec<Option<Way>> = vec![None; needed + 1];
        ways[0] = Some(Way::default());
        for group in self.groups() {
            let options = self.ways_of(&group);
            let mut next: Vec<Option<Way>> = vec![None; needed + 1];
            for way in ways.into_iter().flatten() {
                for option in &options {
                    let frees = (way.frees + option.frees).min(needed);
                    let loss = way.loss.plus(option.loss);
                    if next[frees].as_ref().is_none_or(|known| loss < known.loss) {
                        let jobs = way.jobs.iter().chain(&option.jobs).copied().collect();
                        next[frees] = Some(Way { frees, loss, jobs });
                    }
                }
            }
            ways = next;
        }
        let mut cheapest = ways.pop().flatten()?;
        cheapest.jobs.sort_unstable();
        Some(cheapest)
    }

    /// The candidates by groups that hang together: two jobs of different groups share no freeable node.
    fn groups(&self) -> Vec<BTreeSet<JobId>> {
        let mut groups: Vec<BTreeSet<JobId>> = Vec::new();
        for (_, jobs) in &self.freeable {
            let mut group: BTreeSet<JobId> = jobs.iter().copied().collect();
            groups.retain(|other| {
                let apart = other.is_disjoint(&group);
                if !apart {
                    group.extend(other);
                }
                apart
            });
            groups.push(group);
        }
        groups.sort();
        groups
    }

    /// What it costs to free 0, 1, 2, ... nodes of a group, where that can be done with all required nodes free.
    fn ways_of(&self, group: &BTreeSet<JobId>) -> Vec<Way> {
        let nodes: Vec<NodeId> = self
            .freeable
            .iter()
            .filter(|(_, jobs)| jobs.iter().any(|job| group.contains(job)))
            .map(|&(node, _)| node)
            .collect();
        let required =
            |node: &NodeId| self.request.required.as_ref().is_some_and(|required| required.contains(*node));
        let mut cheapest: BTreeMap<usize, Way> = BTreeMap::new();
        let mut consider = |jobs: &BTreeSet<JobId>| {
            let freed = |node: &NodeId| self.frees(*node, jobs);
            if !nodes.iter().filter(|&node| required(node)).all(freed) {
                return;
            }
            let frees = nodes.iter().filter(|&node| freed(node)).count();
            let losses = jobs.iter().filter_map(|job| self.candidates.get(job)).map(Loss::of);
            let loss = losses.fold(Loss::default(), Loss::plus);
            if cheapest.get(&frees).is_none_or(|known| loss < known.loss) {
                cheapest.insert(frees, Way { frees, loss, jobs: jobs.iter().copied().collect() });
            }
        };
        if group.len() <= TRIED_OUT {
            let all: Vec<JobId> = group.iter().copied().collect();
            for chosen in 0u32..1 << all.len() {
                let jobs = all.iter().enumerate().filter(|&(bit, _)| chosen >> bit & 1 == 1);
                consider(&jobs.map(|(_, &job)| job).collect());
            }
        } else {
            // The dearest stay first; each step that leaves is an option.
            let mut dearest: Vec<JobId> = group.iter().copied().collect();
            dearest.sort_by_key(|job| std::cmp::Reverse(self.candidates.get(job).map(Loss::of)));
            let mut gone = group.clone();
            consider(&gone);
            for job in dearest {
                gone.remove(&job);
                consider(&gone);
            }
        }
        cheapest.into_values().collect()
    }
}

/// The node-seconds that a job of so many nodes loses if it ends now.
pub fn lost_work(nodes: usize, started: Time, now: Time) -> u64 {
    (nodes as u64).saturating_mul(u64::try_from(now.saturating_sub(started)).unwrap_or(0))
}
