//! The ledger: what each node has, who holds what of it, and until when.
//!
//! It is fed by events (a job starts, changes, ends) and answers two questions about every node in one pass: is a share
//! free there now, and when will it be. It knows counts, not cores or device numbers: a *necessary* condition. Whether
//! a job truly fits is for Slurm's allocator to say.
//!
//! Every change is noted with the node that it touches, so that whoever has worked something out for all nodes need only
//! look again at those that changed since.

use crate::nodeset::{NodeId, NodeSet};
use crate::request::{GresKind, JobId, Memory, Share, Time};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What a node has for jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capacity {
    /// CPUs (hardware threads).
    pub cpus: u32,
    /// Memory in MB.
    pub memory_mb: u64,
    /// GRES by kind, each kind at most once.
    pub gres: Vec<(GresKind, u64)>,
}

/// What a job holds on one node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// CPUs; none of them while the job is suspended.
    pub cpus: u32,
    /// Memory in MB.
    pub memory_mb: u64,
    /// GRES by kind, each kind at most once.
    pub gres: Vec<(GresKind, u64)>,
}

/// What a job holds, and until when.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holding {
    /// By node, each node at most once.
    pub nodes: Vec<(NodeId, Held)>,
    /// When the job must have ended.
    pub end: Time,
    /// Whether it has given its CPUs back.
    pub suspended: bool,
}

/// How gladly a node is given away; gladder is less.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reluctance {
    /// It must be powered up first.
    pub powered_down: bool,
    /// Slurm's node weight.
    pub weight: u32,
}

/// What a node can be shared by: its GPUs, or its CPUs if it has no GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slots {
    /// How many it has.
    pub all: u32,
    /// How many nobody holds.
    pub free: u32,
    /// Whether they are GPUs.
    pub are_devices: bool,
}

#[derive(Clone, Debug, Default)]
struct Node {
    capacity: Capacity,
    reluctance: Reluctance,
    /// Few jobs share a node, so a list beats a map.
    held: Vec<(JobId, Held)>,
}

#[derive(Clone, Debug, Default)]
struct Job {
    nodes: Vec<NodeId>,
    end: Time,
    suspended: bool,
}

/// Who holds what on each node, and until when.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    nodes: Vec<Node>,
    /// By node, and apart from the rest: a decision looks at the slots of all nodes.
    slots: Vec<Slots>,
    jobs: BTreeMap<JobId, Job>,
    /// All jobs by their end.
    ends: BTreeSet<(Time, JobId)>,
    /// The nodes that nobody is on.
    idle: NodeSet,
    /// The GRES whose devices are a node's slots.
    slot_kind: Option<GresKind>,
    /// How many nodes are given away how gladly.
    reluctances: BTreeMap<Reluctance, usize>,
    epoch: u64,
    /// How often any node's capacity changed.
    capacity_changes: u64,
    /// The nodes of the last changes, one an epoch.
    changed: VecDeque<NodeId>,
}

/// How many changes are remembered. Who is further behind looks at all nodes.
const CHANGES: usize = 4096;

/// How long after now a job that is past its end is thought to go on: Slurm is about to kill it.
pub const OVERDUE_GRACE: Time = 30;

impl Ledger {
    /// An empty ledger over `node_count` nodes that have nothing yet.
    pub fn new(node_count: usize) -> Self {
        Self {
            nodes: vec![Node::default(); node_count],
            slots: vec![Slots::default(); node_count],
            idle: NodeSet::full(node_count),
            reluctances: BTreeMap::from([(Reluctance::default(), node_count)]),
            ..Self::default()
        }
    }

    /// A number that is another one after every change: what was worked out from the ledger holds as long as it stays.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The nodes that changed since an epoch, some perhaps several times; none if that is too long ago to know.
    pub fn changed_since(&self, epoch: u64) -> Option<impl Iterator<Item = NodeId>> {
        let changes = usize::try_from(self.epoch.checked_sub(epoch)?).ok()?;
        let known = self.changed.len().checked_sub(changes)?;
        Some(self.changed.range(known..).copied())
    }

    /// Names the GRES whose devices are a node's slots; a node without them has its CPUs as slots.
    pub fn set_slot_kind(&mut self, kind: GresKind) {
        self.slot_kind = Some(kind);
        (0..self.nodes.len()).for_each(|node| self.touch(node as NodeId));
    }

    /// States what a node has. Who holds what of it is untouched.
    pub fn set_capacity(&mut self, node: NodeId, capacity: Capacity) {
        if let Some(entry) = self.nodes.get_mut(node as usize)
            && entry.capacity != capacity
        {
            entry.capacity = capacity;
            self.capacity_changes += 1;
            self.touch(node);
        }
    }

    /// States how gladly a node is given away.
    pub fn set_reluctance(&mut self, node: NodeId, reluctance: Reluctance) {
        if let Some(entry) = self.nodes.get_mut(node as usize)
            && entry.reluctance != reluctance
        {
            let before = std::mem::replace(&mut entry.reluctance, reluctance);
            *self.reluctances.entry(reluctance).or_default() += 1;
            if let Some(nodes) = self.reluctances.get_mut(&before) {
                *nodes -= 1;
            }
            self.reluctances.retain(|_, nodes| *nodes > 0);
            self.touch(node);
        }
    }

    /// Enters what a job holds, in place of what it held before.
    pub fn hold(&mut self, job: JobId, holding: Holding) {
        self.release(job);
        let Holding { nodes, end, suspended } = holding;
        let entry = Job { nodes: nodes.iter().map(|&(node, _)| node).collect(), end, suspended };
        self.jobs.insert(job, entry);
        self.ends.insert((end, job));
        for (node, held) in nodes {
            if let Some(entry) = self.nodes.get_mut(node as usize) {
                entry.held.push((job, held));
                self.touch(node);
            }
        }
    }

    /// Takes a job out. A job that holds nothing is no error.
    pub fn release(&mut self, job: JobId) {
        let Some(Job { nodes, end, .. }) = self.jobs.remove(&job) else { return };
        self.ends.remove(&(end, job));
        for node in nodes {
            if let Some(entry) = self.nodes.get_mut(node as usize) {
                entry.held.retain(|(holder, _)| *holder != job);
                self.touch(node);
            }
        }
    }

    /// Takes all jobs out.
    pub fn release_all(&mut self) {
        self.jobs.clear();
        self.ends.clear();
        self.nodes.iter_mut().for_each(|node| node.held.clear());
        (0..self.nodes.len()).for_each(|node| self.touch(node as NodeId));
    }

    /// Marks a job as having given its CPUs back (true) or taken them again.
    pub fn set_suspended(&mut self, job: JobId, suspended: bool) {
        self.change(job, |job| job.suspended = suspended);
    }

    /// States when a job must have ended.
    pub fn set_end(&mut self, job: JobId, end: Time) {
        let Some(before) = self.jobs.get(&job).map(|job| job.end).filter(|&before| before != end) else {
            return;
        };
        self.ends.remove(&(before, job));
        self.ends.insert((end, job));
        self.change(job, |job| job.end = end);
    }

    fn change(&mut self, job: JobId, change: impl FnOnce(&mut Job)) {
        let Some(entry) = self.jobs.get_mut(&job) else { return };
        change(entry);
        entry.nodes.clone().into_iter().for_each(|node| self.touch(node));
    }

    /// Notes that a node changed, and what follows from that.
    fn touch(&mut self, node: NodeId) {
        self.epoch += 1;
        if self.changed.len() == CHANGES {
            self.changed.pop_front();
        }
        self.changed.push_back(node);
        let Some(entry) = self.nodes.get_mut(node as usize) else { return };
        let devices = self.slot_kind.map_or(0, |kind| count(&entry.capacity.gres, kind));
        let held = |slots: fn(&Held, GresKind) -> u64| {
            let kind = self.slot_kind.unwrap_or(GresKind(0));
            entry.held.iter().map(|(_, held)| slots(held, kind)).fold(0, u64::saturating_add)
        };
        let (all, held) = if devices > 0 {
            (devices, held(|held, kind| count(&held.gres, kind)))
        } else {
            (entry.capacity.cpus.into(), held(|held, _| held.cpus.into()))
        };
        let slots = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        let free = slots(all.saturating_sub(held));
        self.slots[node as usize] = Slots { all: slots(all), free, are_devices: devices > 0 };
        if entry.held.is_empty() {
            self.idle.insert(node);
        } else {
            self.idle.remove(node);
        }
    }

    /// The nodes that nobody is on.
    pub fn idle(&self) -> &NodeSet {
        &self.idle
    }

    /// A node's slots.
    pub fn slots(&self, node: NodeId) -> Slots {
        self.slots.get(node as usize).copied().unwrap_or_default()
    }

    /// How many GPUs a share takes on a node whose slots are GPUs.
    pub fn devices(&self, share: &Share) -> u32 {
        let devices = self.slot_kind.map_or(0, |kind| count(&share.gres, kind));
        u32::try_from(devices).unwrap_or(u32::MAX)
    }

    /// How gladly a node is given away.
    pub fn reluctance(&self, node: NodeId) -> Reluctance {
        self.nodes.get(node as usize).map_or(Reluctance::default(), |node| node.reluctance)
    }

    /// Whether any node is given away less gladly than another.
    pub fn has_reluctance(&self) -> bool {
        self.reluctances.len() > 1
    }

    /// The jobs that are past their end.
    pub fn overdue(&self, now: Time) -> impl Iterator<Item = JobId> {
        self.ends.range(..=(now, JobId(u32::MAX))).map(|&(_, job)| job)
    }

    /// The nodes that a job holds.
    pub fn nodes_of(&self, job: JobId) -> &[NodeId] {
        self.jobs.get(&job).map_or(&[], |job| &job.nodes)
    }

    /// When a job must have ended; none for a job that holds nothing.
    pub fn end_of(&self, job: JobId) -> Option<Time> {
        self.jobs.get(&job).map(|job| job.end)
    }

    /// The jobs that hold something, by number.
    pub fn jobs(&self) -> impl Iterator<Item = JobId> {
        self.jobs.keys().copied()
    }

    /// The jobs that hold something of a node.
    pub fn holders(&self, node: NodeId) -> impl Iterator<Item = JobId> {
        self.held(node).iter().map(|&(job, _)| job)
    }

    /// Jobs that hold something, each once, the one that ends last first.
    pub fn last_to_end_first(&self, jobs: impl Iterator<Item = JobId>) -> Vec<JobId> {
        let mut jobs: Vec<JobId> = jobs.collect();
        jobs.sort_unstable_by_key(|&job| (std::cmp::Reverse(self.end_of(job)), job));
        jobs.dedup();
        jobs
    }

    fn held(&self, node: NodeId) -> &[(JobId, Held)] {
        self.nodes.get(node as usize).map_or(&[], |node| &node.held)
    }

    /// CPUs that a node has; 0 for one that the ledger does not know.
    pub fn cpus(&self, node: NodeId) -> u32 {
        self.nodes.get(node as usize).map_or(0, |node| node.capacity.cpus)
    }

    /// How many GRES of a kind a node has; 0 for one that the ledger does not know.
    pub fn gres(&self, node: NodeId, kind: GresKind) -> u64 {
        self.nodes.get(node as usize).map_or(0, |node| count(&node.capacity.gres, kind))
    }

    /// What is allocated on a node: CPUs (without those of suspended jobs), memory in MB, GRES of a kind.
    pub fn allocated(&self, node: NodeId, kind: GresKind) -> (u64, u64, u64) {
        let suspended = |job: &JobId| self.jobs.get(job).is_some_and(|job| job.suspended);
        self.held(node).iter().fold((0, 0, 0), |(cpus, memory, gres), (job, held)| {
            let running = if suspended(job) { 0 } else { u64::from(held.cpus) };
            (cpus + running, memory + held.memory_mb, gres + count(&held.gres, kind))
        })
    }

    /// Whether an empty node could give the share.
    pub fn capable(&self, node: NodeId, share: &Share) -> bool {
        self.nodes.get(node as usize).is_some_and(|node| node.capacity.could_give(share))
    }

    /// Whether the node could give the share now.
    pub fn has_free(&self, node: NodeId, share: &Share) -> bool {
        self.has_free_without(node, share, |_| false)
    }

    /// Keeps only nodes that could give the share when empty.
    fn keep_capable(&self, share: &Share, nodes: &mut NodeSet) {
        for node in 0..nodes.size() as NodeId {
            if nodes.contains(node) && !self.capable(node, share) {
                nodes.remove(node);
            }
        }
    }

    /// When the node could give the share, if nobody else comes: `now` or later, none if it never could.
    ///
    /// Jobs leave at their end; one that is past it is thought to leave [`OVERDUE_GRACE`] seconds from now.
    pub fn release_time(&self, node: NodeId, share: &Share, now: Time) -> Option<Time> {
        if !self.capable(node, share) {
            return None;
        }
        if self.has_free(node, share) {
            return Some(now);
        }
        // The earliest end by which enough jobs have left; few jobs share a node, so trying each end is cheap.
        let end = |job: JobId| self.jobs.get(&job).map_or(now, |job| leaves(job.end, now));
        let ends = self.holders(node).map(end);
        ends.filter(|&time| self.has_free_without(node, share, |job| end(job) <= time)).min()
    }

    /// Whether the node could give the share if some of its jobs were gone.
    pub fn has_free_without(&self, node: NodeId, share: &Share, gone: impl Fn(JobId) -> bool) -> bool {
        let Some(entry) = self.nodes.get(node as usize) else { return false };
        if !entry.capacity.could_give(share) {
            return false;
        }
        if entry.held.is_empty() {
            return true;
        }
        let staying = || entry.held.iter().filter(|(job, _)| !gone(*job));
        if share.whole_node {
            return staying().next().is_none();
        }
        let suspended = |job: &JobId| self.jobs.get(job).is_some_and(|job| job.suspended);
        let cpus = staying()
            .filter(|(job, _)| !suspended(job))
            .map(|(_, held)| held.cpus)
            .fold(0, u32::saturating_add);
        let memory = staying().map(|(_, held)| held.memory_mb).fold(0, u64::saturating_add);
        let memory_is_free = match share.memory {
            Memory::All => memory == 0,
            Memory::Megabytes(asked) => memory.saturating_add(asked) <= entry.capacity.memory_mb,
        };
        memory_is_free
            && cpus.saturating_add(share.cpus) <= entry.capacity.cpus
            && share.gres.iter().all(|&(kind, asked)| {
                let held = staying().map(|(_, held)| count(&held.gres, kind)).fold(0, u64::saturating_add);
                held.saturating_add(asked) <= count(&entry.capacity.gres, kind)
            })
    }
}

/// The nodes that could give a share when empty, remembered for the shares asked last: capacities change seldom, and a
/// scheduler asks for the same share again and again.
#[derive(Clone, Debug, Default)]
pub struct Capable {
    known: Vec<(Share, u64, NodeSet)>,
}

/// How many shares are remembered.
const SHARES: usize = 16;

impl Capable {
    /// The nodes of the ledger that could give a share when empty.
    pub fn of(&mut self, ledger: &Ledger, share: &Share) -> &NodeSet {
        let is_known = |(known, changes, _): &(Share, u64, NodeSet)| {
            known == share && *changes == ledger.capacity_changes
        };
        let found = self.known.iter().position(is_known).map(|at| self.known.remove(at));
        let entry = found.unwrap_or_else(|| {
            self.known.retain(|(known, ..)| known != share);
            self.known.truncate(SHARES - 1);
            let mut nodes = NodeSet::full(ledger.nodes.len());
            ledger.keep_capable(share, &mut nodes);
            (share.clone(), ledger.capacity_changes, nodes)
        });
        // The one asked last comes first, so the last is the one to forget.
        self.known.insert(0, entry);
        &self.known[0].2
    }

    /// Forgets all: for another ledger.
    pub fn clear(&mut self) {
        self.known.clear();
    }
}

impl Capacity {
    fn could_give(&self, share: &Share) -> bool {
        let memory = match share.memory {
            Memory::All => 0,
            Memory::Megabytes(asked) => asked,
        };
        share.cpus <= self.cpus
            && memory <= self.memory_mb
            && share.gres.iter().all(|&(kind, asked)| asked <= count(&self.gres, kind))
    }
}

fn leaves(end: Time, now: Time) -> Time {
    if end > now { end } else { now.saturating_add(OVERDUE_GRACE) }
}

fn count(gres: &[(GresKind, u64)], wanted: GresKind) -> u64 {
    gres.iter().find(|(kind, _)| *kind == wanted).map_or(0, |(_, count)| *count)
}

#[cfg(test)]
mod tests;
