//! Made-up traces: a mix of job sizes that keeps a cluster as busy as one likes.
//!
//! Jobs arrive as a Poisson process whose rate follows from the load: the mean gap between two submissions is
//! the mean work of a job divided by what the cluster gives each second at that load. Sizes are drawn from
//! the mix and run times evenly from one of two ranges, so that small jobs may be shorter than gangs.
//!
//! The same seed gives the same trace on every machine and with every release.

use super::{Trace, TraceJob};
use crate::request::Time;
use crate::simulator::draws::Draws;

/// What a made-up trace shall be like.
#[derive(Clone, Debug, PartialEq)]
pub struct Synthetic {
    /// How many jobs.
    pub jobs: usize,
    /// The expected offered load (see [`Trace::offered_load`]), such as 0.9.
    pub load: f64,
    /// The devices of the cluster that the load is of.
    pub capacity_devices: u64,
    /// Sizes in devices, each with its share of the jobs. Shares need not add up to 1; what is no positive
    /// number counts as 0, and 0 devices count as 1.
    pub mix: Vec<(u32, f64)>,
    /// The shortest and the longest run of jobs of at most `small_up_to` devices, in seconds, both included.
    pub small_run: (Time, Time),
    /// The same for larger jobs.
    pub large_run: (Time, Time),
    /// The most devices of a small job.
    pub small_up_to: u32,
    /// Which of the many traces of this kind.
    pub seed: u64,
}

impl Default for Synthetic {
    /// 1,000 jobs of 1 to 64 devices and about a minute, for 256 devices at a load of 0.9.
    fn default() -> Self {
        let mix =
            [(1, 0.35), (2, 0.15), (4, 0.15), (8, 0.10), (16, 0.09), (32, 0.08), (48, 0.03), (64, 0.05)];
        Self {
            jobs: 1000,
            load: 0.9,
            capacity_devices: 256,
            mix: mix.into(),
            small_run: (15, 60),
            large_run: (30, 90),
            small_up_to: 8,
            seed: 1,
        }
    }
}

impl Synthetic {
    /// The trace. Time limits are run times rounded up to whole minutes.
    ///
    /// A mix without a positive share gives no jobs. Where no load can be kept (a `load` that is no positive
    /// number, no capacity), all jobs come at once.
    pub fn generate(&self) -> Trace {
        let mix: Vec<(u32, f64)> = self
            .mix
            .iter()
            .filter(|(_, share)| share.is_finite() && *share > 0.0)
            .map(|&(devices, share)| (devices.max(1), share))
            .collect();
        let shares: f64 = mix.iter().map(|(_, share)| share).sum();
        let Some(&(last, _)) = mix.last() else { return Trace::default() };
        let work: f64 = mix.iter().map(|&(devices, share)| share / shares * self.mean_work(devices)).sum();
        let gap = Some(work / (self.load * self.capacity_devices as f64));
        let gap = gap.filter(|gap| gap.is_finite() && *gap > 0.0).unwrap_or(0.0);
        let mut draws = Draws::new(self.seed);
        let mut now = 0.0;
        let jobs = (0..self.jobs).map(|job| {
            if job > 0 {
                now += gap * draws.exponential();
            }
            let mut left = draws.fraction() * shares;
            let chosen = mix.iter().find(|(_, share)| {
                left -= share;
                left < 0.0
            });
            let devices = chosen.map_or(last, |&(devices, _)| devices);
            let (shortest, longest) = self.run_range(devices);
            let run = draws.between(shortest, longest);
            let limit = Some((run as u64).div_ceil(60).saturating_mul(60).min(Time::MAX as u64) as Time);
            TraceJob { submit: now as Time, run, limit, devices }
        });
        Trace { jobs: jobs.collect(), ..Trace::default() }
    }

    /// The expected device-seconds of a job of so many devices.
    fn mean_work(&self, devices: u32) -> f64 {
        let (shortest, longest) = self.run_range(devices);
        f64::from(devices) * (shortest as f64 + longest as f64) / 2.0
    }

    /// The shortest and the longest run of a job of so many devices: at least a second, and never upside
    /// down.
    fn run_range(&self, devices: u32) -> (Time, Time) {
        let (a, b) = if devices <= self.small_up_to { self.small_run } else { self.large_run };
        (a.min(b).max(1), a.max(b).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn the_same_seed_gives_the_same_trace() {
        let synthetic = Synthetic::default();
        assert_eq!(synthetic.generate(), synthetic.generate());
        assert_ne!(synthetic.generate(), Synthetic { seed: 2, ..synthetic.clone() }.generate());
        let jobs = Synthetic { jobs: 6, ..synthetic }.generate().jobs;
        let jobs: Vec<_> = jobs.iter().map(|job| (job.submit, job.run, job.limit, job.devices)).collect();
        insta::assert_compact_debug_snapshot!(jobs, @"[(0, 28, Some(60), 2), (2, 38, Some(60), 32), (3, 36, Some(60), 2), (21, 74, Some(120), 16), (26, 57, Some(60), 8), (27, 51, Some(60), 48)]");
    }

    #[test]
    fn the_load_is_the_one_asked_for() {
        for (load, seed) in [(0.9, 1), (0.5, 2), (1.5, 3)] {
            let synthetic = Synthetic { jobs: 20_000, load, seed, ..Synthetic::default() };
            let offered = synthetic.generate().offered_load(synthetic.capacity_devices).unwrap();
            assert!((offered / load - 1.0).abs() < 0.03, "{offered} instead of {load}");
        }
    }

    #[test]
    fn sizes_and_runs_are_those_of_the_mix() {
        let synthetic = Synthetic { jobs: 20_000, ..Synthetic::default() };
        let mut sizes = BTreeMap::new();
        for job in synthetic.generate().jobs {
            let (shortest, longest) = if job.devices <= 8 { (15, 60) } else { (30, 90) };
            assert!((shortest..=longest).contains(&job.run), "{job:?}");
            let limit = job.limit.unwrap();
            assert!(limit % 60 == 0 && limit >= job.run && limit < job.run + 60, "{job:?}");
            *sizes.entry(job.devices).or_insert(0) += 1;
        }
        assert_eq!(sizes.len(), synthetic.mix.len());
        for (devices, share) in synthetic.mix {
            let drawn = f64::from(sizes[&devices]) / 20_000.0;
            assert!((drawn - share).abs() < 0.01, "{devices} devices: {drawn} instead of {share}");
        }
    }

    #[test]
    fn wishes_that_cannot_be_met() {
        let nothing = Synthetic { mix: vec![(8, 0.0), (4, f64::NAN)], ..Synthetic::default() };
        assert_eq!(nothing.generate(), Trace::default());
        for (load, capacity_devices) in [(0.0, 256), (-1.0, 256), (f64::NAN, 256), (0.9, 0)] {
            let at_once = Synthetic { load, capacity_devices, ..Synthetic::default() }.generate();
            assert_eq!((at_once.jobs.len(), at_once.span()), (1000, 0), "{load} of {capacity_devices}");
        }
        let odd = Synthetic { mix: vec![(0, 1.0)], small_run: (9, -3), ..Synthetic::default() };
        assert!(odd.generate().jobs.iter().all(|job| job.devices == 1 && (1..=9).contains(&job.run)));
    }
}
