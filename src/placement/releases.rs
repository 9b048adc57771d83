//! When each node can give a share, remembered from one gang to the next.
//!
//! A backfill cycle asks for hundreds of gangs while the ledger stands still, and most of them ask the same of a node.
//! So the release times of all nodes are worked out once for each share; after that only the nodes that changed since are
//! looked at again, and those whose jobs are past their end, since these are thought to leave a moment from *now*.

use crate::cluster::Ledger;
use crate::nodeset::{NodeId, NodeSet};
use crate::request::{Share, Time};

/// How many shares are remembered.
const SHARES: usize = 8;

/// The release times of all nodes for the shares asked last.
#[derive(Debug, Default)]
pub struct Releases {
    tables: Vec<Table>,
}

/// The release times of all nodes for one share.
#[derive(Debug)]
pub struct Table {
    epoch: Option<u64>,
    now: Time,
    share: Share,
    times: Vec<Release>,
    free: NodeSet,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Release {
    Never,
    Free,
    At(Time),
}

impl Releases {
    /// The release times for a share at a moment.
    pub fn of(&mut self, ledger: &Ledger, node_count: usize, share: &Share, now: Time) -> &Table {
        let known =
            self.tables.iter().position(|table| table.share == *share && table.times.len() == node_count);
        let mut table = match known {
            Some(known) => self.tables.remove(known),
            None => {
                self.tables.truncate(SHARES - 1);
                let (times, free) = (vec![Release::Never; node_count], NodeSet::new(node_count));
                Table { epoch: None, now, share: share.clone(), times, free }
            }
        };
        table.catch_up(ledger, now);
        // The one asked last stands first, so the last is the one to forget.
        self.tables.insert(0, table);
        &self.tables[0]
    }
}

impl Table {
    fn catch_up(&mut self, ledger: &Ledger, now: Time) {
        if (self.epoch, self.now) == (Some(ledger.epoch()), now) {
            return;
        }
        // A clock that went back makes overdue jobs punctual again.
        let changed = self.epoch.filter(|_| self.now <= now).and_then(|epoch| ledger.changed_since(epoch));
        match changed {
            Some(changed) => {
                changed.for_each(|node| self.look_at(ledger, node, now));
                for job in ledger.overdue(now) {
                    ledger.nodes_of(job).iter().for_each(|&node| self.look_at(ledger, node, now));
                }
            }
            None => (0..self.times.len()).for_each(|node| self.look_at(ledger, node as NodeId, now)),
        }
        (self.epoch, self.now) = (Some(ledger.epoch()), now);
    }

    fn look_at(&mut self, ledger: &Ledger, node: NodeId, now: Time) {
        let Some(entry) = self.times.get_mut(node as usize) else { return };
        *entry = if ledger.has_free(node, &self.share) {
            Release::Free
        } else {
            ledger.release_time(node, &self.share, now).map_or(Release::Never, Release::At)
        };
        if *entry == Release::Free {
            self.free.insert(node);
        } else {
            self.free.remove(node);
        }
    }

    /// When the node can give the share; none if it never can.
    pub fn time(&self, node: NodeId) -> Option<Time> {
        match self.times.get(node as usize) {
            Some(Release::Free) => Some(self.now),
            Some(&Release::At(time)) => Some(time),
            Some(Release::Never) | None => None,
        }
    }

    /// The nodes that can give the share now.
    pub fn free(&self) -> &NodeSet {
        &self.free
    }
}
