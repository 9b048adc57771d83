//! A large machine in a real slurmctld: 500 gangs for twice the nodes of 10,240 CLOUD nodes, under stock Slurm, under
//! Lockstep, and under no placement at all, one after the other. What does slurmctld take to have them submitted, and to
//! look at those that wait?
//!
//! `make bench-scale`, or `cargo run --release --example scale -- [--nodes 10240] [--gangs 500] [--seed 1]`. Nodes have 8
//! GPUs, 64 CPUs and 480,000 MB; 16 nodes a leaf, 16 leaves a spine, one core above. Gangs of 2 to 200 nodes, a size of
//! twice the nodes half as often; whole nodes; limits of 10 to 120 minutes. Nothing ends while this runs.
//!
//! The *floor* is Lockstep with answers that take no thought (`LOCKSTEP_TEST_FLOOR`): may run, in an hour, not now. What
//! is left is slurmctld's own. Between the submissions and the cycles that are counted Lockstep thinks, so that as many
//! gangs run and wait as elsewhere. Two things flatter the floor. While gangs are submitted none starts. And backfill asks
//! again and again for a gang, for the time after each reservation that it has made so far, until the answer is no later
//! than the next of these times: "in an hour" ends that sooner than an answer that is true. So the table has the number of
//! answers too, from a cycle of their own in which slurmctld logs them; each brings a round of slurmctld's own work.

#[path = "../../tests/slurm/harness/mod.rs"]
mod harness;

use comfy_table::{CellAlignment, Table, presets::UTF8_FULL_CONDENSED};
use harness::{Cluster, Install, Nodes, Setup};
use lockstep::simulator::trace::{Synthetic, TraceJob};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const LEAF: usize = 16;
const SPINE: usize = 16;
const GPUS: u32 = 8;
/// Nodes of the smallest and of the largest gang.
const GANG: (u32, u32) = (2, 200);
/// Backfill cycles after the last submission that are not counted: the first may have begun before it, and the next may
/// still start gangs.
const SETTLE: f64 = 2.0;
/// Backfill cycles that are counted. Under stock Slurm one takes about a minute.
const CYCLES: f64 = 4.0;
/// How long any number of cycles may take.
const PATIENCE: Duration = Duration::from_secs(1800);

fn main() {
    let mut options = BTreeMap::from([("--nodes", 10_240), ("--gangs", 500), ("--seed", 1)]);
    let mut args = std::env::args().skip(1);
    while let Some(name) = args.next() {
        let value = args.next().and_then(|value| value.parse().ok());
        match (options.iter_mut().find(|(known, _)| **known == name), value) {
            (Some((_, option)), Some(value)) => *option = value,
            _ => panic!("scale: `{name}` is none of --nodes, --gangs and --seed with a whole number"),
        }
    }
    let nodes = usize::try_from(options["--nodes"]).expect("a number of nodes");
    let largest = u32::try_from(nodes).map_or(GANG.1, |nodes| nodes.min(GANG.1));
    let gangs = gangs(options["--gangs"], options["--seed"], largest);
    let wanted: u32 = gangs.iter().map(|gang| gang.devices / GPUS).sum();
    println!("{} gangs want {wanted} nodes of {nodes}", gangs.len());
    let runs = [
        ("stock topology/tree", Install::Stock, "topology/tree", false),
        ("Lockstep", Install::DropIn, "topology/none", false),
        ("floor", Install::DropIn, "topology/none", true),
    ];
    let figures = runs.map(|(name, install, topology_plugin, is_floor)| {
        println!("{name} ...");
        let floor = is_floor.then(Floor::new);
        measure(&start(nodes, install, topology_plugin, floor.as_ref()), &gangs, floor.as_ref())
    });
    println!("{}", table(runs.map(|(name, ..)| name), &figures));
}

/// Gangs that come all at once. The same seed gives the same gangs.
fn gangs(count: u64, seed: u64, largest: u32) -> Vec<TraceJob> {
    let minutes = 60;
    let synthetic = Synthetic {
        jobs: usize::try_from(count).expect("a number of gangs"),
        capacity_devices: 0,
        mix: (GANG.0..=largest).map(|nodes| (nodes * GPUS, 1.0 / f64::from(nodes))).collect(),
        large_run: (10 * minutes, 120 * minutes),
        seed,
        ..Synthetic::default()
    };
    synthetic.generate().jobs
}

fn start(nodes: usize, install: Install, topology_plugin: &'static str, floor: Option<&Floor>) -> Cluster {
    let mut setup = Setup::new(install, Nodes::Cloud(nodes)).wired(LEAF, SPINE);
    let spines = nodes.div_ceil(LEAF).div_ceil(SPINE);
    let wiring = setup.topology.unwrap_or_default();
    setup.topology = Some(format!("{wiring}SwitchName=core Switches=spine[1-{spines}]\n"));
    (setup.cpus, setup.memory_mb, setup.gpus) = (64, 480_000, GPUS);
    setup.topology_plugin = topology_plugin;
    // Backfill may take the time that it needs for all gangs, and goes on where slurmctld had other work.
    let setup = setup.extra(
        "SlurmctldDebug=info\n\
         SchedulerParameters=bf_interval=5,bf_max_time=600,bf_continue,bf_max_job_test=1000,bf_resolution=60,\
         default_queue_depth=1000,sched_interval=5,max_rpc_cnt=0",
    );
    Cluster::start(match floor {
        Some(floor) => setup.env("LOCKSTEP_TEST_FLOOR", &floor.switch().to_string_lossy()),
        None => setup,
    })
}

/// The switch of the floor: Lockstep answers without thought while a file is there.
struct Floor(TempDir);

impl Floor {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    fn switch(&self) -> PathBuf {
        self.0.path().join("floor")
    }

    fn set(&self, is_on: bool) {
        let set = if is_on { fs::write(self.switch(), "") } else { fs::remove_file(self.switch()) };
        set.expect("the floor's switch");
    }
}

/// What slurmctld took.
struct Figures {
    run: usize,
    wait: usize,
    /// For all submissions, one after the other.
    submissions_s: f64,
    /// The mean cycle of the main scheduler while gangs are submitted, and then.
    submitting_ms: f64,
    waiting_ms: f64,
    /// A cycle of backfill, and how many gangs it tries.
    backfill_ms: f64,
    tried: f64,
    /// The CPU time of a cycle: what it would take if nothing else ran on this machine.
    backfill_cpu_ms: f64,
    /// How many answers it asks for in a cycle.
    answers: f64,
    memory_mib: f64,
}

impl Figures {
    /// Backfill's time for each gang that it tries.
    fn gang_ms(&self) -> f64 {
        self.backfill_ms / self.tried.max(1.0)
    }

    fn gang_cpu_ms(&self) -> f64 {
        self.backfill_cpu_ms / self.tried.max(1.0)
    }

    /// The same for each answer.
    fn answer_cpu_ms(&self) -> f64 {
        self.backfill_cpu_ms / self.answers.max(1.0)
    }
}

fn measure(cluster: &Cluster, gangs: &[TraceJob], floor: Option<&Floor>) -> Figures {
    let set_floor = |is_on| floor.into_iter().for_each(|floor| floor.set(is_on));
    set_floor(true);
    cluster.slurm("sdiag", &["--reset"]);
    let start = Instant::now();
    for gang in gangs {
        let nodes = format!("-N{}", gang.devices / GPUS);
        let limit = format!("--time={}", gang.limit.unwrap_or(60) / 60);
        cluster.submit(600, &[&nodes, "--exclusive", &limit, &format!("--gpus-per-node={GPUS}")]);
    }
    let submissions_s = start.elapsed().as_secs_f64();
    let at_end = Statistics::read(cluster);
    set_floor(false);

    // A cycle that is under way at a reset would count with all its time and a part of its gangs. The reset comes right
    // after a cycle, in the seconds until the next.
    wait_for_backfill(cluster, at_end.backfill("Total cycles") + SETTLE);
    set_floor(true);
    cluster.slurm("sdiag", &["--reset"]);
    let cpu_before_ms = backfill_cpu_ms(cluster);
    wait_for_backfill(cluster, CYCLES);
    let statistics = Statistics::read(cluster);
    let cpu_ms = backfill_cpu_ms(cluster) - cpu_before_ms;
    let memory_mib = resident_kib(cluster) / 1024.0;
    cluster.slurm("scontrol", &["setdebug", "debug2"]);
    wait_for_backfill(cluster, statistics.backfill("Total cycles") + 1.0);

    let jobs = cluster.jobs();
    Figures {
        run: jobs.iter().filter(|job| job.holds_nodes()).count(),
        wait: jobs.iter().filter(|job| job.is("PENDING")).count(),
        submissions_s,
        submitting_ms: at_end.main("Mean cycle") / 1000.0,
        waiting_ms: statistics.main("Mean cycle") / 1000.0,
        backfill_ms: statistics.backfill("Mean cycle") / 1000.0,
        backfill_cpu_ms: cpu_ms / statistics.backfill("Total cycles"),
        tried: statistics.backfill("Depth Mean (try depth)"),
        answers: cluster.logged(&["entering _try_sched for JobId="]).len() as f64,
        memory_mib,
    }
}

fn wait_for_backfill(cluster: &Cluster, cycles: f64) {
    cluster.wait_for(PATIENCE, "backfill has run through", |cluster| {
        std::thread::sleep(Duration::from_millis(500));
        Statistics::read(cluster).backfill("Total cycles") >= cycles
    });
}

/// What sdiag says. Times are in microseconds.
struct Statistics(String);

impl Statistics {
    fn read(cluster: &Cluster) -> Self {
        Self(cluster.slurm("sdiag", &[]))
    }

    fn main(&self, name: &str) -> f64 {
        self.field("Main schedule statistics", name)
    }

    fn backfill(&self, name: &str) -> f64 {
        self.field("Backfilling stats", name)
    }

    /// Zero while there was no cycle: sdiag then leaves means out.
    fn field(&self, section: &str, name: &str) -> f64 {
        let section = self.0.split(section).nth(1).unwrap_or_default();
        let mut lines = section.lines().skip(1).take_while(|line| line.starts_with(['\t', ' ']));
        let value = lines.find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':'));
        value.and_then(|value| value.trim().parse().ok()).unwrap_or(0.0)
    }
}

/// What the kernel says of slurmctld.
fn process(cluster: &Cluster) -> PathBuf {
    let pid = cluster.controller_pid().expect("slurmctld runs");
    PathBuf::from(format!("/proc/{pid}"))
}

/// The CPU time of slurmctld's backfill thread so far.
fn backfill_cpu_ms(cluster: &Cluster) -> f64 {
    let threads = fs::read_dir(process(cluster).join("task")).expect("slurmctld's threads");
    let mut threads = threads.flatten().map(|thread| thread.path());
    let is_backfill =
        |thread: &PathBuf| fs::read_to_string(thread.join("comm")).is_ok_and(|name| name.trim() == "bckfl");
    let thread = threads.find(is_backfill).expect("slurmctld's backfill thread");
    let statistics = fs::read_to_string(thread.join("schedstat")).expect("the thread's statistics");
    let nanoseconds = statistics.split_whitespace().next().and_then(|time| time.parse::<f64>().ok());
    nanoseconds.expect("CPU time in the thread's statistics") / 1e6
}

/// slurmctld's resident memory.
fn resident_kib(cluster: &Cluster) -> f64 {
    let status = fs::read_to_string(process(cluster).join("status")).expect("slurmctld's status");
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next());
    resident.and_then(|kib| kib.parse().ok()).expect("VmRSS in slurmctld's status")
}

fn table(names: [&str; 3], figures: &[Figures; 3]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    let [stock, lockstep, floor] = names;
    table.set_header(["", stock, lockstep, floor, "Lockstep / stock", "Lockstep / floor"]);
    (1..6).for_each(|column| {
        table.column_mut(column).expect("a column").set_cell_alignment(CellAlignment::Right);
    });
    let mut counts = |what: &str, count: fn(&Figures) -> f64| {
        let cells = figures.each_ref().map(|figures| format!("{:.0}", count(figures)));
        table.add_row([vec![what.to_string()], cells.to_vec()].concat());
    };
    counts("gangs that run", |figures| figures.run as f64);
    counts("gangs that wait", |figures| figures.wait as f64);
    counts("gangs that backfill tries in a cycle", |figures| figures.tried);
    counts("answers that it asks for", |figures| figures.answers);
    let mut costs = |what: &str, unit: &str, cost: fn(&Figures) -> f64| {
        let [stock, lockstep, floor] = figures.each_ref().map(cost);
        let cells = [stock, lockstep, floor].map(|cost| format!("{cost:.2} {unit}"));
        let ratios = [stock, floor].map(|base| match base {
            0.0 => String::new(),
            base => format!("{:.3}", lockstep / base),
        });
        table.add_row([vec![what.to_string()], cells.to_vec(), ratios.to_vec()].concat());
    };
    costs("submissions, all", "s", |figures| figures.submissions_s);
    costs("main scheduler, mean cycle while submitting", "ms", |figures| figures.submitting_ms);
    costs("main scheduler, mean cycle then", "ms", |figures| figures.waiting_ms);
    costs("backfill, mean cycle", "ms", |figures| figures.backfill_ms);
    costs("backfill, for each gang tried", "ms", Figures::gang_ms);
    costs("the same, CPU time", "ms", Figures::gang_cpu_ms);
    costs("backfill, CPU time for each answer", "ms", Figures::answer_cpu_ms);
    costs("slurmctld's resident memory", "MiB", |figures| figures.memory_mib);
    table
}
