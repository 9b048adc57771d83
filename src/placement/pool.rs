//! The nodes that a gang may use at one moment, counted.

use super::candidates::{Counts, Home};
use super::hole_cost::HoleCost;
use super::search::Search;
use crate::cluster::Ledger;
use crate::fabric::tree::Fabric;
use crate::nodeset::NodeSet;
use crate::request::Request;

/// Who is on the nodes when the gang comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Whoever the ledger says.
    Now,
    /// Nobody knows: all nodes that have the gang's share free count as idle.
    Later,
}

/// The nodes that a gang may use, and how many of them each switch has; kept from one decision to the next.
#[derive(Debug, Default)]
pub struct Pool {
    usable: NodeSet,
    idle: NodeSet,
    counts: Counts,
    idle_counts: Counts,
    shares_nodes: bool,
    /// How often it was filled.
    fillings: u64,
}

impl Pool {
    /// Takes the usable nodes, of one uniform set if the gang has such sets.
    pub fn fill(
        &mut self,
        fabric: &Fabric,
        ledger: &Ledger,
        usable: &NodeSet,
        only: Option<&NodeSet>,
        request: &Request,
        moment: Moment,
    ) {
        self.fillings += 1;
        self.usable.clone_from(usable);
        if let Some(only) = only {
            self.usable.intersect_with(only);
        }
        self.counts.count(fabric, &self.usable);
        self.shares_nodes = moment == Moment::Now && !request.share.whole_node;
        if self.shares_nodes {
            self.idle.clone_from(&self.usable);
            self.idle.intersect_with(ledger.idle());
            self.idle_counts.count(fabric, &self.idle);
        }
    }

    /// The nodes.
    pub fn usable(&self) -> &NodeSet {
        &self.usable
    }

    /// How many of the nodes each switch has.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The question where in the pool a gang is placed.
    pub fn search<'a>(
        &'a self,
        fabric: &'a Fabric,
        ledger: &'a Ledger,
        holes: &'a HoleCost,
        home: &'a Home,
        request: &'a Request,
    ) -> Search<'a> {
        Search {
            fabric,
            ledger,
            holes,
            request,
            home,
            usable: &self.usable,
            counts: &self.counts,
            idle: if self.shares_nodes { &self.idle_counts } else { &self.counts },
            shares_nodes: self.shares_nodes,
            devices: ledger.devices(&request.share),
            filling: self.fillings,
        }
    }
}
