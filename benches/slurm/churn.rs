//! Churn in a real slurmctld: jobs come and go for some minutes on 512 CLOUD nodes, under stock Slurm, under stock Slurm
//! with `--switches=1` on every gang, and under Lockstep, one after the other; and the simulator on the same jobs.
//!
//! `make bench-churn`, or `cargo run --release --example churn -- [--load 1.0] [--seed 1] [--minutes 4] [--stock 1]
//! [--widen-after 0]`; `--stock 0` leaves the stock runs out, `--widen-after 10` adds a run of Lockstep in which gangs may
//! spread after 10 seconds of waiting. Nodes have 8 GPUs, 64 CPUs and 480,000 MB; 8 nodes a leaf, 8 leaves a spine, one core
//! above. Arrivals, sizes and run times are those of
//! `lockstep sim` without a trace. The driver cancels each job when its time is over. The first quarter is not counted.

#[path = "../../tests/slurm/harness/mod.rs"]
mod harness;

use comfy_table::{CellAlignment, Table, presets::UTF8_FULL_CONDENSED};
use harness::{Cluster, Install, Nodes, Setup, hosts};
use lockstep::simulator::machine::Machine;
use lockstep::simulator::trace::{Synthetic, Trace, TraceJob};
use lockstep::simulator::workload::{Reading, Workload};
use lockstep::simulator::{Assumptions, Method, simulate};
use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const NODES: u32 = 512;
const LEAF: u32 = 8;
const SPINE: u32 = 8;
const GPUS: u32 = 8;
/// The part of the time, from its start, that is not counted.
const WARM_UP: f64 = 0.25;

fn main() {
    let mut options = BTreeMap::from([
        ("--load", 1.0),
        ("--seed", 1.0),
        ("--minutes", 4.0),
        ("--stock", 1.0),
        ("--widen-after", 0.0),
    ]);
    let mut args = std::env::args().skip(1);
    while let Some(name) = args.next() {
        let value = args.next().and_then(|value| value.parse().ok());
        match (options.iter_mut().find(|(known, _)| **known == name), value) {
            (Some((_, option)), Some(value)) => *option = value,
            _ => panic!(
                "churn: `{name}` is none of --load, --seed, --minutes, --stock and --widen-after with a number"
            ),
        }
    }
    let span = options["--minutes"] * 60.0;
    let trace = jobs(options["--load"], options["--seed"] as u64, span);
    println!(
        "{} jobs in {span:.0} s, offered load {:.2}, on {NODES} nodes of {GPUS} GPUs",
        trace.jobs.len(),
        trace.device_seconds() as f64 / (f64::from(NODES * GPUS) * span)
    );
    let mut runs = Vec::new();
    if options["--stock"] > 0.0 {
        runs.push(("stock topology/tree".to_string(), stock(), false));
        runs.push(("stock, --switches=1".to_string(), stock(), true));
    }
    runs.push(("Lockstep".to_string(), lockstep(), false));
    let widen_after = options["--widen-after"];
    if widen_after > 0.0 {
        let policy = format!("[default]\nwiden_after = '{widen_after}s'\n");
        runs.push((format!("Lockstep, widen_after {widen_after} s"), lockstep().policy(&policy), false));
    }
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    table.set_header([
        "",
        "gangs on more leaves than needed",
        "crossing a spine for nothing",
        "utilisation",
        "gang wait mean / 95 %",
        "small-job wait mean",
        "backfill cycle mean",
    ]);
    (1..7).for_each(|column| {
        table.column_mut(column).expect("a column").set_cell_alignment(CellAlignment::Right);
    });
    for (name, setup, switches) in runs {
        println!("{name} ...");
        let row = Run::new(setup).drive(&trace, span, switches).row();
        table.add_row([vec![name], row].concat());
    }
    for (name, method) in [("simulated stock", Method::SlurmTree), ("simulated Lockstep", Method::Lockstep)] {
        let machine = Machine::regular(NODES, LEAF, SPINE, GPUS);
        let reading = Reading { overestimate: 1.0, low_share: 0.0, seed: 1 };
        let workload = Workload::new(&trace, &machine, reading);
        let assumptions = Assumptions { step_rates: vec![1.0], warm_up: WARM_UP, ..Assumptions::default() };
        let figures = simulate(&machine, &workload, &assumptions, method, |_| ());
        table.add_row([
            name.to_string(),
            format!("{:.1} %", figures.gangs_excess_pct),
            String::new(),
            format!("{:.1} %", 100.0 * figures.utilisation),
            format!("{:.1} / {:.1} s", figures.gang_wait_mean_s, figures.gang_wait_p95_s),
            format!("{:.1} s", figures.small_wait_mean_s),
            String::new(),
        ]);
    }
    println!("{table}");
}

fn stock() -> Setup {
    Setup { topology_plugin: "topology/tree", ..machine(Install::Stock) }
}

fn lockstep() -> Setup {
    machine(Install::DropIn)
}

fn machine(install: Install) -> Setup {
    let mut setup = Setup::new(install, Nodes::Cloud(NODES as usize)).wired(LEAF as usize, SPINE as usize);
    let spines = NODES / LEAF / SPINE;
    let wiring = setup.topology.unwrap_or_default();
    setup.topology = Some(format!("{wiring}SwitchName=core Switches=spine[1-{spines}]\n"));
    (setup.cpus, setup.memory_mb, setup.gpus) = (64, 480_000, GPUS);
    setup.extra(
        "SlurmctldDebug=info\n\
         SchedulerParameters=bf_interval=2,bf_resolution=1,bf_max_job_test=2000,default_queue_depth=500,batch_sched_delay=1",
    )
}

/// The jobs that are submitted within a time.
fn jobs(load: f64, seed: u64, span: f64) -> Trace {
    let machine = u64::from(NODES * GPUS);
    let synthetic = Synthetic { jobs: 20_000, load, capacity_devices: machine, seed, ..Synthetic::default() };
    let mut trace = synthetic.generate();
    trace.jobs.retain(|job| (job.submit as f64) < span);
    trace
}

/// One cluster with what happened on it.
struct Run {
    cluster: Cluster,
    begin: f64,
    span: f64,
    jobs: BTreeMap<u32, Seen>,
}

/// A job as it was seen.
struct Seen {
    job: TraceJob,
    /// Seconds since 1970.
    submitted: f64,
    started: Option<f64>,
    nodes: Vec<String>,
    is_cancelled: bool,
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64())
}

impl Run {
    fn new(setup: Setup) -> Self {
        Self { cluster: Cluster::start(setup), begin: 0.0, span: 0.0, jobs: BTreeMap::new() }
    }

    /// Submits the jobs when their time has come, and cancels them when it is over.
    fn drive(mut self, trace: &Trace, span: f64, switches: bool) -> Self {
        (self.begin, self.span) = (now(), span);
        let start = Instant::now();
        let mut next = trace.jobs.iter();
        let mut coming = next.next();
        let mut looked = Instant::now();
        while start.elapsed().as_secs_f64() < span {
            match coming {
                Some(job) if job.submit as f64 <= start.elapsed().as_secs_f64() => {
                    self.submit(*job, switches);
                    coming = next.next();
                }
                _ => std::thread::sleep(Duration::from_millis(10)),
            }
            if looked.elapsed() > Duration::from_millis(500) {
                self.look();
                looked = Instant::now();
            }
        }
        self.look();
        self
    }

    fn submit(&mut self, job: TraceJob, switches: bool) {
        let nodes = job.devices.div_ceil(GPUS);
        let gpus = job.devices.min(GPUS);
        let minutes = format!("--time={}", job.limit.unwrap_or(60) / 60);
        let mut args = vec![format!("-N{nodes}"), format!("--gpus-per-node={gpus}"), minutes];
        if nodes > 1 {
            args.push("--exclusive".into());
            args.extend(switches.then(|| "--switches=1@1-0".into()));
        } else {
            args.extend(["--cpus-per-gpu=8".to_string(), "--mem-per-gpu=60000".into()]);
        }
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let submitted = now();
        let id = self.cluster.submit(600, &args);
        self.jobs.insert(id, Seen { job, submitted, started: None, nodes: vec![], is_cancelled: false });
    }

    /// Takes note of jobs that started, and cancels those whose time is over.
    fn look(&mut self) {
        let output = self
            .cluster
            .command("squeue")
            .args(["-h", "-t", "RUNNING,CONFIGURING", "-o", "%i|%N|%S"])
            .env("SLURM_TIME_FORMAT", "%s")
            .output()
            .expect("squeue runs");
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let mut fields = line.split('|');
            let mut field = || fields.next().unwrap_or_default();
            let (id, nodes, started) = (field().parse(), field(), field().parse());
            if let (Ok(id), Ok(started)) = (id, started)
                && let Some(seen) = self.jobs.get_mut(&id)
                && seen.started.is_none()
            {
                (seen.started, seen.nodes) = (Some(started), hosts(nodes));
            }
        }
        let now = now();
        let over = |seen: &Seen| seen.started.is_some_and(|started| started + seen.job.run as f64 <= now);
        let over = self.jobs.iter_mut().filter(|(_, seen)| !seen.is_cancelled && over(seen));
        let over: Vec<String> = over
            .map(|(id, seen)| {
                seen.is_cancelled = true;
                id.to_string()
            })
            .collect();
        if !over.is_empty() {
            let over: Vec<&str> = over.iter().map(String::as_str).collect();
            self.cluster.slurm("scancel", &over);
        }
    }

    fn row(&self) -> Vec<String> {
        let (from, to) = (self.begin + WARM_UP * self.span, self.begin + self.span);
        let wiring = self.cluster.wiring();
        let counted = || self.jobs.values().filter(|seen| seen.submitted >= from);
        let started = || counted().filter(|seen| seen.started.is_some());
        let gangs: Vec<&Seen> = started().filter(|seen| seen.nodes.len() > 1).collect();
        let spread = gangs.iter().filter(|seen| wiring.excess(&seen.nodes) > 0).count();
        let fits_spine = |seen: &&&Seen| seen.nodes.len() <= (LEAF * SPINE) as usize;
        let crossing =
            gangs.iter().filter(fits_spine).filter(|seen| wiring.spines(&seen.nodes).len() > 1).count();
        let held: f64 = self
            .jobs
            .values()
            .filter_map(|seen| {
                let started = seen.started?;
                let seconds = (started + seen.job.run as f64).min(to) - started.max(from);
                Some(seconds.max(0.0) * f64::from(seen.job.devices))
            })
            .sum();
        // A job that still waits has waited at least until now; leaving it out would flatter.
        let wait = |seen: &Seen| seen.started.unwrap_or(to).max(seen.submitted) - seen.submitted.floor();
        let waits = |is_gang: bool| {
            let mut waits: Vec<f64> =
                counted().filter(|seen| (seen.job.devices > GPUS) == is_gang).map(wait).collect();
            waits.sort_by(f64::total_cmp);
            waits
        };
        let mean = |waits: &[f64]| waits.iter().sum::<f64>() / waits.len().max(1) as f64;
        let (gang_waits, small_waits) = (waits(true), waits(false));
        let p95 =
            gang_waits.get((gang_waits.len() * 95).div_ceil(100).saturating_sub(1)).copied().unwrap_or(0.0);
        let cycle = self.cluster.slurm("sdiag", &[]);
        let backfill = cycle.split("Backfilling stats").nth(1).unwrap_or_default();
        let field = |name: &str| {
            let value = backfill.lines().find_map(|line| line.trim().strip_prefix(name))?;
            value.trim().parse::<f64>().ok()
        };
        let cycle = field("Mean cycle:").unwrap_or(0.0) / 1000.0;
        vec![
            format!("{:.1} %", 100.0 * spread as f64 / gangs.len().max(1) as f64),
            format!("{crossing} of {}", gangs.len()),
            format!("{:.1} %", 100.0 * held / (f64::from(NODES * GPUS) * (to - from))),
            format!("{:.1} / {p95:.1} s", mean(&gang_waits)),
            format!("{:.1} s", mean(&small_waits)),
            format!("{cycle:.0} ms"),
        ]
    }
}
