//! Which domains could hold a gang: counts over intervals.
//!
//! A domain is an interval of fabric positions, so one pass of prefix sums over a set of nodes gives the count under
//! every switch by one subtraction. "It cannot fit" costs that pass and nothing more.

use crate::fabric::tree::{Fabric, Level, SwitchId};
use crate::nodeset::NodeSet;
use crate::request::Request;
use std::ops::Range;

/// How many nodes of a set lie under each switch, and in unbroken runs.
#[derive(Debug, Default)]
pub struct Counts {
    /// `before[p]`: how many nodes of the set have a position below `p`.
    before: Vec<u32>,
}

impl Counts {
    /// Counts a set, in one pass over the fabric's positions.
    pub fn count(&mut self, fabric: &Fabric, set: &NodeSet) {
        self.before.clear();
        self.before.push(0);
        let mut count = 0;
        self.before.extend(fabric.order().iter().map(|&node| {
            count += u32::from(set.contains(node));
            count
        }));
    }

    /// How many nodes of the set lie under a switch.
    pub fn of(&self, fabric: &Fabric, switch: SwitchId) -> u32 {
        self.within(&fabric.switch(switch).span)
    }

    /// How many nodes of the set lie in a range of positions.
    pub fn within(&self, span: &Range<u32>) -> u32 {
        self.before[span.end as usize] - self.before[span.start as usize]
    }

    /// The unbroken runs of positions whose nodes are all in the set, inside a range.
    pub fn runs(&self, span: Range<u32>) -> impl Iterator<Item = Range<u32>> + '_ {
        let mut next = span.start;
        std::iter::from_fn(move || {
            let start = (next..span.end).find(|p| self.within(&(*p..*p + 1)) == 1)?;
            next = (start..span.end).find(|p| self.within(&(*p..*p + 1)) == 0).unwrap_or(span.end);
            Some(start..next)
        })
    }

    /// Whether a domain could hold the gang with the counted nodes.
    fn holds(&self, fabric: &Fabric, domain: SwitchId, request: &Request) -> bool {
        if self.of(fabric, domain) < request.nodes || !holds_required(fabric, domain, request) {
            return false;
        }
        let span = fabric.switch(domain).span.clone();
        !request.strictly_contiguous || self.runs(span).any(|run| run.len() >= request.nodes as usize)
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

/// The lowest level with a domain that could hold the gang with the counted nodes; none if no level has one.
pub fn home(fabric: &Fabric, eligible: &Counts, request: &Request) -> Option<Home> {
    (0..fabric.level_count() as Level).find_map(|level| {
        let domains: Vec<_> = fabric
            .at_level(level)
            .iter()
            .copied()
            .filter(|&domain| eligible.holds(fabric, domain, request))
            .collect();
        (!domains.is_empty()).then_some(Home { level, domains })
    })
}

/// The domains of the home level that can hold the gang now, with the fewest leaves each needs and its usable nodes.
pub fn fitting(
    fabric: &Fabric,
    usable: &Counts,
    home: &Home,
    request: &Request,
) -> Vec<(u32, u32, SwitchId)> {
    let holds = |domain: &SwitchId| usable.holds(fabric, *domain, request);
    let domains = home.domains.iter().copied().filter(holds);
    domains
        .map(|domain| {
            (fewest_leaves(fabric, usable, domain, request.nodes), usable.of(fabric, domain), domain)
        })
        .collect()
}

/// The leaves under a switch, in fabric order.
pub fn leaves(fabric: &Fabric, domain: SwitchId) -> impl Iterator<Item = SwitchId> + '_ {
    let end = fabric.switch(domain).span.end;
    (domain.0..fabric.switch_count() as u32)
        .map(SwitchId)
        .take_while(move |&id| fabric.switch(id).span.start < end)
        .filter(|&id| fabric.switch(id).is_leaf())
}

/// The fewest leaves of a domain whose counted nodes add up to a gang: the fullest ones. All of them if even those do
/// not suffice.
pub fn fewest_leaves(fabric: &Fabric, counts: &Counts, domain: SwitchId, nodes: u32) -> u32 {
    let mut by_size: Vec<u32> = leaves(fabric, domain).map(|leaf| counts.of(fabric, leaf)).collect();
    by_size.sort_unstable_by_key(|&count| std::cmp::Reverse(count));
    let mut rest = nodes;
    let needed = by_size.iter().take_while(|&&count| {
        let more = rest > 0;
        rest = rest.saturating_sub(count);
        more
    });
    needed.count() as u32
}

fn holds_required(fabric: &Fabric, domain: SwitchId, request: &Request) -> bool {
    let span = &fabric.switch(domain).span;
    request.required.as_ref().is_none_or(|required| {
        required.iter().all(|node| fabric.position(node).is_some_and(|p| span.contains(&p)))
    })
}
