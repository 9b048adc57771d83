//! slurmctld is killed in the middle of churn, again and again.

use super::traffic::{self, CHECK_LEDGER, Look, Traffic, finish, some};
use crate::churn::Dice;
use crate::harness::{Cluster, Install, Nodes, Setup, Wiring};
use std::fs;
use std::time::{Duration, Instant};

const NODES: usize = 32;
const LEAF: usize = 4;
const SPINE: usize = 8;
const KILLS: usize = 20;
/// The first job's number: four bytes that are hardly anything else in the file of saved jobs.
const FIRST_JOB: u32 = 50_000_000;

/// The jobs that a slurmctld which was killed had saved.
struct Saved {
    jobs: Vec<u8>,
    /// It holds what was so at this time, or later; seconds since 1970.
    at: f64,
}

impl Saved {
    fn read(cluster: &Cluster) -> Self {
        // slurmctld moves the last file aside before it puts the new one in its place.
        let files = ["state/job_state", "state/job_state.old"];
        let bytes = files.iter().find_map(|file| fs::read(cluster.path(file)).ok()).unwrap();
        // A string with its length before it and a NUL at its end, a version of two bytes, and the time.
        let head = b"PROTOCOL_VERSION\0";
        assert_eq!(&bytes[4..4 + head.len()], head, "a file of saved jobs");
        let time = 4 + head.len() + 2;
        let at = u64::from_be_bytes(bytes[time..time + 8].try_into().unwrap());
        assert!((traffic::now() - at as f64).abs() < 600.0, "{at} is no time of this test");
        // The number that the next job will get follows, then the jobs.
        Self { jobs: bytes[time + 12..].to_vec(), at: at as f64 }
    }

    fn holds(&self, job: u32) -> bool {
        self.jobs.windows(4).any(|word| word == job.to_be_bytes())
    }
}

/// What the kills met.
#[derive(Default, Debug)]
struct Met {
    saved: usize,
    running: usize,
    never_saved: usize,
    started: usize,
}

/// slurmctld is up again with the jobs of this file: whatever that held is as it was.
fn check_what_was_saved(traffic: &mut Traffic, cluster: &Cluster, saved: &Saved, met: &mut Met) {
    let jobs = cluster.jobs();
    traffic.jobs.retain(|&id, seen| {
        let job = jobs.iter().find(|job| job.id == id.to_string() && job.name == seen.name);
        let Some(job) = job else {
            assert!(seen.at >= saved.at && !saved.holds(id), "lost, but was saved: {id} {}", seen.name);
            met.never_saved += 1;
            return false;
        };
        met.saved += usize::from(job.holds_nodes() || job.is("PENDING"));
        let was_saved_with_nodes = !seen.nodes.is_empty() && seen.placed_at < saved.at;
        if was_saved_with_nodes && !seen.is_cancelled {
            assert!(job.holds_nodes(), "no longer runs: {job:?}");
            met.running += 1;
        }
        if was_saved_with_nodes && job.holds_nodes() {
            assert_eq!(job.nodes, seen.nodes, "moved: {job:?}");
        }
        if !was_saved_with_nodes {
            // It was never saved that it started, so it may start elsewhere.
            seen.nodes.clear();
        }
        // A cancellation that was not saved is forgotten too.
        seen.is_cancelled &= !job.holds_nodes() && !job.is("PENDING");
        true
    });
}

fn look(traffic: &mut Traffic, cluster: &Cluster, wiring: &Wiring, met: &mut Met) -> Look {
    let look = traffic.look(cluster);
    for job in &look.started {
        if traffic::size(job) <= LEAF {
            assert_eq!(wiring.leaves(&job.nodes).len(), 1, "crosses a leaf for nothing: {job:?}");
        } else if traffic::size(job) <= SPINE {
            assert_eq!(wiring.spines(&job.nodes).len(), 1, "crosses a spine for nothing: {job:?}");
        }
    }
    met.started += look.started.len();
    look
}

#[test]
fn twenty_kills_in_the_middle_of_churn_lose_and_move_nothing_that_was_saved() {
    let setup = Setup::new(Install::DropIn, Nodes::Cloud(NODES)).wired(LEAF, SPINE / LEAF);
    let core = format!("SwitchName=core Switches=spine[1-{}]\n", NODES / SPINE);
    let topology = setup.topology.clone().unwrap() + &core;
    let setup = setup.topology(&topology).extra(&format!("FirstJobId={FIRST_JOB}\n{CHECK_LEDGER}"));
    let mut cluster = Cluster::start(setup);
    let wiring = cluster.wiring();
    let (mut traffic, mut dice, mut met) = (Traffic::default(), Dice(9_220_508), Met::default());
    let sizes = [1, 1, 1, 2, 2, 3, 4, 4, 6, 8, 12];
    finish(traffic.submit(&cluster, &mut dice, 20, &sizes));
    for kill in 0..KILLS {
        // slurmctld saves its jobs when it is up, and then every five or six seconds: most lives are short, some see it save.
        let life = if kill % 7 == 0 { 6200 } else { dice.below(700) };
        let (begin, started) = (Instant::now(), met.started);
        let mut under_way = Vec::new();
        cluster.wait("jobs start", |c| {
            let Look { holding, waiting, .. } = look(&mut traffic, c, &wiring, &mut met);
            finish(under_way.drain(..));
            under_way.extend(traffic.cancel(c, &some(&holding, &mut dice, 15)));
            if waiting.len() > 30 {
                under_way.extend(traffic.cancel(c, &some(&waiting, &mut dice, 4)));
            }
            let count = 1 + dice.below(4);
            under_way.extend(traffic.submit(c, &mut dice, count, &sizes));
            met.started > started && begin.elapsed() > Duration::from_millis(life as u64)
        });
        traffic::check_log(&cluster);
        under_way.extend(traffic.submit(&cluster, &mut dice, 3, &sizes));
        // Commands are under way when it dies; those that it does not answer try again, or give up.
        std::thread::sleep(Duration::from_millis(dice.below(60) as u64));
        cluster.kill_controller();
        let saved = Saved::read(&cluster);
        cluster.start_controller();
        check_what_was_saved(&mut traffic, &cluster, &saved, &mut met);
        finish(under_way);
    }
    look(&mut traffic, &cluster, &wiring, &mut met);
    println!("{KILLS} kills, jobs times kills: {met:?}");
    assert!(met.saved > 10 * KILLS && met.running > 2 * KILLS, "hardly anything was saved: {met:?}");
    assert!(met.started > 2 * KILLS, "hardly anything started: {met:?}");
    traffic::cancel_all(&cluster);
    traffic::free_forgotten_nodes(&cluster);
    traffic::check_gangs_fill_the_machine(&cluster, LEAF);
    traffic::check_log(&cluster);
}
