//! What a placement costs the gangs to come.
//!
//! A *hole* is the free nodes of a domain. For each gang size of the site's mix, a domain of that size's home level can
//! still take so many gangs: its free nodes divided by the size. The hole cost of a placement is the weighted number of
//! gangs that no longer fit because of it, summed over all domains on all levels. It is what makes small gangs fill
//! broken leaves and leave whole ones alone. Inside a node the same holds for jobs of some of its slots (GPUs).
//!
//! The cost of a domain depends only on how many of its nodes are taken, so it adds up over the tree, and the dynamic
//! programme of [`super::cover`] can minimise it exactly. All in integers.

use super::mix::Mix;
use crate::fabric::tree::{Fabric, Level};

/// A mix laid out over a fabric.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HoleCost {
    /// By level and number of free nodes: the weighted gangs whose home is that level which such a domain can take.
    room: Vec<Vec<u64>>,
    /// The part-node jobs of the mix: slots and weight.
    parts: Vec<(u32, u64)>,
    /// By number of slots of a node, and of free ones among them: the weighted part-node jobs that it can take.
    slots: Vec<Vec<u64>>,
}

/// Nodes of up to so many slots have tables.
const TABLED_SLOTS: u32 = 32;

impl HoleCost {
    /// Finds each size's home level: the lowest with a domain that could hold it when empty. Sizes that no domain
    /// could hold count for nothing.
    pub fn new(fabric: &Fabric, mix: &Mix) -> Self {
        let levels = 0..fabric.level_count() as Level;
        let largest: Vec<u32> = levels.map(|level| fabric.largest_domain(level)).collect();
        let mut by_level = vec![Vec::new(); largest.len()];
        for &(nodes, weight) in mix.gangs() {
            if let Some(home) = largest.iter().position(|&largest| largest >= nodes) {
                by_level[home].push((nodes, weight));
            }
        }
        let room = |(sizes, &largest): (&Vec<(u32, u64)>, &u32)| {
            let room =
                |free: u32| sizes.iter().map(|&(nodes, weight)| u64::from(free / nodes) * weight).sum();
            (0..=largest).map(room).collect()
        };
        let room = by_level.iter().zip(&largest).map(room).collect();
        let parts = mix.parts().to_vec();
        let slots = |all: u32| (0..=all).map(|free| room_in_slots(&parts, all, free)).collect();
        Self { room, slots: (0..=TABLED_SLOTS).map(slots).collect(), parts }
    }

    /// The weighted number of gangs that a domain of this level loses when `taken` of its `free` nodes are taken.
    pub fn of(&self, level: Level, free: u32, taken: u32) -> u64 {
        let room = self.room.get(usize::from(level)).map_or(&[][..], Vec::as_slice);
        let room = |free: u32| room.get(free as usize).or(room.last()).copied().unwrap_or(0);
        room(free).saturating_sub(room(free.saturating_sub(taken)))
    }

    /// The weighted number of part-node jobs that a node of `all` slots loses when `taken` of its `free` slots are taken.
    pub fn of_slots(&self, all: u32, free: u32, taken: u32) -> u64 {
        let left = free.saturating_sub(taken);
        match self.slots.get(all as usize) {
            Some(table) if free <= all => table[free as usize] - table[left as usize],
            _ => room_in_slots(&self.parts, all, free).saturating_sub(room_in_slots(&self.parts, all, left)),
        }
    }
}

fn room_in_slots(parts: &[(u32, u64)], all: u32, free: u32) -> u64 {
    // A job of all slots is a gang of one node, which counts on the leaf.
    let parts = parts.iter().filter(|&&(slots, _)| slots < all);
    parts.map(|&(slots, weight)| u64::from(free / slots) * weight).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::tests::fabric;

    #[test]
    fn a_domain_loses_the_gangs_that_no_longer_fit() {
        // Leaves of four under spines of eight: gangs of 2 and 4 live on leaves, gangs of 8 on spines.
        let mix = Mix::new([(2, 1), (4, 10), (8, 100), (16, 1000)], [(1, 1), (4, 10), (8, 100)]);
        let cost = HoleCost::new(&fabric(&[&[4, 4], &[4, 4]]), &mix);
        assert_eq!(cost.of(0, 4, 1), 10 + 1, "a whole leaf is broken");
        assert_eq!(cost.of(0, 3, 1), 0, "the odd node of a broken leaf");
        assert_eq!(cost.of(0, 2, 2), 1);
        assert_eq!(cost.of(1, 8, 1), 100);
        assert_eq!(cost.of(1, 7, 3), 0);
        assert_eq!(cost.of(2, 16, 16), 0, "no such level: gangs of 16 have no home here");
        assert_eq!(cost.of_slots(8, 8, 1), 10 + 1);
        assert_eq!(cost.of_slots(8, 7, 3), 3, "4 of them still fit");
        assert_eq!(cost.of_slots(4, 4, 4), 4, "a gang of one node counts on the leaf");
    }
}
