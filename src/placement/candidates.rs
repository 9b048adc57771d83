//! Which domains could hold a gang: the nodes of a set under each switch.
//!
//! One pass over the set counts the leaves, one pass over the switches adds them up. On a busy machine the set is small,
//! so "it cannot fit" costs little more than a look at each switch.

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
        for leaf in set.iter().filter_map(|node| fabric.leaf_of(node)) {
            self.under[leaf.0 as usize] += 1;
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    /// The home level.
    pub level: Level,
    /// The domains, in fabric order.
    pub domains: Vec<SwitchId>,
}

/// The lowest level with a domain that could hold the gang with these nodes; none if no level has one.
pub fn home(fabric: &Fabric, eligible: &NodeSet, counts: &Counts, request: &Request) -> Option<Home> {
    (0..fabric.level_count() as Level).find_map(|level| {
        let domains = fabric.at_level(level).iter().copied();
        let domains: Vec<_> =
            domains.filter(|&domain| holds(fabric, eligible, counts, domain, request)).collect();
        (!domains.is_empty()).then_some(Home { level, domains })
    })
}

/// Whether a domain could hold the gang with the counted nodes.
pub fn holds(fabric: &Fabric, set: &NodeSet, counts: &Counts, domain: SwitchId, request: &Request) -> bool {
    if counts.of(domain) < request.nodes {
        return false;
    }
    let span = &fabric.switch(domain).span;
    let has_required = request.required.as_ref().is_none_or(|required| {
        required.iter().all(|node| fabric.position(node).is_some_and(|position| span.contains(&position)))
    });
    let in_a_row = || runs(fabric, set, span.clone()).any(|run| run.len() >= request.nodes as usize);
    has_required && (!request.strictly_contiguous || in_a_row())
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
pub fn leaves(fabric: &Fabric, domain: SwitchId) -> impl Iterator<Item = SwitchId> + '_ {
    subtree(fabric, domain).filter(|&id| fabric.switch(id).is_leaf())
}

/// The fewest leaves of a domain whose counted nodes add up to a gang: the fullest ones. All of them if even those do
/// not suffice.
pub fn fewest_leaves(fabric: &Fabric, counts: &Counts, domain: SwitchId, nodes: u32) -> u32 {
    if fabric.switch(domain).is_leaf() {
        return 1;
    }
    let mut by_size: Vec<u32> = leaves(fabric, domain).map(|leaf| counts.of(leaf)).collect();
    by_size.sort_unstable_by_key(|&count| std::cmp::Reverse(count));
    let mut rest = nodes;
    let needed = by_size.iter().take_while(|&&count| {
        let more = rest > 0;
        rest = rest.saturating_sub(count);
        more
    });
    needed.count() as u32
}
