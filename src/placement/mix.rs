//! The gangs that a site keeps room for: how large they are, and how much each size is worth.
//!
//! The site names them, or they are learnt from the jobs that were submitted: a [`History`] weighs each size by the
//! node-hours that gangs of it asked for, and forgets half of what it knows every [`HALF_LIFE`]. Only a site's own mix has
//! jobs that take a part of a node: keeping room for those inside nodes leaves more nodes in use, and gangs without whole
//! ones, than taking the tightest node does (docs/evaluation.md).

use crate::request::Time;
use std::collections::BTreeMap;

/// Gang sizes in nodes and part-node sizes in slots, with their weights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mix {
    gangs: Vec<(u32, u64)>,
    parts: Vec<(u32, u64)>,
}

impl Mix {
    /// A mix of gangs (nodes, weight) and of jobs that take a part of one node (slots, weight). Sizes of 0 and of no
    /// weight count for nothing.
    pub fn new(
        gangs: impl IntoIterator<Item = (u32, u64)>,
        parts: impl IntoIterator<Item = (u32, u64)>,
    ) -> Self {
        fn counted(sizes: impl IntoIterator<Item = (u32, u64)>) -> Vec<(u32, u64)> {
            let mut sizes: Vec<_> =
                sizes.into_iter().filter(|&(size, weight)| size > 0 && weight > 0).collect();
            sizes.sort_unstable();
            sizes
        }
        Self { gangs: counted(gangs), parts: counted(parts) }
    }

    /// Gang sizes in nodes with their weights, by size.
    pub fn gangs(&self) -> &[(u32, u64)] {
        &self.gangs
    }

    /// Part-node sizes in slots with their weights, by size.
    pub fn parts(&self) -> &[(u32, u64)] {
        &self.parts
    }
}

impl Default for Mix {
    /// Gangs of every power of two up to 65,536 nodes, each as much worth as it has nodes: a node-hour counts the same in
    /// a gang of any size.
    fn default() -> Self {
        Self::new((0..=16).map(|power| (1 << power, 1 << power)), [])
    }
}

/// How long until what was submitted counts half.
pub const HALF_LIFE: Time = 7 * 24 * 3600;
/// How many sizes a learnt mix has at most: the heaviest ones.
const SIZES: usize = 16;
/// What a node is worth in a learnt mix, so that shares of it are whole numbers.
const NODE: u64 = 64;

/// A decayed histogram of the gangs that were submitted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// Node-seconds by the gang's nodes.
    asked: BTreeMap<u32, u64>,
    /// When they were halved last.
    halved: Option<Time>,
}

impl History {
    /// Takes note of a gang that asks for so many nodes and seconds.
    pub fn record(&mut self, now: Time, nodes: u32, seconds: Time) {
        let halved = *self.halved.get_or_insert(now);
        let half_lives = u32::try_from(now.saturating_sub(halved).max(0) / HALF_LIFE).unwrap_or(u32::MAX);
        if half_lives > 0 {
            self.asked.values_mut().for_each(|asked| *asked = asked.checked_shr(half_lives).unwrap_or(0));
            self.asked.retain(|_, asked| *asked > 0);
            self.halved = Some(halved + Time::from(half_lives) * HALF_LIFE);
        }
        let seconds = u64::try_from(seconds).unwrap_or(0);
        let asked = self.asked.entry(nodes).or_default();
        *asked = asked.saturating_add(seconds.saturating_mul(nodes.into()));
    }

    /// The mix of the gangs so far: each size is worth its nodes times the share of all node-hours that it asked for.
    /// None while nothing was recorded.
    pub fn mix(&self) -> Option<Mix> {
        let mut heaviest: Vec<(u64, u32)> =
            self.asked.iter().map(|(&nodes, &asked)| (asked, nodes)).collect();
        heaviest.sort_unstable_by_key(|&(asked, nodes)| (std::cmp::Reverse(asked), nodes));
        heaviest.truncate(SIZES);
        let total: u128 = heaviest.iter().map(|&(asked, _)| u128::from(asked)).sum();
        let worth = |nodes: u32, asked: u64| {
            // As if all sizes had asked for the same, a node is worth the same in each.
            let share = u128::from(asked) * heaviest.len() as u128;
            let worth = u128::from(nodes) * u128::from(NODE) * share / total;
            u64::try_from(worth).unwrap_or(u64::MAX).clamp(1, 1 << 40)
        };
        let gangs = heaviest.iter().map(|&(asked, nodes)| (nodes, worth(nodes, asked)));
        (total > 0).then(|| Mix::new(gangs, []))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_weighs_by_node_hours_and_forgets() {
        let mut history = History::default();
        assert_eq!(history.mix(), None);
        history.record(0, 1, 800);
        history.record(0, 8, 100);
        // Equal node-hours: a gang of 8 nodes is worth 8 nodes.
        assert_eq!(history.mix(), Some(Mix::new([(1, NODE), (8, 8 * NODE)], [])));
        history.record(HALF_LIFE, 1, 400);
        // The old half counts half: 800 node-seconds of single nodes against 400 of gangs.
        assert_eq!(history.mix(), Some(Mix::new([(1, NODE * 4 / 3), (8, 8 * NODE * 2 / 3)], [])));
        history.record(40 * HALF_LIFE, 2, 10);
        assert_eq!(history.mix(), Some(Mix::new([(2, 2 * NODE)], [])));
    }
}
