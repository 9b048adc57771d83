//! Gangs that are too large for the dynamic programme: the fullest leaves first.
//!
//! That still gives the fewest leaves (within whole segments: the fewest parts, then the fewest leaves in each), but no
//! longer the least hole cost.

use super::candidates::{leaves, most_nodes, parts};
use super::leaf::{Leaf, touched};
use super::search::Search;
use crate::fabric::tree::{Level, SwitchId};
use crate::nodeset::NodeSet;

/// Puts the nodes of a gang into an empty set; false if the usable nodes do not suffice.
pub fn choose(search: &Search, domain: SwitchId, into: &mut NodeSet) -> bool {
    let request = search.request;
    let on_leaves = |leaves| most_nodes(search.fabric, search.counts, domain, leaves);
    let most =
        search.counts.of(domain).min(request.nodes).min(request.max_leaves.map_or(u32::MAX, on_leaves));
    let segments = request.segment.zip(search.home.segment_level);
    let segments = segments.filter(|&(_, level)| search.fabric.switch(domain).level > level);
    let chosen = |nodes: u32| match segments {
        Some((size, level)) => deal(search, domain, size, level, nodes),
        None => Some(vec![(domain, nodes)]),
    };
    // An elastic gang takes what it can get; each try is cheap beside the placement itself.
    let Some(dealt) = (request.at_least..=most).rev().find_map(chosen) else { return false };
    let filled = dealt.iter().all(|&(part, nodes)| fill(search, domain, part, nodes, into));
    filled && request.max_leaves.is_none_or(|most| touched(search, domain, into) <= most)
}

/// Deals whole segments to the parts that have room for the most of them, and the last, shorter one to the tightest.
fn deal(
    search: &Search,
    domain: SwitchId,
    size: u32,
    level: Level,
    nodes: u32,
) -> Option<Vec<(SwitchId, u32)>> {
    let last = nodes % size;
    let mut open: Vec<(SwitchId, u32, u32)> = parts(search.fabric, domain, level)
        .map(|part| (part, search.counts.of(part), required_under(search, part).div_ceil(size) * size))
        .collect();
    let mut rest = (nodes - last).checked_sub(open.iter().map(|part| part.2).sum())?;
    open.sort_by_key(|&(part, count, given)| (std::cmp::Reverse(count.saturating_sub(given) / size), part));
    for (_, count, given) in &mut open {
        let more = (count.checked_sub(*given)? / size * size).min(rest);
        (*given, rest) = (*given + more, rest - more);
    }
    if last > 0 {
        let spare = |&(_, count, given): &(SwitchId, u32, u32)| count - given;
        let with_room = open.iter_mut().filter(|part| spare(part) >= last);
        let (.., given) = with_room.min_by_key(|part| (part.2 == 0, spare(part), part.0))?;
        *given += last;
    }
    let dealt = open.into_iter().filter(|&(.., given)| given > 0).map(|(part, _, given)| (part, given));
    (rest == 0).then(|| dealt.collect())
}

/// Takes so many nodes under a switch: from the leaves that required nodes touch, then the fullest, then the emptiest
/// that can give the rest.
fn fill(search: &Search, domain: SwitchId, part: SwitchId, nodes: u32, into: &mut NodeSet) -> bool {
    let mut open: Vec<(u32, u32, SwitchId)> = leaves(search.fabric, part)
        .filter(|&leaf| search.counts.of(leaf) > 0)
        .map(|leaf| (required_under(search, leaf), search.counts.of(leaf), leaf))
        .collect();
    // What every touched leaf must give is set apart first; then whole leaves are filled up.
    let Some(mut rest) = nodes.checked_sub(open.iter().map(|leaf| leaf.0).sum()) else { return false };
    open.sort_unstable_by_key(|&(required, count, leaf)| (required == 0, std::cmp::Reverse(count), leaf));
    let mut taker = Leaf::default();
    while !open.is_empty() && (rest > 0 || open[0].0 > 0) {
        let last = open.iter().enumerate().filter(|(_, leaf)| leaf.0 == 0 && leaf.1 >= rest);
        let last = last.min_by_key(|(_, leaf)| (leaf.1, leaf.2)).map(|(i, _)| i);
        let next = if open[0].0 > 0 { 0 } else { last.unwrap_or(0) };
        let (required, count, leaf) = open.remove(next);
        let more = rest.min(count - required);
        taker.take(search, domain, leaf, required + more, into);
        rest -= more;
    }
    rest == 0
}

/// How many required nodes lie under a switch.
fn required_under(search: &Search, id: SwitchId) -> u32 {
    let Some(required) = &search.request.required else { return 0 };
    search.fabric.nodes_under(id).iter().filter(|&&node| required.contains(node)).count() as u32
}
