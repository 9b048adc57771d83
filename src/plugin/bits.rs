//! Slurm's `bitstr_t` as words: an array of `int64_t` that starts with a magic number and a bit count, bit `i` being
//! bit `i % 64` of word `i / 64` after them. The layout is the same from 22.05 to 26.05.

use super::sys::bitstr_t;
use crate::nodeset::NodeSet;

const MAGIC: i64 = 0x4243_4445;
const HEADER_WORDS: usize = 2;

/// A bitmap that Slurm owns, borrowed for one call.
pub struct Bitmap<'a> {
    words: &'a mut [u64],
    bits: usize,
}

impl<'a> Bitmap<'a> {
    /// Borrows a bitmap; none if the pointer is NULL or does not lead to a bitmap.
    ///
    /// # Safety
    /// The pointer is NULL or a `bitstr_t` that nobody else reads or writes during `'a`.
    pub unsafe fn borrow(bitmap: *mut bitstr_t) -> Option<Self> {
        if bitmap.is_null() {
            return None;
        }
        // SAFETY: every bitstr_t has its two header words.
        let (magic, bits) = unsafe { (*bitmap, *bitmap.add(1)) };
        if magic != MAGIC {
            return None;
        }
        let bits = usize::try_from(bits).ok()?;
        // SAFETY: the header's bit count tells how many words follow it; u64 and i64 have the same layout.
        let words = unsafe {
            std::slice::from_raw_parts_mut(bitmap.add(HEADER_WORDS).cast::<u64>(), bits.div_ceil(64))
        };
        Some(Self { words, bits })
    }

    /// A set of as many nodes as it has bits.
    pub fn to_set(&self) -> NodeSet {
        NodeSet::from_words(self.bits, self.words)
    }

    /// Copies it into a set; bits past the set's size are dropped.
    pub fn copy_to(&self, set: &mut NodeSet) {
        set.copy_from_words(self.words);
    }

    /// Overwrites it with a set of at most its own size.
    pub fn copy_from(&mut self, set: &NodeSet) {
        self.words.fill(0);
        for (to, from) in self.words.iter_mut().zip(set.words()) {
            *to = *from;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bitmap_goes_to_a_set_and_back() {
        let mut raw: Vec<bitstr_t> = vec![MAGIC, 70, 0b101, 0b100000];
        // SAFETY: the vector has the layout of a bitstr_t of 70 bits and outlives the borrow.
        let mut bitmap = unsafe { Bitmap::borrow(raw.as_mut_ptr()) }.unwrap();
        let mut set = bitmap.to_set();
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 2, 69]);
        set.remove(2);
        bitmap.copy_from(&set);
        assert_eq!(raw, [MAGIC, 70, 0b001, 0b100000]);
    }

    #[test]
    fn what_is_no_bitmap_is_refused() {
        let mut raw: Vec<bitstr_t> = vec![1, 70, 0, 0];
        // SAFETY: NULL, and two readable words, are what borrow() promises to tell from a bitmap.
        let refused = unsafe { (Bitmap::borrow(std::ptr::null_mut()), Bitmap::borrow(raw.as_mut_ptr())) };
        assert!(refused.0.is_none() && refused.1.is_none());
    }
}
