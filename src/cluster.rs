//! The ledger: what each node has, who holds what of it, and until when.
//!
//! It is fed by events (a job starts, changes, ends) and answers two questions about every node in one pass: is a share
//! free there now, and when will it be. It knows counts, not cores or device numbers: a *necessary* condition. Whether
//! a job truly fits is for Slurm's allocator to say.

use crate::nodeset::{NodeId, NodeSet};
use crate::request::{GresKind, JobId, Memory, Share, Time};
use std::collections::BTreeMap;

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

#[derive(Clone, Debug, Default)]
struct Node {
    capacity: Capacity,
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
    jobs: BTreeMap<JobId, Job>,
    epoch: u64,
}

/// How long after now a job that is past its end is thought to go on: Slurm is about to kill it.
pub const OVERDUE_GRACE: Time = 30;

impl Ledger {
    /// An empty ledger over `node_count` nodes that have nothing yet.
    pub fn new(node_count: usize) -> Self {
        Self { nodes: vec![Node::default(); node_count], ..Self::default() }
    }

    /// A number that is another one after every change: what was worked out from the ledger holds as long as it stays.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// States what a node has. Who holds what of it is untouched.
    pub fn set_capacity(&mut self, node: NodeId, capacity: Capacity) {
        if let Some(entry) = self.nodes.get_mut(node as usize)
            && entry.capacity != capacity
        {
            entry.capacity = capacity;
            self.epoch += 1;
        }
    }

    /// Enters what a job holds, in place of what it held before.
    pub fn hold(&mut self, job: JobId, holding: Holding) {
        self.release(job);
        self.epoch += 1;
        let Holding { nodes, end, suspended } = holding;
        let entry = Job { nodes: nodes.iter().map(|&(node, _)| node).collect(), end, suspended };
        for (node, held) in nodes {
            if let Some(entry) = self.nodes.get_mut(node as usize) {
                entry.held.push((job, held));
            }
        }
        self.jobs.insert(job, entry);
    }

    /// Takes a job out. A job that holds nothing is no error.
    pub fn release(&mut self, job: JobId) {
        self.epoch += 1;
        for node in self.jobs.remove(&job).map(|job| job.nodes).unwrap_or_default() {
            if let Some(entry) = self.nodes.get_mut(node as usize) {
                entry.held.retain(|(holder, _)| *holder != job);
            }
        }
    }

    /// Takes all jobs out.
    pub fn release_all(&mut self) {
        self.epoch += 1;
        self.jobs.clear();
        self.nodes.iter_mut().for_each(|node| node.held.clear());
    }

    /// Marks a job as having given its CPUs back (true) or taken them again.
    pub fn set_suspended(&mut self, job: JobId, suspended: bool) {
        self.epoch += 1;
        if let Some(job) = self.jobs.get_mut(&job) {
            job.suspended = suspended;
        }
    }

    /// States when a job must have ended.
    pub fn set_end(&mut self, job: JobId, end: Time) {
        if let Some(job) = self.jobs.get_mut(&job)
            && job.end != end
        {
            job.end = end;
            self.epoch += 1;
        }
    }

    /// The jobs that hold something, by number.
    pub fn jobs(&self) -> impl Iterator<Item = JobId> {
        self.jobs.keys().copied()
    }

    /// The jobs that hold something of a node.
    pub fn holders(&self, node: NodeId) -> impl Iterator<Item = JobId> {
        self.held(node).iter().map(|&(job, _)| job)
    }

    fn held(&self, node: NodeId) -> &[(JobId, Held)] {
        self.nodes.get(node as usize).map_or(&[], |node| &node.held)
    }

    /// CPUs that a node has; 0 for one that the ledger does not know.
    pub fn cpus(&self, node: NodeId) -> u32 {
        self.nodes.get(node as usize).map_or(0, |node| node.capacity.cpus)
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
    pub fn keep_capable(&self, share: &Share, nodes: &mut NodeSet) {
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

    fn has_free_without(&self, node: NodeId, share: &Share, gone: impl Fn(JobId) -> bool) -> bool {
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
mod tests {
    use super::*;

    const GPU: GresKind = GresKind(0);

    fn ledger() -> Ledger {
        let mut ledger = Ledger::new(2);
        ledger.set_capacity(0, Capacity { cpus: 64, memory_mb: 1000, gres: vec![(GPU, 8)] });
        ledger.set_capacity(1, Capacity { cpus: 64, memory_mb: 1000, gres: vec![] });
        ledger
    }

    fn share(cpus: u32, memory: Memory, gpus: u64) -> Share {
        Share { whole_node: false, cpus, memory, gres: vec![(GPU, gpus)] }
    }

    fn on_node_0(cpus: u32, memory_mb: u64, gpus: u64, end: Time) -> Holding {
        Holding { nodes: vec![(0, Held { cpus, memory_mb, gres: vec![(GPU, gpus)] })], end, suspended: false }
    }

    #[test]
    fn each_resource_limits_for_itself() {
        let mut ledger = ledger();
        ledger.hold(JobId(1), on_node_0(32, 600, 6, 100));
        let fits = |share: Share| ledger.has_free(0, &share);
        assert!(fits(share(32, Memory::Megabytes(400), 2)));
        assert!(!fits(share(33, Memory::Megabytes(0), 0)));
        assert!(!fits(share(1, Memory::Megabytes(401), 0)));
        assert!(!fits(share(1, Memory::All, 0)));
        assert!(!fits(share(1, Memory::Megabytes(0), 3)));
        assert!(!fits(Share { whole_node: true, ..share(1, Memory::Megabytes(0), 0) }));
        assert!(!ledger.capable(1, &share(1, Memory::Megabytes(0), 1)));
        assert!(ledger.capable(0, &share(64, Memory::All, 8)));
    }

    #[test]
    fn a_suspended_job_keeps_memory_and_gres() {
        let mut ledger = ledger();
        ledger.hold(JobId(1), on_node_0(64, 600, 8, 100));
        ledger.set_suspended(JobId(1), true);
        assert!(ledger.has_free(0, &share(64, Memory::Megabytes(400), 0)));
        assert!(!ledger.has_free(0, &share(64, Memory::Megabytes(400), 1)));
        ledger.set_suspended(JobId(1), false);
        assert!(!ledger.has_free(0, &share(1, Memory::Megabytes(400), 0)));
    }

    #[test]
    fn a_share_is_free_when_enough_jobs_have_left() {
        let mut ledger = ledger();
        ledger.hold(JobId(1), on_node_0(8, 0, 2, 300));
        ledger.hold(JobId(2), on_node_0(8, 0, 4, 200));
        ledger.hold(JobId(3), on_node_0(8, 0, 2, 50));
        let when = |gpus| ledger.release_time(0, &share(1, Memory::Megabytes(0), gpus), 100);
        assert_eq!(when(0), Some(100));
        assert_eq!(when(2), Some(100 + OVERDUE_GRACE), "job 3 is overdue");
        assert_eq!(when(6), Some(200));
        assert_eq!(when(8), Some(300));
        assert_eq!(when(9), None);
    }

    #[test]
    fn holding_again_replaces_and_release_forgets() {
        let mut ledger = ledger();
        ledger.hold(JobId(1), on_node_0(64, 0, 8, 100));
        ledger.hold(JobId(1), on_node_0(8, 0, 1, 100));
        assert!(ledger.holders(0).eq([JobId(1)]));
        assert!(ledger.has_free(0, &share(56, Memory::Megabytes(0), 7)));
        ledger.release(JobId(1));
        ledger.release(JobId(1));
        assert!(ledger.has_free(0, &share(64, Memory::All, 8)));
        assert_eq!(ledger.jobs().count(), 0);
    }
}
