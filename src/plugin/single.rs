//! A job of one node: where it costs the gangs to come the least, and when there will be room for it.

use super::decisions::PROMISE_SECONDS;
use super::lifecycle;
use super::state::{Promise, with};
use crate::fabric::tree::Fabric;
use crate::nodeset::NodeSet;
use crate::placement::candidates::Home;
use crate::placement::verdict::Placement;
use crate::policy::Mode;
use crate::request::{JobId, Request, Time};
use crate::site::Site;
use crate::site::demand::Demand;
use std::hash::{DefaultHasher, Hash, Hasher};

/// A job of one node: what it takes there, and the nodes that it could be on.
pub struct Single {
    job: JobId,
    request: Request,
    nodes: NodeSet,
    /// Whether the ledger's word on all nodes that it could be on is the last one.
    pub is_ours: bool,
    /// Whether it is a component of a het job, whose places must be those that were planned together.
    is_component: bool,
}

impl Single {
    /// A demand for one node on permitted nodes; none if that is for cons_tres to say.
    pub fn of(demand: &Demand, permitted: &NodeSet) -> Option<Self> {
        with(|state| {
            let now = lifecycle::now();
            let fabric =
                state.site.fabric.as_ref().filter(|fabric| fabric.node_count() == permitted.size())?;
            let rule = state.site.policy.rule(demand.subject());
            let is_mistrusted = state.mistrusted.get(&demand.job).is_some_and(|&until| until > now);
            if rule.mode < Mode::Preferred || demand.required.is_some() || is_mistrusted {
                return None;
            }
            let (share, _) = demand.shares(1, &mut state.site.kinds);
            let mut nodes = permitted.clone();
            nodes.intersect_with(&demand.configured);
            let is_ours = demand.is_one_node_only() && nodes.is_subset(fabric.listed());
            nodes.intersect_with(fabric.listed());
            state.keep_from_others(demand.job, demand.priority, now, &mut nodes);
            let request = Request::new(1, share);
            if let Some(near) = state.near(demand.het, &request, &nodes, now) {
                nodes = near;
            }
            Some(Self { job: demand.job, request, nodes, is_ours, is_component: demand.het.is_some() })
        })
    }

    /// The node that costs the gangs to come the least; none if no node has room now.
    ///
    /// Among nodes of different weight, Slurm's users expect the lightest first, so only these are looked at.
    pub fn node_now(&self) -> Option<NodeSet> {
        with(|state| {
            let fabric = state.site.fabric.as_ref()?;
            let mut nodes = self.nodes.clone();
            let share = &self.request.share;
            let promised = state.promises.get(&self.job).map(|promise| &promise.placement.nodes);
            let is_free = |node| nodes.contains(node) && state.site.ledger.has_free(node, share);
            if let Some(promised) = promised.filter(|promised| promised.iter().all(is_free)) {
                return Some(promised.clone());
            }
            nodes.intersect_with(state.site.planner.free(
                &state.site.ledger,
                nodes.size(),
                share,
                lifecycle::now(),
            ));
            if state.site.ledger.has_reluctance() {
                let lightest = nodes.iter().map(|node| state.site.ledger.reluctance(node)).min()?;
                let heavier = nodes.iter().filter(|&node| state.site.ledger.reluctance(node) > lightest);
                let heavier = NodeSet::from_nodes(nodes.size(), heavier);
                nodes.subtract(&heavier);
            }
            let home = leaves_of(fabric);
            let placed =
                state.site.planner.place(fabric, &state.site.ledger, &nodes, &home, &self.request, &[]);
            placed.ok().map(|placement| placement.nodes.clone())
        })
    }

    /// When it will start, on which node and with how many CPUs; none if no node will ever have room.
    pub fn forecast(&self, now: Time) -> Option<(Time, NodeSet, u32)> {
        if let Some(node) = self.node_now() {
            if self.is_component {
                self.promise(&node);
            }
            return Some((now, node.clone(), self.cpus(&node)));
        }
        let (start, nodes) = with(|state| {
            let Site { planner, ledger, .. } = &mut state.site;
            planner.first_free(ledger, &self.nodes, &self.request.share, 1, now)
        })?;
        let node = NodeSet::from_nodes(nodes.size(), nodes.iter().next());
        Some((start, node.clone(), self.cpus(&node)))
    }

    fn promise(&self, node: &NodeSet) {
        with(|state| {
            let leaf = state.site.fabric.as_ref().and_then(|fabric| fabric.leaf_of(node.iter().next()?));
            let Some(domain) = leaf else { return };
            let placement = Placement { nodes: node.clone(), domain, leaves: 1, excess: 0 };
            let until = lifecycle::now() + PROMISE_SECONDS;
            state.promises.insert(self.job, Promise { placement, until, preempts_with: None });
        });
    }

    fn cpus(&self, node: &NodeSet) -> u32 {
        let share = &self.request.share;
        let whole = || with(|state| node.iter().map(|node| state.site.ledger.cpus(node)).sum());
        if share.whole_node { whole() } else { share.cpus }
    }

    /// Nodes of one leaf that could hold it when empty, to ask cons_tres about; none if there are none.
    pub fn some_leaf(&self) -> Option<NodeSet> {
        with(|state| {
            let fabric = state.site.fabric.as_ref()?;
            let capable = |node: &u32| state.site.ledger.capable(*node, &self.request.share);
            let leaf = fabric.leaf_of(self.nodes.iter().find(capable)?)?;
            let nodes = fabric.nodes_under(leaf).iter().copied();
            Some(NodeSet::from_nodes(self.nodes.size(), nodes.filter(|&node| self.nodes.contains(node))))
        })
    }

    /// cons_tres refused the node that the ledger took for free: for a while it is asked instead.
    pub fn mistrust(&self) {
        with(|state| state.mistrust(self.job));
    }

    /// A number for this very request.
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.job, &self.request, &self.nodes).hash(&mut hasher);
        hasher.finish()
    }
}

fn leaves_of(fabric: &Fabric) -> Home {
    Home { level: 0, domains: fabric.at_level(0).to_vec(), segment_level: None }
}
