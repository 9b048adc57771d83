//! What Lockstep knows while slurmctld runs: the fabric, the ledger, and what it promised; behind one lock.
//!
//! Nothing of it is saved. The functions here keep it true to slurmctld's records; [`super::decisions`] asks it. Each
//! takes the lock for one step and never calls cons_tres, so the lock is never held while something else could want it.

use super::counters::{self, Outcome};
use super::views::{self, Job};
use super::{lifecycle, log, sys};
use crate::cluster::{Capacity, Held, Holding, Ledger};
use crate::fabric::conf_text;
use crate::fabric::diagnostic::{Diagnostic, Place, Severity};
use crate::fabric::hostlist::{self, Dialect};
use crate::fabric::tree::{Fabric, SwitchId};
use crate::fabric::{self, NodeNames, TopologyFile};
use crate::nodeset::NodeSet;
use crate::placement::Planner;
use crate::placement::mix::{History, Mix};
use crate::placement::verdict::Placement;
use crate::policy::Policy;
use crate::request::{JobId, Time};
use crate::site::Site;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::Path;
use std::time::Instant;

/// How many findings in the topology are logged one by one.
const FINDINGS_LOGGED: usize = 5;
/// How old what the ledger knows of capacities and job ends may be: slurmctld tells neither.
pub const REFRESH_SECONDS: Time = 10;

/// How often the mix is learnt anew.
const LEARN_SECONDS: Time = 300;
/// What a gang without a time limit counts for, in seconds.
const UNLIMITED: Time = 24 * 3600;

/// All that Lockstep knows.
#[derive(Default)]
pub struct State {
    /// What is known about the cluster.
    pub site: Site,
    /// What was last said about the topology, so as to say it once.
    said: String,
    ledger_doubtful: bool,
    refreshed: Time,
    /// The jobs that were submitted, from which the mix to keep room for is learnt where the site names none.
    history: History,
    mix_learnt: Time,
    /// The job that was entered last: slurmctld asks several times over whether one could run.
    last_submitted: JobId,
    /// Requests that cons_tres found feasible under this configuration, by hash.
    pub feasible: HashSet<u64>,
    /// The gang that was last found to fit nowhere, so as to say it once.
    pub never_fits: Option<JobId>,
    /// Where a gang is about to start.
    pub promises: BTreeMap<JobId, Promise>,
    /// Under which switch the components of a het job come together, and until when that binds.
    pub het_plans: BTreeMap<JobId, (SwitchId, Time)>,
    /// When and for whom gangs wait, in words, as of their last forecasts.
    pub waits: BTreeMap<JobId, String>,
    /// Gangs that cons_tres refused on nodes that the ledger took for free, and until when they ask cons_tres.
    pub mistrusted: BTreeMap<JobId, Time>,
    /// Jobs whose last decision took longer than the budget, and until when cons_tres decides for them.
    pub over_budget: BTreeMap<JobId, Time>,
}

/// Where a gang is about to start, and until when that binds.
pub struct Promise {
    /// The nodes.
    pub placement: Placement,
    /// Until when.
    pub until: Time,
    /// The gang's priority if jobs were preempted for it: nobody of lower priority may take the nodes that they leave.
    pub preempts_with: Option<u32>,
}

static STATE: Mutex<Option<Box<State>>> = Mutex::new(None);

/// Runs one step under the lock. The step must not call cons_tres.
pub fn with<R>(step: impl FnOnce(&mut State) -> R) -> R {
    step(STATE.lock().get_or_insert_default())
}

/// Forgets everything; false if there was nothing.
pub fn drop_all() -> bool {
    STATE.lock().take().is_some()
}

/// Reads nodes and jobs from slurmctld's records, and the site's policy and topology from the files beside slurm.conf.
///
/// A file with an error changes nothing: the last good policy, and the last good fabric if the nodes are the same, stay
/// in use.
pub fn read_cluster(conf_dir: &Path) {
    let names = NodeNames::new(views::nodes().iter().map(|node| node.as_ref().and_then(|node| node.name())));
    let mut policy = read_policy(&conf_dir.join("lockstep.toml")).unwrap_or_else(keep_last_policy);
    let started = Instant::now();
    let reading = TopologyFile {
        source: &|path| std::fs::read_to_string(path),
        path: &fabric::file_in(conf_dir, Path::exists),
        dialect: dialect(),
        topology: None,
        exclude: &policy.exclude,
    }
    .read(&names);
    if let Some(fabric) = &reading.fabric
        && let Err(fault) = policy.settle(fabric)
    {
        policy = keep_last_policy(fault);
    }
    with(|state| {
        match reading.fabric {
            Some(fabric) => {
                let unchanged = state.site.fabric.as_ref() == Some(&fabric);
                state.say(fabric_line(&fabric), unchanged, started, &reading.diagnostics);
                state.site.planner = Planner::new(&fabric, policy.mix.as_ref().unwrap_or(&Mix::default()));
                state.mix_learnt = 0;
                state.site.fabric = Some(fabric);
            }
            None => {
                let keeps_last = state.site.fabric.is_some() && state.site.names == names;
                state.say_broken(&reading.diagnostics, keeps_last);
                if !keeps_last {
                    state.site.fabric = None;
                }
            }
        }
        state.site.ledger = Ledger::new(names.size());
        state.site.capable.clear();
        let gpu = state.site.kinds.number("gpu", None);
        state.site.ledger.set_slot_kind(gpu);
        state.site.names = names;
        state.site.policy = policy;
        state.feasible.clear();
        state.promises.clear();
        state.het_plans.clear();
        state.waits.clear();
        state.refresh(lifecycle::now(), 0);
        state.rebuild_ledger();
        state.rebuild_history();
        state.learn_mix(lifecycle::now());
    });
}

fn keep_last_policy(fault: Diagnostic) -> Policy {
    log::error(format_args!(
        "{fault}; the last good policy stays in use until `scontrol reconfigure` finds it mended"
    ));
    with(|state| state.site.policy.clone())
}

/// The site's policy; the default one where there is no file.
fn read_policy(path: &Path) -> Result<Policy, Diagnostic> {
    match std::fs::read_to_string(path) {
        Ok(text) => Policy::parse(&text, path, dialect()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Policy::default()),
        Err(error) => Err(conf_text::unreadable(path, Place::file(path), &error)),
    }
}

/// The ledger may be wrong: it is rebuilt before the next decision.
pub fn doubt_ledger() {
    with(|state| state.ledger_doubtful = true);
}

/// Enters what a job holds.
pub fn hold(job: &Job) {
    with(|state| state.hold(job));
}

/// A job holds nothing any more.
pub fn release(job: JobId) {
    with(|state| {
        state.site.ledger.release(job);
        state.promises.remove(&job);
        state.mistrusted.remove(&job);
    });
}

/// A job gave its cores back (true) or took them again.
pub fn set_suspended(job: JobId, suspended: bool) {
    with(|state| state.site.ledger.set_suspended(job, suspended));
}

/// Holds a gang's real allocation against what was decided for it.
pub fn audit(job: &Job) {
    with(|state| {
        let Some(Promise { placement, .. }) = state.promises.remove(&JobId(job.id())) else { return };
        let Some(fabric) = &state.site.fabric else { return };
        let held = NodeSet::from_nodes(placement.nodes.size(), job.held().iter().map(|held| held.node));
        let names = hostlist::fold(held.iter().filter_map(|node| state.site.names.name(node)));
        let domain = &fabric.switch(placement.domain).name;
        if held == placement.nodes {
            log::info(format_args!(
                "JobId={} starts on {} nodes under {domain} ({} leaves, excess {}): {names}",
                job.id(),
                held.count(),
                placement.leaves,
                placement.excess
            ));
        } else {
            counters::count(Outcome::AuditBreach);
            let decided =
                hostlist::fold(placement.nodes.iter().filter_map(|node| state.site.names.name(node)));
            log::error(format_args!(
                "audit: JobId={} started on {names}, but {decided} under {domain} was decided",
                job.id()
            ));
        }
    });
}

impl State {
    /// Takes out the nodes that jobs are leaving for a gang of at least this priority.
    pub fn keep_from_others(&self, job: JobId, priority: u32, now: Time, nodes: &mut NodeSet) {
        let others = self.promises.iter().filter(|(id, promise)| {
            let is_above = promise.preempts_with.is_some_and(|theirs| theirs >= priority);
            **id != job && is_above && promise.until > now
        });
        others.for_each(|(_, promise)| nodes.subtract(&promise.placement.nodes));
    }

    fn hold(&mut self, job: &Job) {
        let held = job.held();
        let nodes = held
            .iter()
            .map(|held| {
                let gres =
                    held.gres.iter().map(|(name, kind, count)| (name.as_str(), kind.as_deref(), *count));
                let cpus = if held.whole_node { self.site.ledger.cpus(held.node) } else { held.cpus };
                (held.node, Held { cpus, memory_mb: held.memory_mb, gres: self.site.kinds.count(gres) })
            })
            .collect();
        let holding = Holding { nodes, end: job.end_time(), suspended: job.gave_cores_back() };
        self.site.ledger.hold(JobId(job.id()), holding);
    }

    /// The size of the fabric in words.
    pub fn fabric_line(&self) -> String {
        self.site.fabric.as_ref().map_or_else(|| "none".into(), fabric_line)
    }

    /// Rebuilds the ledger if an internal error left it in doubt.
    pub fn settle_doubt(&mut self) {
        if self.ledger_doubtful {
            self.rebuild_ledger();
        }
    }

    fn rebuild_ledger(&mut self) {
        self.ledger_doubtful = false;
        self.site.ledger.release_all();
        for job in views::jobs().iter().filter(|job| job.holds_nodes()) {
            self.hold(job);
        }
    }

    /// The history as slurmctld's job records tell it.
    fn rebuild_history(&mut self) {
        self.history = History::default();
        let mut jobs: Vec<_> = views::jobs()
            .iter()
            .filter_map(|job| {
                let details = job.details()?;
                Some((details.waiting_since(), JobId(job.id()), details.least_nodes(), job.time_limit()))
            })
            .collect();
        jobs.sort_unstable();
        self.last_submitted = JobId(0);
        for (when, job, nodes, seconds) in jobs {
            self.history.record(when, nodes.max(1), seconds.unwrap_or(UNLIMITED));
            self.last_submitted = job;
        }
    }

    /// Takes note of a job that was submitted: how many nodes it wants, and for how long.
    pub fn note_submission(&mut self, job: JobId, nodes: u32, seconds: Option<Time>) {
        if job <= self.last_submitted {
            return;
        }
        self.last_submitted = job;
        let now = lifecycle::now();
        self.history.record(now, nodes, seconds.unwrap_or(UNLIMITED));
        self.learn_mix(now);
    }

    /// Keeps room for gangs like those that were submitted, as of every few minutes.
    fn learn_mix(&mut self, now: Time) {
        if self.site.policy.mix.is_some() || now < self.mix_learnt + LEARN_SECONDS {
            return;
        }
        if let (Some(fabric), Some(mix)) = (&self.site.fabric, self.history.mix()) {
            self.site.planner.set_mix(fabric, &mix);
            self.mix_learnt = now;
        }
    }

    /// Looks again at what slurmctld changes without telling (what nodes have, and when jobs must end), unless the last
    /// look is less than so many seconds old.
    pub fn refresh(&mut self, now: Time, seconds: Time) {
        if (self.refreshed..self.refreshed + seconds).contains(&now) {
            return;
        }
        self.refreshed = now;
        for (index, node) in views::nodes().into_iter().enumerate() {
            let Some(node) = node else { continue };
            let gres = node.gres();
            let named = gres.iter().flat_map(|gres| {
                // A node that tells types counts each of them; what is left over has the name alone.
                let typed: u64 = gres.by_kind.iter().map(|(_, count)| count).sum();
                let kinds = gres
                    .by_kind
                    .iter()
                    .map(|(kind, count)| (gres.name.as_str(), Some(kind.as_str()), *count));
                kinds.chain([(gres.name.as_str(), None, gres.total.saturating_sub(typed))])
            });
            let capacity = Capacity {
                cpus: node.cpus(),
                memory_mb: node.memory_mb(),
                gres: self.site.kinds.count(named),
            };
            self.site.ledger.set_capacity(index as u32, capacity);
            self.site.ledger.set_reluctance(index as u32, node.reluctance());
        }
        let jobs: Vec<JobId> = self.site.ledger.jobs().collect();
        for id in jobs {
            match views::find_job(id.0) {
                Some(job) => self.site.ledger.set_end(id, job.end_time()),
                None => self.site.ledger.release(id),
            }
        }
    }

    fn say(&mut self, fabric: String, unchanged: bool, started: Instant, findings: &[Diagnostic]) {
        let took = started.elapsed().as_secs_f64() * 1e3;
        if unchanged && self.said == fabric {
            log::info(format_args!("fabric: unchanged, read in {took:.1} ms"));
            return;
        }
        log::info(format_args!("fabric: {fabric}, read in {took:.1} ms"));
        self.said = fabric;
        for finding in findings.iter().take(FINDINGS_LOGGED) {
            log::info(finding);
        }
        if findings.len() > FINDINGS_LOGGED {
            let more = findings.len() - FINDINGS_LOGGED;
            log::info(format_args!("and {more} more findings; `lockstep check` lists them"));
        }
    }

    fn say_broken(&mut self, findings: &[Diagnostic], keeps_last: bool) {
        let mut errors = findings.iter().filter(|finding| finding.code.severity == Severity::Error);
        let what = errors.next().map_or_else(|| "no fabric".into(), ToString::to_string);
        let more = match errors.count() {
            0 => String::new(),
            n => format!(" (and {n} more; `lockstep check` lists them)"),
        };
        let until = if keeps_last {
            "the last good fabric stays in use"
        } else {
            "all jobs go to cons_tres unchanged"
        };
        let line =
            format!("{what}{more}; {until} until the file is mended and `scontrol reconfigure` is run");
        if self.said != line {
            log::error(&line);
            self.said = line;
        }
    }
}

fn fabric_line(fabric: &Fabric) -> String {
    format!(
        "{} nodes on {} leaves, {} switches in {} levels (of {} nodes in all)",
        fabric.listed().count(),
        fabric.at_level(0).len(),
        fabric.switch_count(),
        fabric.level_count(),
        fabric.node_count()
    )
}

fn dialect() -> Dialect {
    Dialect::of_slurm(
        (sys::SLURM_VERSION_NUMBER >> 16) as u16,
        (sys::SLURM_VERSION_NUMBER >> 8) as u16 & 0xff,
    )
}
