//! Strictly contiguous gangs: one window of consecutive fabric positions.
//!
//! The largest window that may be (of an elastic gang), with the fewest leaves, in the shortest free run, of the most
//! gladly given nodes, at the lowest position.

use super::candidates::runs;
use super::cost::Cost;
use super::search::Search;
use crate::fabric::tree::SwitchId;
use crate::nodeset::{NodeId, NodeSet};

/// What the best window under a domain costs (leaves and reluctance), and its nodes; none if there is no window.
pub fn best<'a>(search: &Search<'a>, domain: SwitchId) -> Option<(Cost, &'a [NodeId])> {
    let request = search.request;
    (request.at_least.max(1)..=request.nodes).rev().find_map(|size| best_of_size(search, domain, size))
}

/// Puts the nodes of the best window under a domain into an empty set; false if there is none.
pub fn choose(search: &Search, domain: SwitchId, into: &mut NodeSet) -> bool {
    let best = best(search, domain);
    best.into_iter().flat_map(|(_, window)| window).for_each(|&node| into.insert(node));
    best.is_some()
}

fn best_of_size<'a>(search: &Search<'a>, domain: SwitchId, size: u32) -> Option<(Cost, &'a [NodeId])> {
    let fabric = search.fabric;
    let window = |start: u32| &fabric.order()[start as usize..(start + size) as usize];
    let leaves = |start: u32| window(start).chunk_by(|&a, &b| fabric.leaf_of(a) == fabric.leaf_of(b)).count();
    let reluctance = |start: u32| match search.ledger.has_reluctance() {
        true => window(start)
            .iter()
            .fold(Cost::NONE, |sum, &node| sum.plus(Cost::reluctance(search.ledger.reluctance(node)))),
        false => Cost::NONE,
    };
    runs(fabric, search.usable, fabric.switch(domain).span.clone())
        .filter(|run| run.len() >= size as usize)
        .flat_map(|run| (run.start..=run.end - size).map(move |start| (run.len(), start)))
        .filter(|&(_, start)| serves(search, domain, window(start), leaves(start)))
        .map(|(run, start)| (leaves(start), run, reluctance(start), start))
        .min()
        .map(|(leaves, _, reluctance, start)| (Cost::leaves(leaves as u32).plus(reluctance), window(start)))
}

/// Whether a window has what is required, on no more leaves than allowed, with its segments whole.
fn serves(search: &Search, domain: SwitchId, window: &[NodeId], leaves: usize) -> bool {
    let request = search.request;
    let has_required =
        request.required.as_ref().is_none_or(|required| required.iter().all(|node| window.contains(&node)));
    let few_leaves = request.max_leaves.is_none_or(|most| leaves <= most as usize);
    has_required && few_leaves && segments_are_whole(search, domain, window)
}

fn segments_are_whole(search: &Search, domain: SwitchId, window: &[NodeId]) -> bool {
    let (Some(size), Some(level)) = (search.request.segment, search.home.segment_level) else { return true };
    let fabric = search.fabric;
    if fabric.switch(domain).level <= level {
        return true;
    }
    let alike = |&a: &NodeId, &b: &NodeId| fabric.domain_of(a, level) == fabric.domain_of(b, level);
    let parts = window.chunk_by(alike).map(<[NodeId]>::len);
    let broken = parts.map(|nodes| nodes as u32 % size).filter(|&rest| rest > 0);
    let last = search.request.nodes % size;
    broken.clone().count() <= 1 && broken.into_iter().all(|rest| rest == last)
}
