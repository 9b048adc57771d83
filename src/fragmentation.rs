//! How well a machine is used: are its gangs together, and is there room for the next ones.
//!
//! The **spread index** tells how much of the running gangs lies outside one domain of their home level (0: none). The
//! **fragmentation index** of a level tells how many gangs of the mix the free nodes could take if they were ideally
//! placed, and cannot as they are (0: none; 1: all).

use crate::fabric::tree::{Fabric, Level, SwitchId};
use crate::nodeset::{NodeId, NodeSet};
use crate::placement::candidates::Counts;
use crate::placement::mix::Mix;

/// The lowest level with a domain of at least so many nodes; none if there is no such domain.
pub fn home_level(fabric: &Fabric, nodes: u32) -> Option<Level> {
    (0..fabric.level_count() as Level).find(|&level| fabric.largest_domain(level) >= nodes)
}

/// How many nodes of a gang lie together: the most that it has in one domain of its home level.
pub fn contiguous_nodes(fabric: &Fabric, gang: &[NodeId]) -> u32 {
    let Some(level) = home_level(fabric, gang.len() as u32) else { return 0 };
    let mut domains: Vec<SwitchId> = gang.iter().filter_map(|&node| fabric.domain_of(node, level)).collect();
    domains.sort_unstable();
    domains.chunk_by(|a, b| a == b).map(<[SwitchId]>::len).max().unwrap_or(0) as u32
}

/// The spread index of running gangs: 1 - contiguous nodes / nodes. 0 if none runs.
pub fn spread<'a>(fabric: &Fabric, gangs: impl IntoIterator<Item = &'a [NodeId]>) -> f64 {
    let sums = gangs.into_iter().fold((0u64, 0u64), |(contiguous, nodes), gang| {
        (contiguous + u64::from(contiguous_nodes(fabric, gang)), nodes + gang.len() as u64)
    });
    if sums.1 == 0 { 0.0 } else { 1.0 - sums.0 as f64 / sums.1 as f64 }
}

/// The gangs of a mix whose home is one level: how many the free nodes take, weighted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// The level.
    pub level: Level,
    /// As the free nodes lie.
    pub now: u64,
    /// If as many free nodes were ideally placed: in as few domains as can be.
    pub ideal: u64,
}

impl Room {
    /// The fragmentation index: 1 - now / ideal. 0 if even ideally no gang would fit.
    pub fn fragmentation(&self) -> f64 {
        if self.ideal == 0 { 0.0 } else { 1.0 - self.now as f64 / self.ideal as f64 }
    }
}

/// The room for the gangs of a mix on each level that is home to any.
pub fn room(fabric: &Fabric, free: &NodeSet, mix: &Mix) -> Vec<Room> {
    let mut counts = Counts::default();
    counts.count(fabric, free);
    let mut rooms: Vec<Room> = Vec::new();
    for &(nodes, weight) in mix.gangs() {
        let Some(level) = home_level(fabric, nodes) else { continue };
        let now: u64 = fabric.at_level(level).iter().map(|&id| u64::from(counts.of(id) / nodes)).sum();
        let ideal = ideally_placed(fabric, level, free.count_common(fabric.listed()) as u32, nodes);
        match rooms.iter_mut().find(|room| room.level == level) {
            Some(room) => (room.now, room.ideal) = (room.now + now * weight, room.ideal + ideal * weight),
            None => rooms.push(Room { level, now: now * weight, ideal: ideal * weight }),
        }
    }
    rooms
}

/// How many gangs of so many nodes fit if so many free nodes fill the largest domains of a level.
fn ideally_placed(fabric: &Fabric, level: Level, mut free: u32, nodes: u32) -> u64 {
    let mut sizes: Vec<u32> =
        fabric.at_level(level).iter().map(|&id| fabric.switch(id).node_count() as u32).collect();
    // Those that waste the fewest nodes first.
    sizes.sort_unstable_by_key(|&size| (size % nodes, std::cmp::Reverse(size)));
    let mut gangs = 0;
    for size in sizes {
        let fits = (size / nodes).min(free / nodes);
        gangs += u64::from(fits);
        free -= fits * nodes;
    }
    gangs
}

/// The nodes of the largest gang that would find its place in one domain of its home level.
pub fn largest_gang(fabric: &Fabric, free: &NodeSet) -> u32 {
    let mut counts = Counts::default();
    counts.count(fabric, free);
    let mut lower = 0;
    let mut largest = 0;
    for level in 0..fabric.level_count() as Level {
        let most = fabric.at_level(level).iter().map(|&id| counts.of(id)).max().unwrap_or(0);
        // A gang that a lower level could hold if it were empty has its home there.
        if most > lower {
            largest = largest.max(most);
        }
        lower = fabric.largest_domain(level);
    }
    largest
}

/// How many gangs of so many nodes each domain of their home level can take, in fabric order.
pub fn places(fabric: &Fabric, free: &NodeSet, nodes: u32) -> Vec<(SwitchId, u32)> {
    let mut counts = Counts::default();
    counts.count(fabric, free);
    let domains = home_level(fabric, nodes).map_or(&[][..], |level| fabric.at_level(level));
    domains.iter().map(|&id| (id, counts.of(id) / nodes.max(1))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::tests::fabric;

    #[test]
    fn gangs_are_together_or_spread() {
        // Two spines of two leaves of four.
        let fabric = fabric(&[&[4, 4], &[4, 4]]);
        assert_eq!(contiguous_nodes(&fabric, &[0, 1, 2]), 3);
        assert_eq!(contiguous_nodes(&fabric, &[2, 3, 4]), 2, "its home is a leaf");
        assert_eq!(contiguous_nodes(&fabric, &[0, 1, 4, 5, 6]), 5, "its home is a spine");
        assert_eq!(contiguous_nodes(&fabric, &[0, 1, 4, 5, 8]), 4);
        let gangs: [&[NodeId]; 2] = [&[0, 1, 2], &[3, 4, 8]];
        assert!((spread(&fabric, gangs) - (1.0 - 4.0 / 6.0)).abs() < 1e-9);
        assert_eq!(spread(&fabric, []), 0.0);
    }

    #[test]
    fn scattered_free_nodes_are_no_room() {
        let fabric = fabric(&[&[4, 4], &[4, 4]]);
        let mix = Mix::new([(2, 1), (4, 10), (8, 100)], []);
        let free = NodeSet::from_nodes(16, [0, 4, 8, 9, 10, 12, 13, 14]);
        // Pairs: 0 + 0 + 1 + 1 of 4 ideally; fours: 0 of 2; eights: 0 of 1.
        let rooms = room(&fabric, &free, &mix);
        assert_eq!(rooms, [Room { level: 0, now: 2, ideal: 4 + 20 }, Room { level: 1, now: 0, ideal: 100 }]);
        assert!((rooms[1].fragmentation() - 1.0).abs() < 1e-9);
        assert_eq!(largest_gang(&fabric, &free), 6, "under the second spine");
        assert_eq!(largest_gang(&fabric, &NodeSet::from_nodes(16, [0, 4, 8])), 1, "no leaf has two");
        assert_eq!(
            places(&fabric, &free, 3).iter().map(|&(_, gangs)| gangs).collect::<Vec<_>>(),
            [0, 0, 1, 1]
        );
    }
}
