//! Blocks: leaves that join, in the order of the file, to groups of two, four, eight and more.

use super::diagnostic::codes;
use super::hostlist;
use super::tree::{Below, Declared};
use std::cmp::Reverse;

codes! {
    /// The codes of this module.
    CODES;
    BLOCK_SIZES = "T006" Error "a block size that Slurm cannot use";
}

/// The largest power of two to which Slurm joins blocks.
const MAX_LEVEL: u32 = 15;

/// What to do about a wrong block size.
pub const BLOCK_SIZE_HINT: &str =
    "give sizes that are 1, 2, 4, 8, ... times the first, as in `BlockSizes=18,36,72`";

/// `BlockSizes`: how many nodes a block should have, and the sizes to which blocks in a row join.
#[derive(Debug, Default)]
pub struct BlockSizes {
    /// Nodes in a block; none if the first block sets it.
    pub base: Option<u32>,
    /// The joined sizes as powers of two of blocks, ascending: 2 means groups of 4 blocks.
    pub levels: Vec<u32>,
}

impl BlockSizes {
    /// The sizes of Slurm's own default: the first block's, doubled up to four times.
    pub fn by_default() -> Self {
        Self { base: None, levels: (1..=4).collect() }
    }

    /// Reads sizes, each a power of two of the first.
    ///
    /// # Errors
    /// The index of the size that is none, and why.
    pub fn read(sizes: &[i64]) -> Result<Self, (usize, String)> {
        let mut base = None;
        let mut levels = Vec::new();
        for (i, &size) in sizes.iter().enumerate() {
            let size = u32::try_from(size)
                .ok()
                .filter(|&size| size > 0)
                .ok_or((i, format!("{size} is not a number of nodes")))?;
            let base = *base.get_or_insert(size);
            let blocks = size / base;
            if size % base != 0 || !blocks.is_power_of_two() || blocks.ilog2() > MAX_LEVEL {
                return Err((
                    i,
                    format!("{size} is not {base} times a power of two up to {}", 1 << MAX_LEVEL),
                ));
            }
            levels.extend((blocks > 1).then(|| blocks.ilog2()));
        }
        levels.sort_unstable();
        levels.dedup();
        Ok(Self { base, levels })
    }

    /// Joins blocks in a row to larger ones, as Slurm does: a last group may be short, but not so short that a smaller
    /// size already covers it. The result stands in the order of the blocks, each group before its members.
    pub fn join(&self, blocks: &[Declared]) -> Vec<Declared> {
        let mut groups: Vec<(usize, Declared)> = Vec::new();
        let mut tops: Vec<(usize, usize)> = (0..blocks.len()).map(|block| (block, block)).collect();
        let mut smaller = 1;
        for size in self.levels.iter().map(|&level| 1usize << level) {
            if smaller >= blocks.len() {
                break;
            }
            let mut above = Vec::new();
            for members in tops.chunk_by(|a, b| a.0 / size == b.0 / size) {
                let [(first, _), .., _] = members else {
                    above.extend_from_slice(members);
                    continue;
                };
                above.push((*first, blocks.len() + groups.len()));
                let names = blocks.iter().skip(*first).take(size).map(|block| &block.name);
                let below = Below::Switches(members.iter().map(|(_, top)| *top).collect());
                groups.push((*first, Declared { name: hostlist::fold(names), below }));
            }
            tops = above;
            smaller = size;
        }
        // Later groups are larger; of those with the same first block the largest stands first.
        let mut order: Vec<usize> = (0..blocks.len() + groups.len()).collect();
        let first_block = |i: usize| i.checked_sub(blocks.len()).map_or(i, |group| groups[group].0);
        order.sort_by_key(|&i| (first_block(i), Reverse(i)));
        let mut place = vec![0; order.len()];
        order.iter().enumerate().for_each(|(to, &from)| place[from] = to);
        let moved = |declared: &Declared| Declared {
            name: declared.name.clone(),
            below: match &declared.below {
                Below::Nodes(nodes) => Below::Nodes(nodes.clone()),
                Below::Switches(children) => {
                    Below::Switches(children.iter().map(|&child| place[child]).collect())
                }
            },
        };
        order
            .iter()
            .map(|&i| moved(i.checked_sub(blocks.len()).map_or_else(|| &blocks[i], |group| &groups[group].1)))
            .collect()
    }
}
