//! What is known about a cluster, and the questions that are asked of it.
//!
//! The plugin fills a [`Site`] from slurmctld's records, the command line from the output of Slurm's commands; both then
//! ask the same code what a job is (a [`Gang`] or not), where it may lie, where it goes now and when it could start.
//! What the plugin has promised to whom is not known here.

pub mod demand;
mod gang;
pub mod gres_kinds;
mod pass_through;

pub use gang::{Allowed, Gang, Never};
pub use pass_through::PassThrough;

use crate::cluster::{Capable, Ledger};
use crate::fabric::NodeNames;
use crate::fabric::tree::Fabric;
use crate::nodeset::NodeSet;
use crate::placement::Planner;
use crate::placement::verdict::{Placement, Refusal};
use crate::policy::Policy;
use crate::request::{Request, Time};
use gres_kinds::GresKinds;

/// A cluster as it is known at a moment.
#[derive(Debug, Default)]
pub struct Site {
    /// Its nodes, in slurmctld's order.
    pub names: NodeNames,
    /// What the site decided.
    pub policy: Policy,
    /// The switches; none without a usable topology file.
    pub fabric: Option<Fabric>,
    /// Who holds what.
    pub ledger: Ledger,
    /// Which nodes could give what.
    pub capable: Capable,
    /// The placement engine with its buffers.
    pub planner: Planner,
    /// GRES by number.
    pub kinds: GresKinds,
}

/// When and where a gang would start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forecast {
    /// Now or later.
    pub start: Time,
    /// Exactly the gang's nodes.
    pub placement: Placement,
    /// CPUs in all.
    pub total_cpus: u32,
    /// Why it does not start now; none if it does.
    pub refusal: Option<Refusal>,
}

impl Site {
    /// Places a gang now: at the lowest level that it may lie under by now, by the even share or else (where tasks need not
    /// be dealt evenly) by the least that each node must have.
    ///
    /// # Errors
    /// Why it waits.
    pub fn place(
        &mut self,
        gang: &Gang,
        permitted: &NodeSet,
        refused: &[NodeSet],
        now: Time,
    ) -> Result<Placement, Refusal> {
        let mut first_refusal = None;
        for Allowed { home, .. } in gang.places().iter().filter(|allowed| allowed.from <= now) {
            for request in gang.requests() {
                let usable = self.usable(gang, permitted, request, now);
                let Some(fabric) = &self.fabric else { break };
                match self.planner.place(fabric, &self.ledger, &usable, home, request, refused) {
                    Ok(placement) => return Ok(placement.clone()),
                    Err(refusal) => first_refusal = first_refusal.or(Some(refusal)),
                }
            }
        }
        Err(first_refusal.unwrap_or_else(|| gang.never()))
    }

    /// When and where a gang could start; none if the permitted nodes never suffice.
    pub fn forecast(&mut self, gang: &Gang, permitted: &NodeSet, now: Time) -> Option<Forecast> {
        let mut nodes = permitted.clone();
        nodes.intersect_with(&gang.eligible);
        let fabric = self.fabric.as_ref()?;
        let mut best: Option<(Time, Placement, &Request)> = None;
        let mut first_refusal = None;
        for Allowed { home, from } in gang.places() {
            for request in gang.requests() {
                if best.as_ref().is_some_and(|(best, ..)| *best <= *from) {
                    continue;
                }
                let found = self.planner.forecast(fabric, &self.ledger, &nodes, home, request, now);
                let Some(found) = found else { continue };
                let start = found.start.max(*from);
                if start > now {
                    first_refusal = first_refusal.or(found.refusal);
                }
                if best.as_ref().is_none_or(|(best, ..)| start < *best) {
                    best = Some((start, found.placement.clone(), request));
                }
            }
        }
        let (start, placement, request) = best?;
        let whole = placement.nodes.iter().map(|node| self.ledger.cpus(node)).fold(0, u32::saturating_add);
        let shares = (placement.nodes.count() as u32).saturating_mul(request.share.cpus);
        let total_cpus = if request.share.whole_node { whole } else { shares };
        Some(Forecast { start, placement, total_cpus, refusal: first_refusal.filter(|_| start > now) })
    }

    /// The permitted nodes that could serve and have the share free now.
    pub fn usable(&mut self, gang: &Gang, permitted: &NodeSet, request: &Request, now: Time) -> NodeSet {
        let mut nodes = permitted.clone();
        nodes.intersect_with(&gang.eligible);
        nodes.intersect_with(self.planner.free(&self.ledger, permitted.size(), &request.share, now));
        nodes
    }
}
