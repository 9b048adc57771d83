//! Which nodes of one leaf: the least that so many of them can cost.
//!
//! To a gang that takes whole nodes they are alike, but for those that it requires and those that are given away less
//! gladly. A gang that shares its nodes has two kinds to choose from: nodes that somebody is on already, and idle ones,
//! which the gangs to come would rather have whole. Inside each kind the cheapest come first, so only the number of idle
//! nodes has to be tried out.

use super::candidates::leaves;
use super::cost::Cost;
use super::search::Search;
use crate::cluster::Slots;
use crate::fabric::tree::SwitchId;
use crate::nodeset::{NodeId, NodeSet};

/// The usable nodes of a leaf, by kind; kept from one leaf to the next.
#[derive(Debug, Default)]
pub struct Leaf {
    required: Vec<NodeId>,
    /// What the required nodes cost, and how many of them are idle.
    base: (Cost, u32),
    idle: Vec<(Cost, NodeId)>,
    shared: Vec<(Cost, NodeId)>,
    slot_costs: SlotCosts,
}

/// What taking the gang's slots from a node costs, by the slots that the node has and has free: most nodes are alike.
#[derive(Debug, Default)]
pub struct SlotCosts {
    /// The filling of the pool that the costs are for.
    filling: Option<u64>,
    costs: Vec<Option<Cost>>,
}

/// Nodes of up to so many slots have their costs remembered.
const REMEMBERED_SLOTS: u32 = 32;

impl SlotCosts {
    /// What taking the gang's slots from such a node costs.
    pub fn of(&mut self, search: &Search, slots: Slots) -> Cost {
        const ROW: u32 = REMEMBERED_SLOTS + 1;
        if slots.all > REMEMBERED_SLOTS || slots.free > slots.all {
            return slot_cost(search, slots);
        }
        if self.filling != Some(search.filling) {
            self.costs.clear();
            self.costs.resize((2 * ROW * ROW) as usize, None);
            self.filling = Some(search.filling);
        }
        let at = (u32::from(slots.are_devices) * ROW + slots.all) * ROW + slots.free;
        *self.costs[at as usize].get_or_insert_with(|| slot_cost(search, slots))
    }
}

/// Which kinds of nodes a leaf was seen to have: of several that are alike, the first is as good as any.
#[derive(Default)]
struct Seen {
    /// The slots of the first node. Only nodes of as many slots are compared.
    all: Option<(u32, bool)>,
    /// By number of free slots, those in use and the idle ones.
    free: [u64; 2],
}

impl Seen {
    /// Whether such a node was seen before.
    fn before(&mut self, slots: Slots, is_idle: bool) -> bool {
        let all = *self.all.get_or_insert((slots.all, slots.are_devices));
        if all != (slots.all, slots.are_devices) || slots.free >= u64::BITS {
            return false;
        }
        let free = &mut self.free[usize::from(is_idle)];
        let bit = 1 << slots.free;
        let is_known = *free & bit != 0;
        *free |= bit;
        is_known
    }
}

impl Leaf {
    /// What 0, 1, 2, ... up to `most` nodes of a leaf cost at least, into `costs`. `domain` is the domain that the whole
    /// gang lies in.
    pub fn costs(
        &mut self,
        search: &Search,
        domain: SwitchId,
        leaf: SwitchId,
        most: u32,
        costs: &mut Vec<Cost>,
    ) {
        costs.clear();
        costs.push(Cost::NONE);
        if search.nodes_are_alike() {
            let count = search.counts.of(leaf);
            let cost = |nodes| Cost::left(count - nodes).plus(self.leaf_cost(search, domain, leaf, nodes));
            costs.extend((1..=most).map(cost));
            return;
        }
        self.read(search, leaf, most);
        if !self.required.is_empty() {
            costs[0] = Cost::IMPOSSIBLE;
        }
        costs.extend((1..=most).map(|nodes| self.best(search, domain, leaf, nodes).0));
    }

    /// Adds the best so many nodes of a leaf to a set.
    pub fn take(
        &mut self,
        search: &Search,
        domain: SwitchId,
        leaf: SwitchId,
        nodes: u32,
        into: &mut NodeSet,
    ) {
        if nodes == 0 {
            return;
        }
        if search.nodes_are_alike() {
            let on_leaf =
                search.fabric.nodes_under(leaf).iter().filter(|&&node| search.usable.contains(node));
            on_leaf.take(nodes as usize).for_each(|&node| into.insert(node));
            return;
        }
        self.read(search, leaf, nodes);
        let (_, idle) = self.best(search, domain, leaf, nodes);
        let shared = (nodes as usize).saturating_sub(self.required.len() + idle);
        self.required.iter().for_each(|&node| into.insert(node));
        let others = self.idle.iter().take(idle).chain(self.shared.iter().take(shared));
        others.for_each(|&(_, node)| into.insert(node));
    }

    /// Reads as much of a leaf as it takes to choose up to `most` of its nodes.
    fn read(&mut self, search: &Search, leaf: SwitchId, most: u32) {
        let Self { required, base, idle, shared, slot_costs } = self;
        required.clear();
        idle.clear();
        shared.clear();
        *base = (Cost::NONE, 0);
        let one_is_enough = most == 1 && search.request.required.is_none() && !search.ledger.has_reluctance();
        let mut seen = Seen::default();
        for &node in search.fabric.nodes_under(leaf).iter().filter(|&&node| search.usable.contains(node)) {
            let slots = search.ledger.slots(node);
            let is_idle = !search.shares_nodes || search.ledger.idle().contains(node);
            if one_is_enough && seen.before(slots, is_idle) {
                continue;
            }
            let mut cost = if search.shares_nodes { slot_costs.of(search, slots) } else { Cost::NONE };
            if search.ledger.has_reluctance() {
                cost = cost.plus(Cost::reluctance(search.ledger.reluctance(node)));
            }
            if search.request.required.as_ref().is_some_and(|required| required.contains(node)) {
                required.push(node);
                *base = (base.0.plus(cost), base.1 + u32::from(is_idle));
                continue;
            }
            let kind = if is_idle { &mut *idle } else { &mut *shared };
            match kind.first_mut() {
                // Only the cheapest counts, and among equals the first in fabric order.
                Some(cheapest) if most == 1 => {
                    if cost < cheapest.0 {
                        *cheapest = (cost, node);
                    }
                }
                _ => kind.push((cost, node)),
            }
        }
        if most > 1 {
            // Stable: among equals the first in fabric order stays first.
            idle.sort_by_key(|&(cost, _)| cost);
            shared.sort_by_key(|&(cost, _)| cost);
        }
    }

    /// The least cost of so many nodes, and how many idle ones, besides the required, that takes.
    fn best(&self, search: &Search, domain: SwitchId, leaf: SwitchId, nodes: u32) -> (Cost, usize) {
        let Some(others) = (nodes as usize).checked_sub(self.required.len()) else {
            return (Cost::IMPOSSIBLE, 0);
        };
        let fewest = others.saturating_sub(self.shared.len());
        let most = others.min(self.idle.len());
        let sum = |from: &[(Cost, NodeId)]| from.iter().fold(Cost::NONE, |sum, &(cost, _)| sum.plus(cost));
        let left = if search.shares_nodes { 0 } else { search.counts.of(leaf) - nodes };
        let cost = |idle: usize| {
            let holes = self.leaf_cost(search, domain, leaf, self.base.1 + idle as u32);
            let nodes = sum(&self.idle[..idle]).plus(sum(&self.shared[..others - idle]));
            self.base.0.plus(nodes).plus(holes).plus(Cost::left(left))
        };
        (fewest..=most).map(|idle| (cost(idle), idle)).min().unwrap_or((Cost::IMPOSSIBLE, 0))
    }

    /// What touching a leaf and taking so many of its idle nodes costs, whichever they are. Above the leaf, what a gang
    /// that shares its nodes costs is counted only where all of it lies on the leaf.
    fn leaf_cost(&self, search: &Search, domain: SwitchId, leaf: SwitchId, idle: u32) -> Cost {
        if idle == 0 {
            return Cost::switch(0);
        }
        let here = Cost::hole(search.holes.of(0, search.idle.of(leaf), idle)).plus(Cost::switch(0));
        if search.shares_nodes && leaf == domain { here.plus(search.cost_above(leaf, idle)) } else { here }
    }
}

fn slot_cost(search: &Search, slots: Slots) -> Cost {
    let taken = search.taken(slots);
    let hole = Cost::hole(search.holes.of_slots(slots.all, slots.free, taken));
    hole.plus(Cost::left(slots.free.saturating_sub(taken)))
}

/// How many leaves under a domain a set of nodes touches.
pub fn touched(search: &Search, domain: SwitchId, nodes: &NodeSet) -> u32 {
    leaves(search.fabric, domain).filter(|&leaf| search.fabric.count_on_leaf(leaf, nodes) > 0).count() as u32
}
