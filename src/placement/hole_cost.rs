//! What a placement costs the gangs to come.
//!
//! A *hole* is the free nodes of a domain. For each gang size of the site's mix, a domain of that size's home level can
//! still take so many gangs: its free nodes divided by the size. The hole cost of a placement is the weighted number of
//! gangs that no longer fit because of it, summed over all domains on all levels. It is what makes small gangs fill
//! broken leaves and leave whole ones alone.
//!
//! The cost of a domain depends only on how many of its nodes are taken, so it adds up over the tree, and the dynamic
//! programme of [`super::cover`] can minimise it exactly. All in integers.

use crate::fabric::tree::{Fabric, Level};

/// The gang sizes that a site keeps room for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mix {
    /// Nodes and weight of each size, by size.
    sizes: Vec<(u32, u64)>,
}

impl Mix {
    /// A mix of sizes in nodes with their weights. Sizes of 0 nodes and of no weight count for nothing.
    pub fn new(sizes: impl IntoIterator<Item = (u32, u64)>) -> Self {
        let mut sizes: Vec<_> =
            sizes.into_iter().filter(|&(nodes, weight)| nodes > 0 && weight > 0).collect();
        sizes.sort_unstable();
        Self { sizes }
    }
}

impl Default for Mix {
    /// Every power of two up to 65,536 nodes, each as much worth as it has nodes: a node-hour counts the same in a
    /// gang of any size.
    fn default() -> Self {
        Self::new((0..=16).map(|power| (1 << power, 1 << power)))
    }
}

/// A mix laid out over a fabric: the sizes whose home is on each level.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HoleCost {
    by_level: Vec<Vec<(u32, u64)>>,
}

impl HoleCost {
    /// Finds each size's home level: the lowest with a domain that could hold it when empty. Sizes that no domain
    /// could hold count for nothing.
    pub fn new(fabric: &Fabric, mix: &Mix) -> Self {
        let mut by_level = vec![Vec::new(); fabric.level_count()];
        let largest = |level: usize| {
            let domains = fabric.at_level(level as Level).iter();
            domains.map(|&domain| fabric.switch(domain).node_count()).max().unwrap_or(0)
        };
        for &(nodes, weight) in &mix.sizes {
            if let Some(home) = (0..by_level.len()).find(|&level| largest(level) >= nodes as usize) {
                by_level[home].push((nodes, weight));
            }
        }
        Self { by_level }
    }

    /// The weighted number of gangs that a domain of this level loses when `taken` of its `free` nodes are taken.
    pub fn of(&self, level: Level, free: u32, taken: u32) -> u64 {
        let sizes = self.by_level.get(usize::from(level)).map_or(&[][..], Vec::as_slice);
        let left = free.saturating_sub(taken);
        sizes
            .iter()
            .map(|&(nodes, weight)| u64::from(free / nodes - left / nodes).saturating_mul(weight))
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::tests::fabric;

    #[test]
    fn a_domain_loses_the_gangs_that_no_longer_fit() {
        // Leaves of four under spines of eight: gangs of 2 and 4 live on leaves, gangs of 8 on spines.
        let cost =
            HoleCost::new(&fabric(&[&[4, 4], &[4, 4]]), &Mix::new([(2, 1), (4, 10), (8, 100), (16, 1000)]));
        assert_eq!(cost.of(0, 4, 1), 10 + 1, "a whole leaf is broken");
        assert_eq!(cost.of(0, 3, 1), 0, "the odd node of a broken leaf");
        assert_eq!(cost.of(0, 2, 2), 1);
        assert_eq!(cost.of(1, 8, 1), 100);
        assert_eq!(cost.of(1, 7, 3), 0);
        assert_eq!(cost.of(2, 16, 16), 0, "no such level: gangs of 16 have no home here");
    }
}
