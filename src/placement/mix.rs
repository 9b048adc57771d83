//! The gangs that a site keeps room for: how large they are, and how much each size is worth.
//!
//! The site names them, or they are learnt from the jobs that were submitted: a [`History`] weighs each size by the
//! slot-hours that jobs of it asked for, and forgets half of what it knows every [`HALF_LIFE`].

use crate::request::Time;
use std::collections::BTreeMap;

/// Gang sizes in nodes and part-node sizes in slots, with their weights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mix {
    gangs: Vec<(u32, u64)>,
    parts: Vec<(u32, u64)>,
}

/// What a node is worth in the weights of a mix that is not the site's own.
const NODE: u64 = 64;

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

    /// Every power of two, on nodes of so many slots, each as much worth as it has slots: a slot-hour counts the same in
    /// a job of any size.
    pub fn of_all_sizes(node_slots: u32) -> Self {
        let powers = || (0..=16).map(|power| 1u32 << power);
        let worth = |slots: u32| u64::from(slots) * NODE / u64::from(node_slots.max(1));
        Self::new(
            powers().map(|nodes| (nodes, u64::from(nodes) * NODE)),
            powers().take_while(|&slots| slots < node_slots).map(|slots| (slots, worth(slots).max(1))),
        )
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
    /// All sizes on nodes of eight slots.
    fn default() -> Self {
        Self::of_all_sizes(8)
    }
}

/// How long until what was submitted counts half.
pub const HALF_LIFE: Time = 7 * 24 * 3600;
/// How many sizes a learnt mix has at most: the heaviest ones.
const SIZES: usize = 16;

/// A decayed histogram of the jobs that were submitted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// Slot-seconds by the job's slots.
    asked: BTreeMap<u64, u64>,
    /// When they were halved last.
    halved: Option<Time>,
}

impl History {
    /// Takes note of a job that asks for so many slots in all and so many seconds.
    pub fn record(&mut self, now: Time, slots: u64, seconds: Time) {
        let halved = *self.halved.get_or_insert(now);
        let half_lives = u32::try_from(now.saturating_sub(halved).max(0) / HALF_LIFE).unwrap_or(u32::MAX);
        if half_lives > 0 {
            self.asked.values_mut().for_each(|asked| *asked = asked.checked_shr(half_lives).unwrap_or(0));
            self.asked.retain(|_, asked| *asked > 0);
            self.halved = Some(halved + Time::from(half_lives) * HALF_LIFE);
        }
        let seconds = u64::try_from(seconds).unwrap_or(0);
        let asked = self.asked.entry(slots).or_default();
        *asked = asked.saturating_add(slots.saturating_mul(seconds));
    }

    /// The mix of the jobs so far on nodes of so many slots: each size is worth its slots times the share of all
    /// slot-hours that it asked for. None while nothing was recorded.
    pub fn mix(&self, node_slots: u32) -> Option<Mix> {
        let node_slots = u64::from(node_slots.max(1));
        let mut heaviest: Vec<(u64, u64)> =
            self.asked.iter().map(|(&slots, &asked)| (asked, slots)).collect();
        heaviest.sort_unstable_by_key(|&(asked, slots)| (std::cmp::Reverse(asked), slots));
        heaviest.truncate(SIZES);
        let total: u128 = heaviest.iter().map(|&(asked, _)| u128::from(asked)).sum();
        if total == 0 {
            return None;
        }
        let size = |size: u64| u32::try_from(size).unwrap_or(u32::MAX);
        let worth = |slots: u64, asked: u64| {
            // As if all sizes had asked for the same, a node would be worth as much as in a mix of all sizes.
            let share = u128::from(asked) * heaviest.len() as u128;
            let worth = u128::from(slots) * u128::from(NODE) * share / total / u128::from(node_slots);
            u64::try_from(worth).unwrap_or(u64::MAX).clamp(1, 1 << 40)
        };
        let (parts, gangs): (Vec<_>, Vec<_>) = heaviest.iter().partition(|&&(_, slots)| slots < node_slots);
        Some(Mix::new(
            gangs.into_iter().map(|(asked, slots)| (size(slots.div_ceil(node_slots)), worth(slots, asked))),
            parts.into_iter().map(|(asked, slots)| (size(slots), worth(slots, asked))),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_weighs_by_slot_hours_and_forgets() {
        let mut history = History::default();
        assert_eq!(history.mix(8), None);
        history.record(0, 1, 6400);
        history.record(0, 64, 100);
        // Equal slot-hours: a gang of 8 nodes is worth 8 nodes, a slot an eighth of one.
        assert_eq!(history.mix(8), Some(Mix::new([(8, 8 * NODE)], [(1, NODE / 8)])));
        history.record(HALF_LIFE, 1, 3200);
        // The old half counts half: 6,400 slot-seconds of single slots against 3,200 of gangs.
        assert_eq!(history.mix(8), Some(Mix::new([(8, 8 * NODE * 2 / 3)], [(1, NODE / 8 * 4 / 3)])));
        history.record(40 * HALF_LIFE, 16, 10);
        assert_eq!(history.mix(8), Some(Mix::new([(2, 2 * NODE)], [])));
    }
}
