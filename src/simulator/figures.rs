//! What a simulation came to: waits, utilisation, spread, fragmentation, and how they went over time.
//!
//! Only a window counts: from the end of the warm-up to the last submission, so that neither the empty start nor the long
//! tail, when nothing comes any more, flatters anybody. Waits are those of the jobs submitted in the window.

use super::machine::Machine;
use super::workload::{Job, Workload};
use super::world::Running;
use super::{Assumptions, Method};
use crate::cluster::Ledger;
use crate::fragmentation;
use crate::nodeset::NodeSet;
use crate::placement::candidates::Counts;
use crate::placement::mix::Mix;
use crate::request::Time;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// What came of a workload under one method.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    /// The method's name.
    pub name: &'static str,
    /// Jobs that started, in the window as all that follows.
    pub jobs: usize,
    /// Of these, jobs of several nodes.
    pub gangs: usize,
    /// Gangs that are not in one domain of their home level, in percent.
    pub gangs_spread_pct: f64,
    /// Gangs on more leaves than they need, in percent.
    pub gangs_excess_pct: f64,
    /// GPU time that jobs held while they ran, against all GPU time.
    pub utilisation: f64,
    /// GPU time that was of use: what the same work takes where nothing slows it down, and not lost later.
    pub effective_utilisation: f64,
    /// Seconds that gangs waited.
    pub gang_wait_mean_s: f64,
    /// Of a hundred gangs, 95 waited no longer.
    pub gang_wait_p95_s: f64,
    /// Seconds that the largest gangs waited: those of the top tenth of node counts, by work.
    pub largest_gangs_wait_mean_s: f64,
    /// Seconds that jobs of one node waited.
    pub small_wait_mean_s: f64,
    /// Of a hundred such jobs, 95 waited no longer.
    pub small_wait_p95_s: f64,
    /// (wait + run) / run of all jobs, runs under 10 s counted as 10 s.
    pub bounded_slowdown: f64,
    /// The spread index, averaged over time.
    pub spread: f64,
    /// The fragmentation index over all levels, averaged over samples.
    pub fragmentation: f64,
    /// The fragmentation index by level, averaged over samples.
    pub fragmentation_by_level: Vec<f64>,
    /// Nodes of the largest gang that could have been placed, averaged over samples.
    pub largest_gang_mean: f64,
    /// GPU-hours that incomplete gangs held for nothing.
    pub deadlocked_gpu_hours: f64,
    /// GPU-hours of work that were lost to failures and preemption.
    pub lost_gpu_hours: f64,
    /// Jobs preempted.
    pub preemptions: usize,
    /// Nodes failed.
    pub failures: usize,
    /// Seconds from the first submission to the last end.
    pub makespan_s: Time,
    /// Waits by job size.
    pub by_size: Vec<SizeFigures>,
    /// How it went over time.
    pub series: Series,
}

/// Waits of the jobs of one size.
#[derive(Clone, Debug, Serialize)]
pub struct SizeFigures {
    /// GPUs.
    pub gpus: u32,
    /// Jobs.
    pub jobs: usize,
    /// Seconds that they waited.
    pub wait_mean_s: f64,
    /// Of a hundred of them, 95 waited no longer.
    pub wait_p95_s: f64,
}

/// Samples at equal distances over the span of the submissions.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Series {
    /// Seconds after the first submission.
    pub time: Vec<Time>,
    /// Jobs that wait.
    pub queued_jobs: Vec<usize>,
    /// GPUs that they ask for.
    pub queued_gpus: Vec<u64>,
    /// Share of the GPUs that running jobs hold.
    pub utilisation: Vec<f64>,
    /// Spread index.
    pub spread: Vec<f64>,
    /// Fragmentation index.
    pub fragmentation: Vec<f64>,
    /// Nodes of the largest gang that could be placed.
    pub largest_gang: Vec<u32>,
    /// Busy GPUs of each leaf in percent, by sample.
    pub leaves: Vec<Vec<u8>>,
}

/// How many samples are taken.
const SAMPLES: Time = 400;

/// Gathers figures while a simulation runs.
pub struct Gathering<'a> {
    machine: &'a Machine,
    workload: &'a Workload,
    mix: Mix,
    window: (Time, Time),
    step: Time,
    now: Time,
    busy: u64,
    /// GPUs of running jobs times the rates that they run at.
    useful: f64,
    aside: u64,
    gang_nodes: u64,
    contiguous: u64,
    /// Sums over time inside the window.
    busy_seconds: f64,
    useful_seconds: f64,
    aside_seconds: f64,
    spread_seconds: f64,
    lost_seconds: f64,
    waits: Vec<(Job, Time)>,
    spread_gangs: usize,
    excess_gangs: usize,
    gangs: usize,
    preemptions: usize,
    failures: usize,
    fewest_leaves: BTreeMap<u32, u32>,
    by_level: Vec<(f64, usize)>,
    counts: Counts,
    series: Series,
}

impl<'a> Gathering<'a> {
    /// Nothing yet.
    pub fn new(machine: &'a Machine, workload: &'a Workload, assumptions: &Assumptions) -> Self {
        let last = workload.jobs.last().map_or(0, |job| job.submit);
        let warm = (last as f64 * assumptions.warm_up) as Time;
        Self {
            machine,
            workload,
            mix: Mix::default(),
            window: (warm, last),
            step: (last / SAMPLES).max(1),
            now: 0,
            busy: 0,
            useful: 0.0,
            aside: 0,
            gang_nodes: 0,
            contiguous: 0,
            busy_seconds: 0.0,
            useful_seconds: 0.0,
            aside_seconds: 0.0,
            spread_seconds: 0.0,
            lost_seconds: 0.0,
            waits: Vec::new(),
            spread_gangs: 0,
            excess_gangs: 0,
            gangs: 0,
            preemptions: 0,
            failures: 0,
            fewest_leaves: BTreeMap::new(),
            by_level: vec![(0.0, 0); machine.fabric.level_count()],
            counts: Counts::default(),
            series: Series::default(),
        }
    }

    fn in_window(&self, from: Time, to: Time) -> f64 {
        (to.min(self.window.1) - from.max(self.window.0)).max(0) as f64
    }

    fn spread(&self) -> f64 {
        if self.gang_nodes == 0 { 0.0 } else { 1.0 - self.contiguous as f64 / self.gang_nodes as f64 }
    }

    /// Lets time pass, with the machine as it is.
    pub fn pass(&mut self, ledger: &Ledger, up: &NodeSet, waiting: &BTreeSet<(bool, u32)>, to: Time) {
        let seconds = self.in_window(self.now, to);
        self.busy_seconds += self.busy as f64 * seconds;
        self.useful_seconds += self.useful * seconds;
        self.aside_seconds += self.aside as f64 * seconds;
        self.spread_seconds += self.spread() * seconds;
        let next = self.series.time.len() as Time * self.step;
        if next < to && next <= self.window.1 {
            self.sample(ledger, up, waiting, next);
            // Samples in a quiet time are all alike.
            while let next = self.series.time.len() as Time * self.step
                && next < to
                && next <= self.window.1
            {
                self.repeat(next);
            }
        }
        self.now = to;
    }

    fn sample(&mut self, ledger: &Ledger, up: &NodeSet, waiting: &BTreeSet<(bool, u32)>, time: Time) {
        let fabric = &self.machine.fabric;
        let mut free = up.clone();
        free.intersect_with(ledger.idle());
        let (mut now, mut ideal) = (0, 0);
        for room in fragmentation::room(fabric, &free, &self.mix) {
            (now, ideal) = (now + room.now, ideal + room.ideal);
            if room.ideal > 0 && time >= self.window.0 {
                let level = &mut self.by_level[usize::from(room.level)];
                *level = (level.0 + room.fragmentation(), level.1 + 1);
            }
        }
        let spread = self.spread();
        let series = &mut self.series;
        series.time.push(time);
        series.queued_jobs.push(waiting.len());
        let asked = |&(_, job): &(bool, u32)| u64::from(self.workload.jobs[job as usize].gpus);
        series.queued_gpus.push(waiting.iter().map(asked).sum());
        series.utilisation.push(self.busy as f64 / self.machine.gpus() as f64);
        series.spread.push(spread);
        series.fragmentation.push(if ideal == 0 { 0.0 } else { 1.0 - now as f64 / ideal as f64 });
        series.largest_gang.push(fragmentation::largest_gang(fabric, &free));
        self.counts.count(fabric, &free);
        let per_node = self.machine.gpus_per_node;
        let busy = |leaf| {
            let nodes = fabric.nodes_under(leaf);
            let held: u32 = nodes.iter().map(|&node| per_node - ledger.slots(node).free.min(per_node)).sum();
            (100 * held / (per_node * nodes.len() as u32).max(1)) as u8
        };
        series.leaves.push(fabric.at_level(0).iter().map(|&leaf| busy(leaf)).collect());
    }

    fn repeat(&mut self, time: Time) {
        fn again<T: Clone>(values: &mut Vec<T>) {
            values.extend(values.last().cloned());
        }
        let series = &mut self.series;
        series.time.push(time);
        again(&mut series.queued_jobs);
        again(&mut series.queued_gpus);
        again(&mut series.utilisation);
        again(&mut series.spread);
        again(&mut series.fragmentation);
        again(&mut series.largest_gang);
        again(&mut series.leaves);
    }

    /// A job starts, perhaps not for the first time; only then its wait and its placement count.
    pub fn start(&mut self, job: &Job, running: &Running, levels_beyond: usize, is_first: bool) {
        let Running { nodes, since: now, rate } = running;
        self.busy += u64::from(job.gpus);
        self.useful += f64::from(job.gpus) * rate;
        let counts = is_first && (self.window.0..=self.window.1).contains(&job.submit);
        if job.nodes > 1 {
            self.gang_nodes += nodes.len() as u64;
            self.contiguous += u64::from(fragmentation::contiguous_nodes(&self.machine.fabric, nodes));
            let machine = self.machine;
            let fewest =
                *self.fewest_leaves.entry(job.nodes).or_insert_with(|| machine.fewest_leaves(job.nodes));
            if counts {
                self.gangs += 1;
                self.spread_gangs += usize::from(levels_beyond > 0);
                self.excess_gangs += usize::from(machine.leaves(nodes) > fewest);
            }
        }
        if counts {
            self.waits.push((*job, now - job.submit));
        }
    }

    /// A job stops, done or not.
    pub fn stop(&mut self, job: &Job, running: &Running, is_done: bool, now: Time) {
        self.busy -= u64::from(job.gpus);
        self.useful -= f64::from(job.gpus) * running.rate;
        if job.nodes > 1 {
            self.gang_nodes -= running.nodes.len() as u64;
            self.contiguous -=
                u64::from(fragmentation::contiguous_nodes(&self.machine.fabric, &running.nodes));
        }
        if !is_done {
            let seconds = self.in_window(running.since, now);
            self.useful_seconds -= f64::from(job.gpus) * running.rate * seconds;
            self.lost_seconds += f64::from(job.gpus) * seconds;
        }
    }

    /// A job gets nodes that are not all it needs.
    pub fn set_aside(&mut self, job: &Job, nodes: usize) {
        self.aside += self.gpus_on(job, nodes);
    }

    /// A job gives such nodes back.
    pub fn give_back(&mut self, job: &Job, nodes: usize) {
        self.aside -= self.gpus_on(job, nodes);
    }

    fn gpus_on(&self, job: &Job, nodes: usize) -> u64 {
        nodes as u64 * u64::from(job.gpus.min(self.machine.gpus_per_node))
    }

    /// A job was preempted.
    pub fn preempted(&mut self) {
        self.preemptions += 1;
    }

    /// A node failed.
    pub fn failed(&mut self) {
        self.failures += 1;
    }

    /// The figures.
    pub fn finish(self, method: Method) -> Figures {
        let seconds = ((self.window.1 - self.window.0) as f64).max(1.0);
        let gpu_seconds = self.machine.gpus() as f64 * seconds;
        let waits = |select: &dyn Fn(&Job) -> bool| -> Vec<Time> {
            self.waits.iter().filter(|(job, _)| select(job)).map(|&(_, wait)| wait).collect()
        };
        let gangs = waits(&|job| job.nodes > 1);
        let small = waits(&|job| job.nodes == 1);
        let largest = self.largest_tenth();
        let largest = waits(&|job| job.nodes > 1 && job.nodes >= largest);
        let slowdown = |&(job, wait): &(Job, Time)| {
            let run = job.run.max(10) as f64;
            ((wait + job.run) as f64 / run).max(1.0)
        };
        let mut sizes: BTreeMap<u32, Vec<Time>> = BTreeMap::new();
        self.waits.iter().for_each(|&(job, wait)| sizes.entry(job.gpus).or_default().push(wait));
        let by_size = sizes.into_iter().map(|(gpus, waits)| {
            let (wait_mean_s, wait_p95_s) = (mean(&waits), percentile_95(&waits));
            SizeFigures { gpus, jobs: waits.len(), wait_mean_s, wait_p95_s }
        });
        let warm = self.series.time.partition_point(|&time| time < self.window.0);
        let share = |part: usize| 100.0 * part as f64 / (self.gangs.max(1)) as f64;
        let average = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
        let largest_gangs: Vec<f64> = self.series.largest_gang[warm..].iter().map(|&n| n.into()).collect();
        Figures {
            name: method.name(),
            jobs: self.waits.len(),
            gangs: self.gangs,
            gangs_spread_pct: share(self.spread_gangs),
            gangs_excess_pct: share(self.excess_gangs),
            utilisation: self.busy_seconds / gpu_seconds,
            effective_utilisation: self.useful_seconds / gpu_seconds,
            gang_wait_mean_s: mean(&gangs),
            gang_wait_p95_s: percentile_95(&gangs),
            largest_gangs_wait_mean_s: mean(&largest),
            small_wait_mean_s: mean(&small),
            small_wait_p95_s: percentile_95(&small),
            bounded_slowdown: self.waits.iter().map(slowdown).sum::<f64>() / self.waits.len().max(1) as f64,
            spread: self.spread_seconds / seconds,
            fragmentation: average(&self.series.fragmentation[warm..]),
            fragmentation_by_level: self
                .by_level
                .iter()
                .map(|&(sum, samples)| sum / samples.max(1) as f64)
                .collect(),
            largest_gang_mean: average(&largest_gangs),
            deadlocked_gpu_hours: self.aside_seconds / 3600.0,
            lost_gpu_hours: self.lost_seconds / 3600.0,
            preemptions: self.preemptions,
            failures: self.failures,
            makespan_s: self.now,
            by_size: by_size.collect(),
            series: self.series,
        }
    }

    /// The nodes from which on a gang belongs to the largest, which make up a tenth of all gangs' work.
    fn largest_tenth(&self) -> u32 {
        let mut work: BTreeMap<u32, u64> = BTreeMap::new();
        for (job, _) in self.waits.iter().filter(|(job, _)| job.nodes > 1) {
            *work.entry(job.nodes).or_default() += u64::from(job.gpus) * job.run.unsigned_abs();
        }
        let tenth = work.values().sum::<u64>() / 10;
        let mut sum = 0;
        let from = work.iter().rev().find(|(_, work)| {
            sum += *work;
            sum >= tenth
        });
        from.map_or(0, |(&nodes, _)| nodes)
    }
}

fn mean(waits: &[Time]) -> f64 {
    waits.iter().sum::<Time>() as f64 / waits.len().max(1) as f64
}

fn percentile_95(waits: &[Time]) -> f64 {
    let mut waits = waits.to_vec();
    if waits.is_empty() {
        return 0.0;
    }
    let at = (waits.len() * 95).div_ceil(100) - 1;
    *waits.select_nth_unstable(at).1 as f64
}
