//! Slurm's own test suite, run against stock Slurm and against Lockstep in its place: no test may be worse.
//!
//! `make peers`, or `cargo run --release --example peers -- SUITE [--only 1.83,15.21]`, where SUITE is the folder `testsuite` of
//! the source tree of the Slurm that is installed; `make peers` brings it. Two clusters of eight slurmds run side by side, one
//! with stock select/cons_tres and one with the drop-in, both without a topology plugin and with the same topology.conf. The
//! tests are those of the suite's `expect` part that look at what a select plugin does. Its Python part starts clusters
//! of its own and is left out. Each test has three minutes. Needs `expect`.

#[path = "../slurm/harness/mod.rs"]
mod harness;

use comfy_table::{Table, presets::UTF8_FULL_CONDENSED};
use harness::{Cluster, Install, Nodes, Setup};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// Topology, task and node counts, core layout, GRES, suspension, reservations, het jobs, resizing, priorities.
const TESTS: &[(&str, &[u32])] = &[
    ("1", &[76, 83, 84, 91, 97, 113, 114, 119]),
    ("2", &[12]),
    ("3", &[7, 11]),
    ("4", &[12]),
    ("5", &[11]),
    ("7", &[7]),
    ("15", &[21, 39]),
    ("17", &[11, 34, 36, 40, 63]),
    ("24", &[1, 3, 4]),
    ("33", &[1]),
    ("38", &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19]),
    ("39", &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 22, 23]),
    ("40", &[1, 2, 3, 4, 5, 6]),
];
const PATIENCE: Duration = Duration::from_secs(180);
/// How much of what a failed test said is shown.
const LINES_SHOWN: usize = 20;

/// How a test ended, the better the less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Result {
    Passed,
    Skipped,
    Failed,
    TookTooLong,
}

impl fmt::Display for Result {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Passed => "passed",
            Self::Skipped => "skipped",
            Self::Failed => "FAILED",
            Self::TookTooLong => "took too long",
        })
    }
}

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let Some(suite) = args.next().map(PathBuf::from).filter(|suite| suite.join("expect/globals").exists())
    else {
        eprintln!("peers: name the folder testsuite of Slurm's source tree (`make peers` does)");
        return ExitCode::from(2);
    };
    if Command::new("expect").arg("-v").stdout(Stdio::null()).status().is_err() {
        eprintln!("peers: expect is missing; apt-get install expect");
        return ExitCode::from(2);
    }
    let only = args.nth(1);
    let tests: Vec<String> = TESTS
        .iter()
        .flat_map(|(group, numbers)| numbers.iter().map(move |number| format!("{group}.{number}")))
        .filter(|test| only.as_ref().is_none_or(|only| only.split(',').any(|wanted| wanted == test)))
        .collect();
    let run = |install: Install| {
        let (suite, tests) = (suite.clone(), tests.clone());
        std::thread::spawn(move || run(install, &suite, &tests))
    };
    let runs = [run(Install::Stock), run(Install::DropIn)];
    let [stock, ours] = runs.map(|run| run.join().expect("the cluster held"));

    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED).set_header(["test", "stock", "Lockstep", ""]);
    let mut worse = 0;
    for (test, (stock, ours)) in tests.iter().zip(stock.into_iter().zip(ours)) {
        worse += usize::from(ours > stock);
        let note = if ours > stock { "worse" } else { "" };
        table.add_row([test.as_str(), &stock.to_string(), &ours.to_string(), note]);
    }
    println!("{table}\n{worse} of {} tests are worse under Lockstep", tests.len());
    if worse == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs all tests one after the other on a cluster of their own.
fn run(install: Install, suite: &Path, tests: &[String]) -> Vec<Result> {
    let setup = Setup::new(install, Nodes::Real(8)).wired(4, 2);
    let cluster = Cluster::start(setup.extra("MaxArraySize=1001\nSlurmctldDebug=info"));
    // The tests write into the suite's folder.
    let folder = cluster.path("testsuite");
    let copied = Command::new("cp").arg("-r").arg(suite).arg(&folder).status();
    assert!(copied.is_ok_and(|status| status.success()), "cannot copy {}", suite.display());
    let source = suite.parent().unwrap_or(suite).display();
    let conf = format!(
        "SlurmSourceDir={source}\nSlurmBuildDir={source}\nSlurmInstallDir=/usr\nSlurmConfigDir={}\n",
        cluster.path("").display()
    );
    std::fs::write(folder.join("testsuite.conf"), conf).expect("the folder is ours");
    tests
        .iter()
        .map(|test| {
            let result = one(&cluster, &folder.join("expect"), test);
            eprintln!("{install:?}: {test} {result}");
            if result > Result::Skipped {
                let said = std::fs::read(cluster.path(&format!("test{test}.out"))).unwrap_or_default();
                let said = String::from_utf8_lossy(&said);
                let from = said.lines().count().saturating_sub(LINES_SHOWN);
                said.lines().skip(from).for_each(|line| eprintln!("    {line}"));
            }
            result
        })
        .collect()
}

fn one(cluster: &Cluster, folder: &Path, test: &str) -> Result {
    let output = std::fs::File::create(cluster.path(&format!("test{test}.out"))).expect("the folder is ours");
    let mut child = cluster
        .command("expect")
        .arg(format!("test{test}"))
        .current_dir(folder)
        .env("SLURM_TESTSUITE_CONF", folder.with_file_name("testsuite.conf"))
        .stderr(output.try_clone().expect("a file"))
        .stdout(output)
        .spawn()
        .expect("expect runs");
    let start = Instant::now();
    let result = loop {
        match child.try_wait().expect("it is our child").map(|status| status.code()) {
            Some(Some(0)) => break Result::Passed,
            // Up to 127 it failed; beyond, it says that it cannot run here.
            Some(Some(128..)) => break Result::Skipped,
            Some(_) => break Result::Failed,
            None if start.elapsed() > PATIENCE => {
                let _ = child.kill();
                let _ = child.wait();
                break Result::TookTooLong;
            }
            None => std::thread::sleep(Duration::from_millis(100)),
        }
    };
    // Whatever it left behind would be in the next one's way.
    let _ = cluster.try_slurm("scancel", &["--user", cluster.user()]);
    cluster.wait("the cluster is empty", |c| {
        let left = c.slurm("squeue", &["-h"]);
        left.is_empty()
    });
    result
}
