//! `lockstep sim`: a trace of jobs, replayed under Lockstep and under others.

mod page;
mod table;

use crate::cluster::ClusterArgs;
use crate::{Outcome, report};
use clap::ValueEnum;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use lockstep::simulator::figures::Figures;
use lockstep::simulator::machine::Machine;
use lockstep::simulator::trace::{Synthetic, Trace};
use lockstep::simulator::workload::{Reading, Workload};
use lockstep::simulator::{Assumptions, Method, simulate};
use serde::Serialize;
use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;

/// Replays a trace of jobs under Lockstep and under other ways to place jobs, and compares them.
///
/// Without a trace, jobs are made up: Poisson arrivals of 1 to 64 GPUs. First come, first served, with EASY backfill.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A trace: a CSV of GPU jobs (ITP, Philly), Alibaba's openb pods, an SWF log, or the output of `sacct -P`
    trace: Option<PathBuf>,
    /// Offered load; submission times of a trace are stretched or compressed to meet it
    /// [default: 0.9 for made-up jobs, a trace as it is]
    #[arg(long, value_parser = positive)]
    load: Option<f64>,
    /// How many jobs [default: 5,000 made-up ones, all of a trace]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    jobs: Option<u64>,
    /// Seed of all that is left to chance
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Sizes of made-up jobs: GPUs=share,...
    #[arg(long, value_name = "MIX", value_parser = mix)]
    mix: Option<Mix>,
    /// Where a trace gives no time limit, it is the run time times this
    #[arg(long, default_value_t = 2.0, value_name = "FACTOR", value_parser = positive)]
    overestimate: f64,

    /// A topology file; its nodes are the machine
    #[arg(long, value_name = "FILE", conflicts_with_all = ["nodes", "leaf", "spine"], help_heading = "Machine")]
    topology: Option<PathBuf>,
    /// Nodes of a machine of three levels
    #[arg(long, default_value_t = 512, help_heading = "Machine", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    nodes: u32,
    /// Nodes under a leaf
    #[arg(long, default_value_t = 16, help_heading = "Machine", value_parser = clap::value_parser!(u32).range(1..))]
    leaf: u32,
    /// Leaves under a spine
    #[arg(long, default_value_t = 8, help_heading = "Machine", value_parser = clap::value_parser!(u32).range(1..))]
    spine: u32,
    /// GPUs of a node
    #[arg(long, default_value_t = 8, help_heading = "Machine", value_parser = clap::value_parser!(u32).range(1..=1024))]
    gpus_per_node: u32,

    /// What to compare
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "PLACER",
        default_value = "lockstep,slurm-tree,first-fit,pack,pods",
        help_heading = "Assumptions"
    )]
    placers: Vec<Placer>,
    /// The speed of a gang that lies 0, 1, 2, ... levels beyond its home level
    #[arg(long, value_delimiter = ',', value_name = "RATE", default_value = "1,0.8,0.55", value_parser = rate, help_heading = "Assumptions")]
    slowdown: Vec<f64>,
    /// How many waiting jobs a scheduling pass looks at
    #[arg(long, default_value_t = 500, value_name = "JOBS", help_heading = "Assumptions", value_parser = clap::value_parser!(u64).range(1..))]
    depth: u64,
    /// Seconds after which an incomplete gang of pods gives its pods back
    #[arg(long, default_value_t = 600, value_name = "SECONDS", help_heading = "Assumptions", value_parser = clap::value_parser!(i64).range(1..))]
    pod_timeout: i64,
    /// The share of jobs, drawn by seed, that are of low priority and may be preempted by the others
    #[arg(long, default_value_t = 0.0, value_name = "SHARE", value_parser = fraction, help_heading = "Assumptions")]
    preemptible: f64,
    /// Mean hours until a node fails [default: none fails]
    #[arg(long, value_name = "HOURS", value_parser = positive, help_heading = "Assumptions")]
    mtbf: Option<f64>,
    /// Hours until a failed node is back
    #[arg(long, default_value_t = 4.0, value_name = "HOURS", value_parser = positive, help_heading = "Assumptions")]
    repair: f64,
    /// The part of the submissions' span, from its start, that is not counted
    #[arg(long, default_value_t = 0.1, value_name = "SHARE", value_parser = fraction, help_heading = "Assumptions")]
    warm_up: f64,

    /// Print JSON
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// Write a page with plots
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    html: Option<PathBuf>,
}

const EXAMPLES: &str = "Examples:
  lockstep sim
  lockstep sim --nodes 512 --leaf 8 --spine 8 --load 1.0 --html sim.html
  lockstep sim cluster04.csv --nodes 64 --leaf 8 --spine 4 --load 0.9
  lockstep sim NASA-iPSC-1993-3.1-cln.swf --gpus-per-node 1 --nodes 128 --leaf 16 --spine 4
  sacct -P -a -S 2026-11-01 -o JobID,Submit,Start,End,Elapsed,Timelimit,AllocTRES > jobs.txt
  lockstep sim jobs.txt --topology /etc/slurm/topology.conf --json | jq '.placers[].gang_wait_mean_s'

What is assumed, and what each figure means: docs/simulator.md. Exit codes: 0, or 2 if there is nothing to simulate.";

type Mix = Vec<(u32, f64)>;

/// What to compare.
#[derive(Clone, Copy, ValueEnum)]
enum Placer {
    /// One domain of the home level, exactly the least hole cost
    Lockstep,
    /// Stock Slurm's topology/tree
    SlurmTree,
    /// The first free nodes by index
    FirstFit,
    /// Lockstep without hole cost
    Pack,
    /// Each worker alone, as plain pod schedulers do
    Pods,
}

impl From<Placer> for Method {
    fn from(placer: Placer) -> Self {
        match placer {
            Placer::Lockstep => Self::Lockstep,
            Placer::SlurmTree => Self::SlurmTree,
            Placer::FirstFit => Self::FirstFit,
            Placer::Pack => Self::Pack,
            Placer::Pods => Self::Pods,
        }
    }
}

fn number(text: &str, fits: impl Fn(f64) -> bool, what: &str) -> Result<f64, String> {
    text.parse().ok().filter(|&number| fits(number)).ok_or_else(|| format!("not {what}"))
}

fn positive(text: &str) -> Result<f64, String> {
    number(text, |number| number.is_finite() && number > 0.0, "a number above 0")
}

fn fraction(text: &str) -> Result<f64, String> {
    number(text, |number| (0.0..1.0).contains(&number), "a number from 0 to below 1")
}

fn rate(text: &str) -> Result<f64, String> {
    number(text, |number| number > 0.0 && number <= 1.0, "a number above 0, at most 1")
}

fn mix(text: &str) -> Result<Mix, String> {
    let part = |part: &str| {
        let (gpus, share) = part.split_once('=')?;
        Some((gpus.trim().parse().ok().filter(|&gpus| gpus > 0)?, positive(share.trim()).ok()?))
    };
    text.split(',').map(|text| part(text).ok_or_else(|| format!("`{text}` is not GPUs=share"))).collect()
}

/// What a run came to, as JSON.
#[derive(Serialize)]
struct Run<'a> {
    parameters: Parameters,
    placers: &'a [Figures],
}

/// What a run was about.
#[derive(Serialize)]
struct Parameters {
    trace: String,
    jobs: usize,
    left_out: BTreeMap<String, usize>,
    offered_load: f64,
    span_s: i64,
    nodes: usize,
    leaves: usize,
    levels: usize,
    gpus_per_node: u32,
    seed: u64,
    overestimate: f64,
    slowdown: Vec<f64>,
    depth: u64,
    pod_timeout_s: i64,
    preemptible: f64,
    mtbf_hours: Option<f64>,
    repair_hours: f64,
    warm_up: f64,
}

pub fn run(args: &Args) -> Outcome {
    let machine = args.machine()?;
    let trace = args.read_trace(&machine)?;
    let reading = Reading { overestimate: args.overestimate, low_share: args.preemptible, seed: args.seed };
    let workload = Workload::new(&trace, &machine, reading);
    if workload.jobs.is_empty() {
        return Err("no job of the trace fits the machine; give a larger one".into());
    }
    // Before the work, so that a page that cannot be written does not cost a long simulation.
    let page = args
        .html
        .as_ref()
        .map(|file| File::create(file).map_err(|error| format!("cannot write {}: {error}", file.display())));
    let page = page.transpose()?;
    let assumptions = args.assumptions();
    let methods: Vec<Method> = args.placers.iter().map(|&placer| placer.into()).collect();
    let figures = compare(&machine, &workload, &assumptions, &methods);
    let parameters = args.parameters(&machine, &trace, &workload);
    if let Some(mut file) = page {
        file.write_all(page::render(&parameters, &figures, &machine)?.as_bytes())?;
    }
    let run = Run { parameters, placers: &figures };
    report::show(&if args.json { report::json(&run)? } else { table::text(&run.parameters, &figures) })?;
    Ok(ExitCode::SUCCESS)
}

/// Simulates all methods, as many at a time as there are processors, with a progress bar for each.
fn compare(
    machine: &Machine,
    workload: &Workload,
    assumptions: &Assumptions,
    methods: &[Method],
) -> Vec<Figures> {
    let bars = MultiProgress::new();
    let style =
        ProgressStyle::with_template("{prefix:>10} {bar:40} {human_pos} of {human_len} jobs, {eta} left");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    let work: Vec<(Method, ProgressBar)> = methods
        .iter()
        .map(|&method| {
            let bar = bars.add(ProgressBar::new(workload.jobs.len() as u64));
            (method, bar.with_prefix(method.name()).with_style(style.clone()))
        })
        .collect();
    let next = Mutex::new(work.iter().enumerate());
    let done: Mutex<Vec<(usize, Figures)>> = Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(methods.len());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let taken = next.lock().ok().and_then(|mut next| next.next());
                    let Some((place, (method, bar))) = taken else { break };
                    let told = |ended: usize| bar.set_position(ended as u64);
                    let figures = simulate(machine, workload, assumptions, *method, told);
                    bar.finish_and_clear();
                    if let Ok(mut done) = done.lock() {
                        done.push((place, figures));
                    }
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_default();
    done.sort_by_key(|&(place, _)| place);
    done.into_iter().map(|(_, figures)| figures).collect()
}

impl Args {
    fn machine(&self) -> Result<Machine, Box<dyn Error>> {
        let Some(topology) = &self.topology else {
            return Ok(Machine::regular(self.nodes, self.leaf, self.spine, self.gpus_per_node));
        };
        let cluster = ClusterArgs::alone(topology).read(None)?;
        report::to_stderr(&cluster.diagnostics);
        let fabric =
            cluster.reading.fabric.ok_or_else(|| format!("{} gives no fabric", topology.display()))?;
        Ok(Machine { fabric, gpus_per_node: self.gpus_per_node })
    }

    fn read_trace(&self, machine: &Machine) -> Result<Trace, Box<dyn Error>> {
        let Some(file) = &self.trace else {
            let jobs = self.jobs.unwrap_or(5_000) as usize;
            let load = self.load.unwrap_or(0.9);
            let usual = Synthetic::default();
            let mix = self.mix.clone().unwrap_or(usual.mix);
            let (capacity_devices, seed) = (machine.gpus(), self.seed);
            return Ok(Synthetic { jobs, load, capacity_devices, mix, seed, ..usual }.generate());
        };
        let mut trace = Trace::read(file)?;
        if let Some(jobs) = self.jobs {
            trace.truncate(jobs as usize);
        }
        if let Some(load) = self.load {
            if trace.offered_load(machine.gpus()).is_none() {
                return Err(format!(
                    "{}: all jobs come at once, so there is no load to meet",
                    file.display()
                )
                .into());
            }
            trace.scale_to_load(load, machine.gpus());
        }
        Ok(trace)
    }

    fn assumptions(&self) -> Assumptions {
        Assumptions {
            step_rates: self.slowdown.clone(),
            depth: self.depth as usize,
            pod_timeout: self.pod_timeout,
            preempt: self.preemptible > 0.0,
            mtbf: self.mtbf.map(|hours| hours * 3600.0),
            repair: (self.repair * 3600.0).ceil() as i64,
            seed: self.seed,
            warm_up: self.warm_up,
        }
    }

    fn parameters(&self, machine: &Machine, trace: &Trace, workload: &Workload) -> Parameters {
        let mut left_out: BTreeMap<String, usize> =
            trace.skipped.iter().map(|(&why, &jobs)| (why.to_string(), jobs)).collect();
        if workload.too_large > 0 {
            left_out.insert("larger than the machine".into(), workload.too_large);
        }
        Parameters {
            trace: self.trace.as_ref().map_or("made up".into(), |file| file.display().to_string()),
            jobs: workload.jobs.len(),
            left_out,
            offered_load: trace.offered_load(machine.gpus()).unwrap_or(0.0),
            span_s: trace.span(),
            nodes: machine.fabric.listed().count(),
            leaves: machine.fabric.at_level(0).len(),
            levels: machine.fabric.level_count(),
            gpus_per_node: machine.gpus_per_node,
            seed: self.seed,
            overestimate: self.overestimate,
            slowdown: self.slowdown.clone(),
            depth: self.depth,
            pod_timeout_s: self.pod_timeout,
            preemptible: self.preemptible,
            mtbf_hours: self.mtbf,
            repair_hours: self.repair,
            warm_up: self.warm_up,
        }
    }
}
