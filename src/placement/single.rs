//! Jobs that take a part of one node: by far the most decisions, and each may fall on any node.
//!
//! What [`super::leaf`] and [`super::choice`] find for them, found in one pass over the nodes: among nodes in use what is
//! left on the node decides, whatever its leaf; of the idle ones of a leaf, which the gangs to come would rather have
//! whole, the first is as good as any.

use super::cost::Cost;
use super::leaf::SlotCosts;
use super::search::Search;
use crate::fabric::tree::SwitchId;
use crate::nodeset::NodeId;

/// What a node is worth; the best is the least: its cost, the usable nodes of its leaf, the leaf, whether it is idle, and
/// its position.
type Worth = (Cost, u32, SwitchId, bool, u32);

/// Whether a gang is such a job, with no wish that needs more than this.
pub fn applies(search: &Search) -> bool {
    let request = search.request;
    search.shares_nodes
        && request.nodes == 1
        && request.required.is_none()
        && search.home.level == 0
        && !search.ledger.has_reluctance()
}

/// The best node and its leaf; none if none is usable.
pub fn best(search: &Search, costs: &mut SlotCosts) -> Option<(NodeId, SwitchId)> {
    let Search { fabric, ledger, usable, counts, .. } = *search;
    let mut best: Option<(Worth, NodeId)> = None;
    let consider = |best: &mut Option<(Worth, NodeId)>, node, cost, leaf, is_idle| {
        if best.is_some_and(|(worth, _)| cost > worth.0) {
            return;
        }
        let Some(position) = fabric.position(node) else { return };
        let worth = (cost, counts.of(leaf), leaf, is_idle, position);
        if best.is_none_or(|(least, _)| worth < least) {
            *best = Some((worth, node));
        }
    };
    for (word, (&usable, &idle)) in (0..).zip(usable.words().iter().zip(ledger.idle().words())) {
        let mut in_use = usable & !idle;
        while in_use != 0 {
            let node = word * 64 + in_use.trailing_zeros();
            in_use &= in_use - 1;
            if let Some(leaf) = fabric.leaf_of(node) {
                let cost = costs.of(search, ledger.slots(node)).plus(Cost::leaves(1));
                consider(&mut best, node, cost, leaf, false);
            }
        }
    }
    for &leaf in fabric.at_level(0) {
        let idle = search.idle.of(leaf);
        if idle == 0 {
            continue;
        }
        let taken =
            Cost::hole(search.holes.of(0, idle, 1)).plus(search.cost_above(leaf, 1)).plus(Cost::leaves(1));
        if best.is_some_and(|(worth, _)| taken > worth.0) {
            // Breaking into the leaf costs more already than a node that is in use.
            continue;
        }
        let is_idle = |&&node: &&NodeId| usable.contains(node) && ledger.idle().contains(node);
        let mut alike = None;
        for &node in fabric.nodes_under(leaf).iter().filter(is_idle) {
            let slots = ledger.slots(node);
            if alike.replace(slots) != Some(slots) {
                consider(&mut best, node, costs.of(search, slots).plus(taken), leaf, true);
            }
        }
    }
    best.map(|((_, _, leaf, ..), node)| (node, leaf))
}
