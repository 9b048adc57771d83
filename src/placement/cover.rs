//! Which nodes of one domain: the fewest leaves, then the tightest fit.
//!
//! Required nodes come first, then the fullest leaves, until one leaf can give the rest; that last one is the emptiest
//! that can. Taking the fullest leaves first is what makes their number the fewest.

use super::candidates::{self, Counts};
use super::verdict::Placement;
use crate::fabric::tree::{Fabric, SwitchId};
use crate::nodeset::{NodeId, NodeSet};
use crate::request::Request;

/// Chooses a gang's nodes among the usable ones of a domain; none if they do not suffice.
///
/// `counts` must be the counts of `usable`.
pub fn choose(
    fabric: &Fabric,
    counts: &Counts,
    usable: &NodeSet,
    domain: SwitchId,
    request: &Request,
) -> Option<Placement> {
    let nodes = if request.strictly_contiguous {
        unbroken_run(fabric, counts, domain, request)
    } else {
        fewest_leaves(fabric, counts, usable, domain, request)
    }?;
    if request.required.as_ref().is_some_and(|required| !required.is_subset(&nodes)) {
        return None;
    }
    Some(Placement::new(fabric, domain, nodes))
}

fn fewest_leaves(
    fabric: &Fabric,
    counts: &Counts,
    usable: &NodeSet,
    domain: SwitchId,
    request: &Request,
) -> Option<NodeSet> {
    let mut chosen = NodeSet::new(usable.size());
    let mut rest = request.nodes as usize;
    if let Some(required) = &request.required {
        if !required.is_subset(usable) || required.count() > rest {
            return None;
        }
        chosen.copy_from(required);
        rest -= required.count();
    }
    let is_open = |node: &NodeId| usable.contains(*node) && !chosen.contains(*node);
    // A leaf that the required nodes touch is paid for already, so it gives all it has before another one is opened.
    let mut leaves: Vec<(bool, usize, SwitchId)> = candidates::leaves(fabric, domain)
        .filter(|&leaf| counts.of(fabric, leaf) > 0)
        .map(|leaf| {
            let nodes = fabric.nodes_under(leaf);
            let touched = nodes.iter().any(|&node| chosen.contains(node));
            (touched, nodes.iter().filter(|node| is_open(node)).count(), leaf)
        })
        .collect();
    let mut opened = Vec::new();
    while rest > 0 {
        let touched = leaves.iter().position(|&(touched, ..)| touched);
        let last = || {
            leaves
                .iter()
                .enumerate()
                .filter(|(_, leaf)| leaf.1 >= rest)
                .min_by_key(|(_, leaf)| (leaf.1, leaf.2))
        };
        let fullest =
            || leaves.iter().enumerate().max_by_key(|(_, leaf)| (leaf.1, std::cmp::Reverse(leaf.2)));
        let next = touched.or_else(|| last().or_else(fullest).map(|(i, _)| i))?;
        let (_, open, leaf) = leaves.remove(next);
        opened.push((leaf, open.min(rest)));
        rest -= open.min(rest);
    }
    for (leaf, take) in opened {
        let open: Vec<NodeId> =
            fabric.nodes_under(leaf).iter().copied().filter(is_open_in(usable, &chosen)).take(take).collect();
        open.into_iter().for_each(|node| chosen.insert(node));
    }
    Some(chosen)
}

fn is_open_in<'a>(usable: &'a NodeSet, chosen: &'a NodeSet) -> impl Fn(&NodeId) -> bool + 'a {
    move |node| usable.contains(*node) && !chosen.contains(*node)
}

/// The window of consecutive positions with the fewest leaves, in the shortest run, at the lowest position.
fn unbroken_run(fabric: &Fabric, counts: &Counts, domain: SwitchId, request: &Request) -> Option<NodeSet> {
    let size = request.nodes as usize;
    let leaf_at = |position: u32| fabric.leaf_of(fabric.order()[position as usize]);
    let windows = counts.runs(fabric.switch(domain).span.clone()).flat_map(|run| {
        let starts = run.start..(run.end + 1).saturating_sub(request.nodes).max(run.start);
        starts.map(move |start| (run.len(), start))
    });
    let (_, _, start) = windows
        .filter_map(|(run, start)| {
            let window = &fabric.order()[start as usize..start as usize + size];
            let holds = |required: &NodeSet| required.iter().all(|node| window.contains(&node));
            if !request.required.as_ref().is_none_or(holds) {
                return None;
            }
            let mut leaves = 1;
            for position in start + 1..start + request.nodes {
                leaves += u32::from(leaf_at(position) != leaf_at(position - 1));
            }
            Some((leaves, run, start))
        })
        .min()?;
    let window = &fabric.order()[start as usize..start as usize + size];
    Some(NodeSet::from_nodes(fabric.node_count(), window.iter().copied()))
}
