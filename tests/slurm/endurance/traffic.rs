//! A stream of gangs and small jobs, and a record of what became of each.

use crate::churn::Dice;
use crate::harness::{Cluster, Job};
use std::collections::{BTreeMap, HashMap};
use std::process::{Child, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

/// Lines of slurm.conf with which Lockstep holds its ledger against Slurm's counts whenever they are asked for. cons_tres
/// has much to say then, at levels that are not logged.
pub const CHECK_LEDGER: &str = "DebugFlags=NO_CONF_HASH,SelectType\nSlurmctldDebug=info";

/// A job as it was seen.
pub struct Seen {
    /// Unique, other than a job's number: slurmctld gives that again if it dies before it has saved the job.
    pub name: String,
    /// When it was last seen, in seconds since 1970.
    pub at: f64,
    /// Where it was seen, if it has started.
    pub nodes: Vec<String>,
    /// When it was first seen there.
    pub placed_at: f64,
    /// Whether its cancellation was asked for.
    pub is_cancelled: bool,
}

/// All jobs of a cluster by number.
#[derive(Default)]
pub struct Traffic {
    pub jobs: BTreeMap<u32, Seen>,
    submitted: usize,
}

/// What one look at a cluster found.
pub struct Look {
    /// The jobs that hold nodes.
    pub holding: Vec<u32>,
    /// The jobs that wait.
    pub waiting: Vec<u32>,
    /// The jobs whose nodes were seen for the first time.
    pub started: Vec<Job>,
}

/// Now, in seconds since 1970.
pub fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64()
}

/// How many nodes a job of the stream has.
pub fn size(job: &Job) -> usize {
    job.name.split('-').nth(1).unwrap().parse().unwrap()
}

/// Whether a job of the stream shares its nodes with no other.
fn is_exclusive(job: &Job) -> bool {
    job.name.starts_with("alone")
}

fn id(job: &Job) -> u32 {
    job.id.parse().unwrap()
}

impl Traffic {
    /// Submits a few jobs and does not wait for slurmctld's answer.
    pub fn submit(
        &mut self,
        cluster: &Cluster,
        dice: &mut Dice,
        count: usize,
        sizes: &[usize],
    ) -> Vec<Child> {
        let jobs = (0..count).map(|_| {
            self.submitted += 1;
            let size = dice.pick(sizes);
            let (kind, share) = match (size, dice.below(4)) {
                (1, _) => ("shared", format!("--gpus-per-node={}", 1 + dice.below(4))),
                (_, 0) => ("shared", "--gpus-per-node=4".into()),
                _ => ("alone", "--exclusive".into()),
            };
            let name = format!("--job-name={kind}-{size}-{}", self.submitted);
            let time = format!("--time={}", 1 + dice.below(90));
            cluster
                .command("sbatch")
                .args([&name, &format!("-N{size}"), &share, &time, "-o", "/dev/null", "--wrap", "sleep 600"])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap()
        });
        jobs.collect()
    }

    /// Asks for the cancellation of some jobs and does not wait for slurmctld's answer.
    pub fn cancel(&mut self, cluster: &Cluster, ids: &[u32]) -> Option<Child> {
        for id in ids {
            self.jobs.get_mut(id).unwrap().is_cancelled = true;
        }
        let ids: Vec<String> = ids.iter().map(u32::to_string).collect();
        let mut command = cluster.command("scancel");
        command.args(&ids).stdout(Stdio::null()).stderr(Stdio::null());
        (!ids.is_empty()).then(|| command.spawn().unwrap())
    }

    /// Looks at all jobs, and holds them against what must always be true: none is lost, none has moved, each is whole, and
    /// exclusive jobs are alone on their nodes.
    pub fn look(&mut self, cluster: &Cluster) -> Look {
        let jobs = cluster.jobs();
        // What slurmctld saves from now on, it saves after it answered.
        let at = now();
        let by_id: BTreeMap<u32, &Job> = jobs.iter().map(|job| (id(job), job)).collect();
        for (id, seen) in &self.jobs {
            assert!(by_id.get(id).is_some_and(|job| job.name == seen.name), "lost: {id} {}", seen.name);
        }
        check_nodes_are_given_once(&jobs);
        let mut look = Look { holding: Vec::new(), waiting: Vec::new(), started: Vec::new() };
        for (id, job) in by_id {
            let seen = self.jobs.entry(id).or_insert_with(|| Seen {
                name: job.name.clone(),
                at,
                nodes: Vec::new(),
                placed_at: at,
                is_cancelled: false,
            });
            seen.at = at;
            if job.is("PENDING") {
                assert!(job.nodes.is_empty(), "waits and holds nodes: {job:?}");
                look.waiting.push(id);
            } else if job.holds_nodes() {
                assert_eq!(job.nodes.len(), size(job), "not whole: {job:?}");
                look.holding.push(id);
                if seen.nodes.is_empty() {
                    (seen.nodes, seen.placed_at) = (job.nodes.clone(), at);
                    look.started.push(job.clone());
                }
                assert_eq!(seen.nodes, job.nodes, "moved: {job:?}");
            }
        }
        look
    }
}

fn check_nodes_are_given_once(jobs: &[Job]) {
    let mut holders: HashMap<&str, Vec<&Job>> = HashMap::new();
    for job in jobs.iter().filter(|job| job.holds_nodes()) {
        job.nodes.iter().for_each(|node| holders.entry(node).or_default().push(job));
    }
    for (node, holders) in holders {
        let is_alone = holders.len() == 1 || !holders.iter().any(|job| is_exclusive(job));
        assert!(is_alone, "{node} is given twice: {holders:#?}");
    }
}

/// A few of these, by chance: each with one chance in so many.
pub fn some(of: &[u32], dice: &mut Dice, one_in: usize) -> Vec<u32> {
    of.iter().copied().filter(|_| dice.below(one_in) == 0).collect()
}

/// Waits until commands have ended, well or not.
pub fn finish(commands: impl IntoIterator<Item = Child>) {
    for mut command in commands {
        command.wait().unwrap();
    }
}

/// Nothing went wrong inside of Lockstep, and what it counts as allocated is what Slurm counts.
pub fn check_log(cluster: &Cluster) {
    cluster.slurm("sinfo", &[]);
    for complaint in ["lockstep: audit", "internal error", "the ledger has drifted"] {
        let lines = cluster.logged(&[complaint]);
        // The sums count them too, and name them to say that there were none.
        let lines: Vec<&String> = lines.iter().filter(|line| !line.contains("calls decided")).collect();
        assert!(lines.is_empty(), "{lines:#?}");
    }
}

/// Cancels all jobs, and waits until they have left.
pub fn cancel_all(cluster: &Cluster) {
    cluster.slurm("scancel", &["--user", cluster.user()]);
    cluster.wait("all jobs have gone", |c| {
        let is_gone = |job: &Job| !job.holds_nodes() && !job.is_ending() && !job.is("PENDING");
        c.jobs().iter().all(is_gone)
    });
}

/// Frees nodes that slurmctld takes for allocated though no job has them. Slurm saves its nodes after its jobs, and if it
/// is killed when a job started in between, it never takes that back, as stock Slurm does not either.
pub fn free_forgotten_nodes(cluster: &Cluster) {
    assert!(!cluster.jobs().iter().any(Job::holds_nodes));
    let states = cluster.slurm("sinfo", &["-h", "-N", "-o", "%N %T"]);
    let forgotten = states.lines().filter_map(|line| line.split_once(' '));
    let forgotten: Vec<&str> =
        forgotten.filter(|(_, state)| state.starts_with("allocated")).map(|(node, _)| node).collect();
    if forgotten.is_empty() {
        return;
    }
    println!("Slurm forgot that these are free: {forgotten:?}");
    let nodes = format!("NodeName={}", forgotten.join(","));
    cluster.slurm("scontrol", &["update", &nodes, "State=DOWN", "Reason=test"]);
    cluster.slurm("scontrol", &["update", &nodes, "State=RESUME"]);
}

/// Sees that gangs can fill the machine when all jobs have gone: nothing is remembered that is not so.
pub fn check_gangs_fill_the_machine(cluster: &Cluster, leaf: usize) {
    let size = format!("-N{leaf}");
    let gangs = (0..cluster.setup.nodes.count() / leaf).map(|_| cluster.submit(600, &[&size, "--exclusive"]));
    let gangs: Vec<u32> = gangs.collect();
    cluster.wait("gangs fill the machine", |c| {
        let jobs = c.jobs();
        gangs.iter().all(|gang| jobs.iter().any(|job| job.id == gang.to_string() && job.nodes.len() == leaf))
    });
}
