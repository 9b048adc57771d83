//! When each node can give a share, remembered from one gang to the next.
//!
//! A backfill cycle asks for hundreds of gangs while the ledger stands still, and most of them ask the same of a node.
//! So the release times of all nodes are worked out once for each share and moment, and again when the ledger's epoch
//! changes.

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
    epoch: u64,
    now: Time,
    share: Share,
    times: Vec<Option<Time>>,
    free: NodeSet,
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
                let times = vec![None; node_count];
                // An epoch that no ledger has: the table is filled below.
                Table { epoch: u64::MAX, now, share: share.clone(), times, free: NodeSet::new(node_count) }
            }
        };
        if (table.epoch, table.now) != (ledger.epoch(), now) {
            table.fill(ledger, now);
        }
        // The one asked last stands first, so the last is the one to forget.
        self.tables.insert(0, table);
        &self.tables[0]
    }
}

impl Table {
    fn fill(&mut self, ledger: &Ledger, now: Time) {
        (self.epoch, self.now) = (ledger.epoch(), now);
        self.free.clear();
        for (node, time) in self.times.iter_mut().enumerate() {
            *time = ledger.release_time(node as NodeId, &self.share, now);
            if *time == Some(now) {
                self.free.insert(node as NodeId);
            }
        }
    }

    /// When the node can give the share; none if it never can.
    pub fn time(&self, node: NodeId) -> Option<Time> {
        self.times.get(node as usize).copied().flatten()
    }

    /// The nodes that can give the share now.
    pub fn free(&self) -> &NodeSet {
        &self.free
    }
}
