//! What a choice of nodes costs, as one number to compare and to add.
//!
//! The parts are packed, the most important highest, so that comparing two choices is comparing two numbers, and the cost
//! of a choice under a switch is the sum of the costs under its children.

use crate::cluster::Reluctance;
use crate::fabric::tree::Level;

/// What a choice costs.
///
/// From the top: leaves (17 bits), switches of level 1 (14), 2 (12), 3 (10), all higher ones together (10), hole cost
/// (40), what is left over (20); then powered-down nodes (20) and node weights (44).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost {
    main: u128,
    tie: u64,
}

const HOLE_BITS: u32 = 40;
const LEFT_BITS: u32 = 20;
const LEAVES_FROM: u32 = 46 + HOLE_BITS + LEFT_BITS;
const POWERED_DOWN_FROM: u32 = 44;

impl Cost {
    /// No cost.
    pub const NONE: Self = Self { main: 0, tie: 0 };
    /// More than any real cost, and small enough that two of them add up.
    pub const IMPOSSIBLE: Self = Self { main: u128::MAX / 4, tie: 0 };

    /// So many leaves.
    pub fn leaves(leaves: u32) -> Self {
        Self { main: u128::from(leaves) << LEAVES_FROM, tie: 0 }
    }

    /// How many leaves it has.
    pub fn leaf_count(self) -> u32 {
        (self.main >> LEAVES_FROM) as u32
    }

    /// One switch of a level.
    pub fn switch(level: Level) -> Self {
        let above_hole = match level {
            0 => return Self::leaves(1),
            1 => 32,
            2 => 20,
            3 => 10,
            _ => 0,
        };
        Self { main: 1 << (above_hole + HOLE_BITS + LEFT_BITS), tie: 0 }
    }

    /// So many weighted gangs that no longer fit.
    pub fn hole(gangs: u64) -> Self {
        // One domain's cost is capped far below the field, so that the sum over a fabric stays inside.
        Self { main: u128::from(gangs.min(1 << 28)) << LEFT_BITS, tie: 0 }
    }

    /// So many free nodes left on the leaves that are touched, or free slots on the nodes.
    pub fn left(left: u32) -> Self {
        Self { main: u128::from(left), tie: 0 }
    }

    /// A node that is not given away gladly.
    pub fn reluctance(Reluctance { powered_down, weight }: Reluctance) -> Self {
        let weight = u64::from(weight.min(1 << 26));
        Self { main: 0, tie: (u64::from(powered_down) << POWERED_DOWN_FROM) + weight }
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { main: self.main + other.main, tie: self.tie + other.tie }
    }

    /// Whether it is the cost of a choice that can be made.
    pub fn is_possible(self) -> bool {
        self.main < Self::IMPOSSIBLE.main
    }
}
