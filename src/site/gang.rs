//! From a demand to a gang: the rule that it falls under, how many nodes it gets, what each of them gives, and in which
//! domains it may lie.

use super::demand::Demand;
use super::{PassThrough, Site};
use crate::cluster::Ledger;
use crate::nodeset::NodeSet;
use crate::placement::candidates::Home;
use crate::placement::fewest_leaves;
use crate::placement::verdict::{Refusal, one_switch};
use crate::policy::{Mode, Terms};
use crate::request::{GresKind, JobId, Request, Share, Time};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// How many numbers of nodes are tried for tasks that one node cannot hold, from the fewest that could do on.
const SIZES_TRIED: u32 = 16;

/// A demand with its number of nodes fixed.
pub struct Gang {
    /// The job.
    pub job: JobId,
    /// Its priority.
    pub priority: u32,
    /// The het job that it is a component of, and the nodes of all components together.
    pub het: Option<(JobId, u32)>,
    /// How strictly it is kept together.
    pub mode: Mode,
    /// The request by the even share.
    pub even: Request,
    /// The same request by the floor; none where both are the same.
    pub floor: Option<Request>,
    /// The nodes that could ever serve.
    pub eligible: NodeSet,
    /// Where it may lie, its home level first.
    pub places: Result<Vec<Allowed>, Never>,
}

/// The domains of a level that a gang may lie in.
pub struct Allowed {
    /// The level and its domains.
    pub home: Home,
    /// From when on.
    pub from: Time,
}

/// Why a gang can never start, in words.
pub struct Never(pub String);

impl Gang {
    /// The request in the order to try: by the even share, then by the floor.
    pub fn requests(&self) -> impl Iterator<Item = &Request> {
        std::iter::once(&self.even).chain(&self.floor)
    }

    /// Where it may lie, now or later.
    pub fn places(&self) -> &[Allowed] {
        self.places.as_deref().unwrap_or_default()
    }

    /// Its home; none if it can never start.
    pub fn home(&self) -> Option<&Home> {
        self.places().first().map(|allowed| &allowed.home)
    }

    /// The refusal of a gang that no domain could ever hold.
    pub fn never(&self) -> Refusal {
        Refusal { needed: self.even.at_least, level: 0, best: None }
    }

    /// The numbers of nodes to ask cons_tres for: at least, at most, wanted.
    pub fn sizes(&self) -> [u32; 3] {
        [self.even.at_least, self.even.nodes, self.even.nodes]
    }

    /// A number for this very request.
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.job, &self.even, &self.eligible).hash(&mut hasher);
        hasher.finish()
    }
}

impl Site {
    /// What a job demands as a gang.
    ///
    /// # Errors
    /// Why it is none, or not Lockstep's to place.
    pub fn gang(&mut self, demand: &Demand, now: Time) -> Result<Gang, PassThrough> {
        let Some(fabric) = &self.fabric else { return Err(PassThrough::NoFabric) };
        let listed = fabric.listed();
        if listed.size() != demand.configured.size() {
            return Err(PassThrough::Unreadable);
        }
        if demand.required.as_ref().is_some_and(|required| !required.is_subset(listed)) {
            return Err(PassThrough::NodesOffFabric);
        }
        if !demand.configured.intersects(listed) {
            return Err(PassThrough::OffFabric);
        }
        let wish = demand.wish.clone().unwrap_or_default();
        let terms = self.policy.terms(fabric, demand.subject(), &wish);
        let fault = demand.wish.as_ref().err().or(terms.as_ref().err()).cloned();
        let terms = terms.unwrap_or_default();
        if terms.rule.mode == Mode::Off {
            return Err(PassThrough::RuledOut);
        }
        let most = self.nodes_wanted(demand).ok_or(PassThrough::NotAGang)?;
        let mut gang = self.size(demand, &terms, most, now);
        if gang.places.is_err() && demand.least < most {
            // No domain could ever hold the wanted number: the largest that one could.
            let (mut fits, mut fails) = (demand.least, most);
            while fits + 1 < fails {
                let middle = fits + (fails - fits) / 2;
                if self.size(demand, &terms, middle, now).places.is_ok() {
                    fits = middle;
                } else {
                    fails = middle;
                }
            }
            gang = self.size(demand, &terms, fits, now);
        }
        if gang.places.is_err() && gang.mode == Mode::Preferred {
            return Err(PassThrough::OnlyPreferred);
        }
        if let Some(fault) = fault.filter(|_| gang.mode >= Mode::Preferred) {
            gang.places = Err(Never(fault));
        }
        Ok(gang)
    }

    /// How many nodes a job wants: the number it gives, or the fewest that could hold its tasks; none if one node could.
    fn nodes_wanted(&mut self, demand: &Demand) -> Option<u32> {
        let required = demand.required.as_ref().map_or(0, NodeSet::count) as u32;
        if !demand.is_single() {
            return Some(demand.most);
        }
        let could = |state: &mut Self, nodes: u32| {
            let (even, _) = demand.shares(nodes, &mut state.kinds);
            let capable = state.capable.of(&state.ledger, &even);
            capable.count_common(&demand.configured) >= nodes as usize
        };
        let least = demand.fewest_by_tasks().max(required);
        if least <= 1 && could(self, 1) {
            return None;
        }
        let least = self.fewest_for_tasks(demand).max(least).max(2);
        (least..least.saturating_add(SIZES_TRIED).min(demand.limit.saturating_add(1)))
            .find(|&nodes| could(self, nodes))
    }

    /// A lower bound for the nodes that a job's tasks need: what all of them take, over what the largest node has.
    fn fewest_for_tasks(&mut self, demand: &Demand) -> u32 {
        let (all, _) = demand.shares(1, &mut self.kinds);
        let largest = |of: &dyn Fn(u32) -> u64| demand.configured.iter().map(of).max().unwrap_or(0).max(1);
        let ledger = &self.ledger;
        let cpus = u64::from(all.cpus).div_ceil(largest(&|node| ledger.cpus(node).into()));
        let gres =
            all.gres.iter().map(|&(kind, count)| count.div_ceil(largest(&|node| ledger.gres(node, kind))));
        u32::try_from(gres.max().unwrap_or(0).max(cpus)).unwrap_or(u32::MAX)
    }

    /// The gang of so many nodes.
    fn size(&mut self, demand: &Demand, terms: &Terms, nodes: u32, now: Time) -> Gang {
        let at_least = if terms.rule.elastic { demand.least.clamp(1, nodes) } else { nodes };
        // An elastic gang may get the fewest nodes, and then each must give the most.
        let (even, floor) = demand.shares(at_least, &mut self.kinds);
        let uniform = if terms.rule.mixed_gpu_types || !demand.takes_any_gpu() {
            Vec::new()
        } else {
            same_kinds(&self.ledger, &demand.configured, &self.kinds.types_of("gpu"))
        };
        let request = |share: Share| Request {
            at_least,
            required: demand.required.clone(),
            strictly_contiguous: demand.strictly_contiguous,
            segment: terms.segment.filter(|&segment| segment < nodes),
            uniform: uniform.clone(),
            ..Request::new(nodes, share)
        };
        let floor = (floor != even).then(|| request(floor));
        let even = request(even);
        let mut eligible = demand.configured.clone();
        eligible.intersect_with(self.capable.of(&self.ledger, &floor.as_ref().unwrap_or(&even).share));
        let mode = terms.rule.mode;
        let mut gang = Gang {
            job: demand.job,
            priority: demand.priority,
            het: demand.het,
            mode,
            even,
            floor,
            eligible,
            places: Ok(Vec::new()),
        };
        gang.places = self.places(&mut gang, demand, terms, now);
        gang
    }

    /// Where the gang may lie and from when on; limits its leaves as far as the rule and the user want it.
    fn places(
        &mut self,
        gang: &mut Gang,
        demand: &Demand,
        terms: &Terms,
        now: Time,
    ) -> Result<Vec<Allowed>, Never> {
        let Some(fabric) = &self.fabric else { return Err(Never("there is no fabric".into())) };
        let mut home_of =
            |gang: &Gang, lowest| self.planner.home_from(fabric, &gang.eligible, &gang.even, lowest);
        let nodes = gang.even.nodes;
        let Some(mut home) = home_of(gang, 0) else {
            let needs = format!(
                "it needs {nodes} nodes under one switch, and no switch has so many that could serve"
            );
            return Err(Never(needs));
        };
        let excess = terms.rule.max_excess;
        let by_rule =
            excess.map(|more| fewest_leaves(fabric, &gang.eligible, &home, nodes).saturating_add(more));
        let asked = demand.switches.filter(|&(_, wait)| now < demand.since.saturating_add(wait));
        for (leaves, is_for_ever) in [
            (by_rule, true),
            (asked.map(|(leaves, _)| leaves), asked.is_some_and(|(_, wait)| wait == Time::MAX)),
        ] {
            let Some(leaves) = leaves else { continue };
            let before = gang.even.max_leaves;
            set_max_leaves(gang, Some(before.map_or(leaves, |before| before.min(leaves))));
            match home_of(gang, 0) {
                Some(narrow) => home = narrow,
                // What is impossible for a while only is not waited for.
                None if !is_for_ever => set_max_leaves(gang, before),
                None => {
                    return Err(Never(format!(
                        "it needs {nodes} nodes on at most {leaves} leaves, and no switch has such"
                    )));
                }
            }
        }
        let levels = terms.levels(fabric, home.level);
        if levels.is_empty() {
            let name = |level| one_switch(level, self.policy.name_of(level)).to_string();
            let (needs, wants) = (name(home.level), name(terms.at_most.unwrap_or(0)));
            return Err(Never(format!(
                "it needs {nodes} nodes under {needs}, and its wish allows no more than {wants}"
            )));
        }
        let mut places = Vec::with_capacity(levels.len());
        for (level, wait) in levels {
            let from = if wait == 0 { Time::MIN } else { demand.since.saturating_add(wait) };
            let there = if level == home.level { Some(home.clone()) } else { home_of(gang, level) };
            places.extend(there.filter(|home| home.level == level).map(|home| Allowed { home, from }));
        }
        Ok(places)
    }
}

fn set_max_leaves(gang: &mut Gang, leaves: Option<u32>) {
    gang.even.max_leaves = leaves;
    if let Some(floor) = &mut gang.floor {
        floor.max_leaves = leaves;
    }
}

/// Nodes by the types of GPU that they have, where there are several kinds of such nodes.
fn same_kinds(ledger: &Ledger, nodes: &NodeSet, types: &[GresKind]) -> Vec<NodeSet> {
    if types.len() < 2 {
        return Vec::new();
    }
    let mut by_types: BTreeMap<Vec<GresKind>, NodeSet> = BTreeMap::new();
    for node in nodes.iter() {
        let has: Vec<GresKind> = types.iter().copied().filter(|&kind| ledger.gres(node, kind) > 0).collect();
        by_types.entry(has).or_insert_with(|| NodeSet::new(nodes.size())).insert(node);
    }
    let sets: Vec<NodeSet> = by_types.into_values().collect();
    if sets.len() > 1 { sets } else { Vec::new() }
}
