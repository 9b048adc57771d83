//! A gang that needs a whole spine, under small jobs that never stop coming.

use super::traffic::now;
use crate::harness::{Cluster, Install, Nodes, Setup, hosts};
use std::thread;
use std::time::Duration;

const NODES: usize = 16;
/// Two leaves of four.
const SPINE: usize = 8;
/// A start may be so many seconds later than was said: a job's end, and a scheduler's turn, come a little late.
const SLACK: f64 = 12.0;
/// Longer than the ledger takes to hear of a changed time limit (`REFRESH_SECONDS`).
const REFRESHED: Duration = Duration::from_secs(11);

/// What became of the gang; times in seconds since its submission.
#[derive(Debug)]
struct Fate {
    forecast: f64,
    started: Option<f64>,
    nodes: Vec<String>,
    /// Small jobs that came after the gang and started before it.
    overtaken_by: usize,
}

struct Line {
    id: String,
    name: String,
    holds_nodes: bool,
    nodes: String,
    start: Option<f64>,
    end: Option<f64>,
}

fn look(cluster: &Cluster) -> Vec<Line> {
    let output = cluster
        .command("squeue")
        .args(["-a", "-h", "-r", "-t", "PENDING,CONFIGURING,RUNNING", "-o", "%i|%j|%T|%N|%S|%e"])
        .env("SLURM_TIME_FORMAT", "%s")
        .output()
        .unwrap();
    assert!(output.status.success());
    let lines = String::from_utf8(output.stdout).unwrap();
    let lines = lines.lines().map(|line| {
        let fields: Vec<&str> = line.split('|').collect();
        Line {
            id: fields[0].into(),
            name: fields[1].into(),
            holds_nodes: fields[2] != "PENDING",
            nodes: fields[3].into(),
            start: fields[4].parse().ok(),
            end: fields[5].parse().ok(),
        }
    });
    lines.collect()
}

/// Jobs on CLOUD nodes do not end by themselves: ends those whose time is over, and keeps others waiting.
fn drive(cluster: &Cluster, lines: &[Line]) {
    let over = lines
        .iter()
        .filter(|line| line.name != "gang" && line.holds_nodes && line.end.is_some_and(|end| end <= now()));
    let over: Vec<&str> = over.map(|line| line.id.as_str()).collect();
    if !over.is_empty() {
        cluster.slurm("scancel", &over);
    }
    if lines.iter().filter(|line| line.name == "later" && !line.holds_nodes).count() < 2 * NODES {
        cluster.submit(600, &["--array=1-16", "--job-name=later", "-N1", "--exclusive", "--time=1"]);
    }
}

fn full_spine_gang(install: Install, topology_plugin: &'static str) -> Fate {
    let mut setup = Setup::new(install, Nodes::Cloud(NODES)).wired(4, 2);
    setup.topology = Some(setup.topology.unwrap() + "SwitchName=core Switches=spine[1-2]\n");
    setup.topology_plugin = topology_plugin;
    let cluster = Cluster::start(setup);
    // The machine is full, and its nodes become free one after the other.
    let early: Vec<u32> = (0..NODES)
        .map(|_| cluster.submit(600, &["--job-name=early", "-N1", "--exclusive", "--time=1"]))
        .collect();
    cluster.wait("the machine is full", |c| look(c).iter().filter(|line| line.holds_nodes).count() == NODES);
    for (turn, id) in early.iter().enumerate() {
        let end = format!("EndTime=now+{}", 20 + turn * 7 % NODES * 3 / 2);
        cluster.slurm("scontrol", &["update", &format!("JobId={id}"), &end]);
    }
    thread::sleep(REFRESHED);
    let submitted = now();
    let size = format!("-N{SPINE}");
    cluster.submit(600, &["--job-name=gang", &size, "--exclusive", "--time=10"]);
    let mut fate = Fate { forecast: f64::INFINITY, started: None, nodes: Vec::new(), overtaken_by: 0 };
    loop {
        let lines = look(&cluster);
        let gang = lines.iter().find(|line| line.name == "gang").unwrap();
        let start = gang.start.map(|start| start - submitted);
        if gang.holds_nodes {
            (fate.started, fate.nodes) = (start, hosts(&gang.nodes));
            return fate;
        }
        if let (Some(start), true) = (start, fate.forecast.is_infinite()) {
            fate.forecast = start;
        }
        fate.overtaken_by = fate
            .overtaken_by
            .max(lines.iter().filter(|line| line.name == "later" && line.holds_nodes).count());
        let waited = now() - submitted;
        // Stock Slurm is watched, not judged.
        if waited > 90.0 || waited > fate.forecast + SLACK {
            return fate;
        }
        drive(&cluster, &lines);
        thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn a_full_spine_gang_starts_when_it_was_first_said_to_under_endless_small_jobs() {
    let (stock, ours) = thread::scope(|scope| {
        let stock = scope.spawn(|| full_spine_gang(Install::Stock, "topology/tree"));
        let ours = full_spine_gang(Install::DropIn, "topology/none");
        (stock.join().unwrap(), ours)
    });
    println!("stock Slurm with topology/tree: {stock:?}\nLockstep: {ours:?}");
    let started = ours.started.expect("the gang starts");
    assert!(started <= ours.forecast + SLACK, "later than it was said: {ours:?}");
    assert!(ours.overtaken_by > 0, "no small job came between: {ours:?}");
    let wiring = Setup::new(Install::Stock, Nodes::Cloud(NODES)).wired(4, 2).topology.unwrap();
    assert_eq!(crate::harness::Wiring::of(&wiring).spines(&ours.nodes).len(), 1, "{ours:?}");
}
