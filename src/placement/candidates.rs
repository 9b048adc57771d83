//! Which domains could hold a gang: the nodes of a set under each switch.
//!
//! One pass over the set counts the leaves, one pass over the switches adds them up. So "it cannot fit" costs little more
//! than a look at each switch.

use crate::fabric::tree::{Fabric, Level, SwitchId};
use crate::nodeset::NodeSet;
use crate::request::Request;
use std::ops::Range;

/// How many nodes of a set lie under each switch.
#[derive(Debug, Default)]
pub struct Counts {
    under: Vec<u32>,
}

impl Counts {
    /// Counts a set, without allocating once warm.
    pub fn count(&mut self, fabric: &Fabric, set: &NodeSet) {
        self.under.clear();
        self.under.resize(fabric.switch_count(), 0);
        for &leaf in fabric.at_level(0) {
            self.under[leaf.0 as usize] = fabric.count_on_leaf(leaf, set);
        }
        // A switch's number is higher than its parent's, so each is complete before it is added to the one above.
        for (id, switch) in fabric.switches().rev() {
            if let Some(parent) = switch.parent {
                self.under[parent.0 as usize] += self.under[id.0 as usize];
            }
        }
    }

    /// How many nodes of the set lie under a switch.
    pub fn of(&self, switch: SwitchId) -> u32 {
        self.under[switch.0 as usize]
    }
}

/// Where a gang is contiguous: the domains of its home level that could hold it when empty and healthy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Home {
    /// The home level.
    pub level: Level,
    /// The domains, in fabric order.
    pub domains: Vec<SwitchId>,
    /// The level whose domains hold one segment each, if the gang has segments: the lowest that could.
    pub segment_level: Option<Level>,
}

/// The lowest level from a given one on with a domain that could hold the gang with these nodes; none if no level has one.
///
/// `serves` has the last word on a domain that passes by counting.
pub fn home(
    fabric: &Fabric,
    eligible: &NodeSet,
    counts: &Counts,
    request: &Request,
    lowest: Level,
    segment_level: Option<Level>,
    mut serves: impl FnMut(SwitchId) -> bool,
) -> Option<Home> {
    (lowest..fabric.level_count() as Level).find_map(|level| {
        let mut domains = fabric.at_level(level).to_vec();
        domains.retain(|&domain| {
            holds(fabric, eligible, counts, segment_level, domain, request, request.nodes) && serves(domain)
        });
        (!domains.is_empty()).then_some(Home { level, domains, segment_level })
    })
}

/// The lowest level with a domain that could hold one segment; none without segments, or if no domain could.
pub fn segment_level(fabric: &Fabric, counts: &Counts, request: &Request) -> Option<Level> {
    let segment = request.segment.filter(|&segment| segment > 0 && segment < request.nodes)?;
    let holds = |&level: &Level| fabric.at_level(level).iter().any(|&id| counts.of(id) >= segment);
    (0..fabric.level_count() as Level).find(holds)
}

/// Whether a domain could hold so many nodes of a gang on the counted nodes: exact unless several wishes meet.
pub fn holds(
    fabric: &Fabric,
    set: &NodeSet,
    counts: &Counts,
    segment_level: Option<Level>,
    domain: SwitchId,
    request: &Request,
    nodes: u32,
) -> bool {
    if counts.of(domain) < nodes {
        return false;
    }
    let span = &fabric.switch(domain).span;
    let has_required = || {
        let under = |node| {
            fabric.position(node).is_some_and(|position| span.contains(&position)) && set.contains(node)
        };
        request.required.as_ref().is_none_or(|required| required.iter().all(under))
    };
    let has_segments = || match (segment_level, request.segment) {
        (Some(level), Some(segment)) if fabric.switch(domain).level > level => {
            let under = parts(fabric, domain, level).map(|part| counts.of(part));
            let (whole, last) = (nodes / segment, nodes % segment);
            let spare = under.clone().map(|count| count % segment).max().unwrap_or(0);
            let room: u32 = under.map(|count| count / segment).sum();
            room > whole || room == whole && spare >= last
        }
        _ => true,
    };
    let in_a_row = || {
        !request.strictly_contiguous || runs(fabric, set, span.clone()).any(|run| run.len() >= nodes as usize)
    };
    let few_leaves =
        || request.max_leaves.is_none_or(|most| most_nodes(fabric, counts, domain, most) >= nodes);
    has_required() && has_segments() && in_a_row() && few_leaves()
}

/// The unbroken runs of positions whose nodes are all in the set, inside a range.
pub fn runs<'a>(
    fabric: &'a Fabric,
    set: &'a NodeSet,
    span: Range<u32>,
) -> impl Iterator<Item = Range<u32>> + 'a {
    let is_in = |position: &u32| set.contains(fabric.order()[*position as usize]);
    let mut next = span.start;
    std::iter::from_fn(move || {
        let start = (next..span.end).find(is_in)?;
        next = (start..span.end).find(|position| !is_in(position)).unwrap_or(span.end);
        Some(start..next)
    })
}

/// The switches of a domain, itself first, in the order of their numbers.
pub fn subtree(
    fabric: &Fabric,
    domain: SwitchId,
) -> impl DoubleEndedIterator<Item = SwitchId> + Clone + use<> {
    let end = fabric.switch(domain).span.end;
    let next_to = (domain.0 + 1..fabric.switch_count() as u32)
        .find(|&id| fabric.switch(SwitchId(id)).span.start >= end)
        .unwrap_or(fabric.switch_count() as u32);
    (domain.0..next_to).map(SwitchId)
}

/// The leaves under a switch, in fabric order.
pub fn leaves(fabric: &Fabric, domain: SwitchId) -> impl Iterator<Item = SwitchId> + Clone + '_ {
    subtree(fabric, domain).filter(|&id| fabric.switch(id).is_leaf())
}

/// Whether a switch is a part that holds whole segments: the highest on its path whose level is not above the given one.
pub fn is_part(fabric: &Fabric, id: SwitchId, level: Level) -> bool {
    let switch = fabric.switch(id);
    let is_below = |parent: SwitchId| fabric.switch(parent).level > level;
    switch.level <= level && switch.parent.is_none_or(is_below)
}

/// The parts of a domain that hold whole segments.
pub fn parts(fabric: &Fabric, domain: SwitchId, level: Level) -> impl Iterator<Item = SwitchId> + Clone + '_ {
    subtree(fabric, domain).filter(move |&id| is_part(fabric, id, level))
}

/// The fewest leaves of a domain whose counted nodes add up to so many: the fullest ones. All of them if even those do
/// not suffice. `buffer` is room to work in.
pub fn fewest_leaves(
    fabric: &Fabric,
    counts: &Counts,
    domain: SwitchId,
    nodes: u32,
    buffer: &mut Vec<u32>,
) -> u32 {
    if fabric.switch(domain).is_leaf() {
        return 1;
    }
    buffer.clear();
    buffer.extend(leaves(fabric, domain).map(|leaf| counts.of(leaf)));
    fewest(buffer, nodes)
}

/// How many of these sizes, the largest first, it takes to hold so many nodes; all of them if even those do not suffice.
pub fn fewest(sizes: &mut [u32], nodes: u32) -> u32 {
    sizes.sort_unstable_by_key(|&size| std::cmp::Reverse(size));
    let mut rest = nodes;
    let needed = sizes.iter().take_while(|&&size| {
        let more = rest > 0;
        rest = rest.saturating_sub(size);
        more
    });
    needed.count() as u32
}

/// The most counted nodes of a domain on so many leaves.
pub fn most_nodes(fabric: &Fabric, counts: &Counts, domain: SwitchId, leaves_at_most: u32) -> u32 {
    let mut by_size: Vec<u32> = leaves(fabric, domain).map(|leaf| counts.of(leaf)).collect();
    by_size.sort_unstable_by_key(|&count| std::cmp::Reverse(count));
    by_size.iter().take(leaves_at_most as usize).sum()
}
