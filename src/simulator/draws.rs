//! Chance that is the same on every machine and with every release.
//!
//! ChaCha's stream is fixed by its definition, and all draws are made from it here with comparisons, sums and products
//! alone, whose results IEEE 754 fixes; a library's distributions change with its versions, and logarithms with the
//! platform.

use crate::request::Time;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Chance, reproducible to the bit.
pub struct Draws(ChaCha8Rng);

impl Draws {
    /// The draws of a seed.
    pub fn new(seed: u64) -> Self {
        // Not `seed_from_u64`, which is free to stretch a seed in another way some day.
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        Self(ChaCha8Rng::from_seed(key))
    }

    /// Evenly from 0 up to but not including 1.
    pub fn fraction(&mut self) -> f64 {
        // As many bits as a f64 holds, so that nothing is rounded, least of all up to 1.
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Evenly from whole numbers, both ends included.
    pub fn between(&mut self, low: Time, high: Time) -> Time {
        let numbers = u128::from(high.abs_diff(low)) + 1;
        let step = (u128::from(self.0.next_u64()) * numbers) >> 64;
        low.saturating_add_unsigned(step as u64)
    }

    /// From the exponential distribution of mean 1, by von Neumann's method of comparisons ("Various
    /// techniques used in connection with random digits", 1951): draw fractions as long as they fall. A run
    /// of falling ones has an odd length with probability e^-x if it begins with x; then x is the part after
    /// the point, and each run of an even length before it added 1.
    pub fn exponential(&mut self) -> f64 {
        let mut whole = 0.0;
        loop {
            let first = self.fraction();
            let (mut last, mut odd) = (first, true);
            loop {
                let next = self.fraction();
                if next >= last {
                    break;
                }
                (last, odd) = (next, !odd);
            }
            if odd {
                return whole + first;
            }
            whole += 1.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_exponential() {
        let mut draws = Draws::new(7);
        let drawn: Vec<f64> = (0..100_000).map(|_| draws.exponential()).collect();
        for bound in [0.1_f64, 0.5, 1.0, 2.0, 4.0] {
            let below = drawn.iter().filter(|&&gap| gap < bound).count() as f64 / drawn.len() as f64;
            let expected = 1.0 - (-bound).exp();
            assert!((below - expected).abs() < 0.005, "{below} below {bound} instead of {expected}");
        }
    }
}
