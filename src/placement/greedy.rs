//! Choices that need no tables: one run of positions, and the fullest leaves first for gangs that are too large for the
//! dynamic programme.

use super::candidates::{Counts, leaves, runs};
use super::cover::{required_under, take};
use crate::fabric::tree::{Fabric, SwitchId};
use crate::nodeset::NodeSet;
use crate::request::Request;

/// The fewest leaves: those that required nodes touch, then the fullest, then the emptiest that can give the rest.
///
/// None if the usable nodes do not suffice.
pub fn fullest_leaves(
    fabric: &Fabric,
    counts: &Counts,
    usable: &NodeSet,
    domain: SwitchId,
    request: &Request,
) -> Option<NodeSet> {
    let mut open: Vec<(u32, u32, SwitchId)> = leaves(fabric, domain)
        .filter(|&leaf| counts.of(leaf) > 0)
        .map(|leaf| (required_under(fabric, leaf, request), counts.of(leaf), leaf))
        .collect();
    // What every touched leaf must give is set apart first; then whole leaves are filled up.
    let mut rest = request.nodes.checked_sub(open.iter().map(|leaf| leaf.0).sum())?;
    let mut nodes = NodeSet::new(usable.size());
    open.sort_unstable_by_key(|&(required, count, leaf)| (required == 0, std::cmp::Reverse(count), leaf));
    while !open.is_empty() && (rest > 0 || open[0].0 > 0) {
        let last = open.iter().enumerate().filter(|(_, leaf)| leaf.0 == 0 && leaf.1 >= rest);
        let last = last.min_by_key(|(_, leaf)| (leaf.1, leaf.2)).map(|(i, _)| i);
        let next = if open[0].0 > 0 { 0 } else { last.unwrap_or(0) };
        let (required, count, leaf) = open.remove(next);
        let more = rest.min(count - required);
        take(fabric, usable, leaf, required + more, request, &mut nodes);
        rest -= more;
    }
    (rest == 0).then_some(nodes)
}

/// The window of consecutive positions with the fewest leaves, in the shortest run, at the lowest position.
pub fn unbroken_run(
    fabric: &Fabric,
    usable: &NodeSet,
    domain: SwitchId,
    request: &Request,
) -> Option<NodeSet> {
    let size = request.nodes;
    let window = |start: u32| &fabric.order()[start as usize..(start + size) as usize];
    let windows = runs(fabric, usable, fabric.switch(domain).span.clone())
        .filter(|run| run.len() >= size as usize)
        .flat_map(|run| (run.start..=run.end - size).map(move |start| (run.len(), start)));
    let leaves = |start: u32| window(start).chunk_by(|&a, &b| fabric.leaf_of(a) == fabric.leaf_of(b)).count();
    let has_required = |start: u32| {
        request
            .required
            .as_ref()
            .is_none_or(|required| required.iter().all(|node| window(start).contains(&node)))
    };
    let best = windows
        .filter(|&(_, start)| has_required(start))
        .map(|(run, start)| (leaves(start), run, start))
        .min();
    let (.., start) = best?;
    Some(NodeSet::from_nodes(fabric.node_count(), window(start).iter().copied()))
}
