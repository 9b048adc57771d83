//! `select_p_job_test`: where a job is placed, or made to wait.
//!
//! slurmctld asks in three modes. TEST_ONLY: could this job run on the empty, healthy machine (a no holds the job for
//! ever, so the answer must not depend on load). WILL_RUN: when and where would it start (backfill reserves what we
//! answer). RUN_NOW: allocate it now. For a gang, Lockstep picks exactly its nodes inside one domain and lets cons_tres
//! make the allocation on them; a refusal leaves the job waiting with nothing held. Any other request goes to cons_tres
//! as it came.
//!
//! cons_tres leaves traces in the job at each trial. So the state at entry is remembered, put back before each trial,
//! and the winning call is the last one: what it wrote is what stays.

use super::bits::Bitmap;
use super::counters::{self, Outcome, PassThrough};
use super::decisions;
use super::delegate::Inner;
use super::demand::{Demand, Gang};
use super::guard::{self, Entry};
use super::views::{Details, Job, TrialState};
use super::{lifecycle, log, remarks, sys};
use crate::nodeset::NodeSet;
use crate::request::Time;
use std::ffi::c_int;

/// How many node sets cons_tres is asked about before the job waits for the next round.
const TRIALS: usize = 3;

/// One call of slurmctld, with the state at its entry.
pub struct Call<'a> {
    inner: &'a Inner,
    raw: Arguments,
    job: Option<(Job<'a>, Details<'a>, TrialState)>,
    /// The nodes that slurmctld permits.
    permitted: NodeSet,
}

/// The arguments of `select_p_job_test` as they came.
#[derive(Clone, Copy)]
pub struct Arguments {
    /// The job under test.
    pub job: *mut sys::job_record_t,
    /// In: the permitted nodes. Out: the chosen ones.
    pub bitmap: *mut sys::bitstr_t,
    /// Nodes at least, at most, and wanted.
    pub nodes: [u32; 3],
    /// `SELECT_MODE_*`.
    pub mode: u16,
    /// Running jobs that may be preempted, or NULL.
    pub preemptees: sys::List,
    /// Out: those that must be, or NULL.
    pub chosen_preemptees: *mut sys::List,
    /// Cores that reservations keep; only passed on.
    pub exc_cores: *mut sys::bitstr_t,
}

impl Arguments {
    /// Asks cons_tres for what came.
    ///
    /// # Safety
    /// They are what slurmctld passed in the call under way, and our lock is not held.
    pub unsafe fn pass_on(&self, inner: &Inner) -> c_int {
        let Self { job, bitmap, nodes: [min, max, wanted], mode, preemptees, chosen_preemptees, exc_cores } =
            *self;
        // SAFETY: as the caller promises.
        unsafe {
            (inner.job_test)(job, bitmap, min, max, wanted, mode, preemptees, chosen_preemptees, exc_cores)
        }
    }
}

/// Whom cons_tres may preempt in a trial.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Preempt {
    Nobody,
    Candidates,
}

const SUCCESS: c_int = sys::SLURM_SUCCESS as c_int;

impl<'a> Call<'a> {
    /// Takes a call, and remembers the state at its entry.
    ///
    /// # Safety
    /// The arguments are what slurmctld passed, and the call ends before its locks are released.
    pub unsafe fn new(inner: &'a Inner, raw: Arguments) -> Self {
        // SAFETY: slurmctld's job, locked during the call.
        let job = unsafe { Job::borrow(raw.job) }.and_then(|job| {
            let details = job.details()?;
            let state = TrialState::save(&job, &details);
            Some((job, details, state))
        });
        // SAFETY: slurmctld's bitmap, which is this call's alone.
        let bitmap = unsafe { Bitmap::borrow(raw.bitmap) };
        let permitted = bitmap.map(|bitmap| bitmap.to_set());
        Self { inner, raw, job, permitted: permitted.unwrap_or_default() }
    }

    /// Answers the call. A panic on the way counts as "ask cons_tres".
    pub fn answer(self) -> c_int {
        static ENTRY: Entry = Entry::new("job_test");
        guard::call(
            &ENTRY,
            sys::SLURM_ERROR,
            || {
                lifecycle::test_panic("job_test");
                self.decide()
            },
            || {
                counters::count(Outcome::InternalError);
                lifecycle::doubt_ledger();
                self.restore(&self.permitted);
                self.ask_as_it_came()
            },
        )
    }

    fn decide(&self) -> c_int {
        if lifecycle::test_floor()
            && let Some(code) = self.answer_without_thought()
        {
            return code;
        }
        let job_id = self.job.as_ref().map_or(0, |(job, ..)| job.id());
        let gang = match self.read_demand() {
            Ok(demand) if demand.is_single() && self.start_single(&demand) => return SUCCESS,
            Ok(demand) if demand.is_single() => Err(PassThrough::NotAGang),
            Ok(demand) => decisions::gang(demand),
            Err(reason) => Err(reason),
        };
        let gang = match gang {
            Ok(gang) => gang,
            Err(reason) => {
                counters::pass_through(reason, job_id);
                self.remark(remarks::nothing_to_say);
                return self.ask_as_it_came();
            }
        };
        match u32::from(self.raw.mode) {
            sys::SELECT_MODE_RUN_NOW => self.run_now(&gang),
            sys::SELECT_MODE_WILL_RUN => self.will_run(&gang),
            _ => self.test_only(&gang),
        }
    }

    /// For benchmarks: a gang may run, in an hour on the first permitted nodes, and not now.
    fn answer_without_thought(&self) -> Option<c_int> {
        let least = self.raw.nodes[0];
        let (job, ..) = self.job.as_ref().filter(|_| least > 1)?;
        match u32::from(self.raw.mode) {
            sys::SELECT_MODE_RUN_NOW => return Some(sys::SLURM_ERROR),
            sys::SELECT_MODE_WILL_RUN => job.set_forecast(lifecycle::now() + 3600, least),
            _ => (),
        }
        let first = self.permitted.iter().take(least as usize);
        self.write(&NodeSet::from_nodes(self.permitted.size(), first));
        Some(SUCCESS)
    }

    fn read_demand(&self) -> Result<Demand, PassThrough> {
        let Some((job, details, _)) = &self.job else { return Err(PassThrough::Unreadable) };
        if !decisions::has_fabric() {
            return Err(PassThrough::NoFabric);
        }
        Demand::read(job, details, self.raw.nodes, self.permitted.size())
    }

    /// Starts a job of one node where it costs the gangs to come the least; false if it is not to start now or gets that
    /// node not, which leaves it to cons_tres.
    fn start_single(&self, demand: &Demand) -> bool {
        if u32::from(self.raw.mode) != sys::SELECT_MODE_RUN_NOW {
            return false;
        }
        let Some(placement) = decisions::single(demand, &self.permitted) else { return false };
        self.restore(&placement.nodes);
        let is_started = self.ask(Arguments { preemptees: std::ptr::null_mut(), ..self.raw }) == SUCCESS;
        if is_started {
            counters::count(Outcome::PlacedSingle);
        } else {
            self.restore(&self.permitted);
        }
        is_started
    }

    /// Could the gang run on the empty, healthy machine? Load, drains and promises have no say.
    fn test_only(&self, gang: &Gang) -> c_int {
        if gang.home.is_none() {
            counters::count(Outcome::Infeasible);
            if decisions::is_news_that_it_never_fits(gang) {
                let (job, nodes) = (gang.job.0, gang.even.nodes);
                log::info(format_args!(
                    "JobId={job} can never start: it needs {nodes} nodes under one switch, \
                     and no switch has so many that could serve"
                ));
            }
            return sys::SLURM_ERROR;
        }
        counters::count(Outcome::Feasible);
        let domains = decisions::domains(gang, &self.permitted, TRIALS);
        if decisions::is_known_feasible(gang) {
            if let Some(domain) = domains.first() {
                self.write(&some_nodes(domain, gang));
            }
            return SUCCESS;
        }
        for nodes in &domains {
            if self.trial(nodes, gang, Preempt::Candidates) == SUCCESS {
                decisions::remember_feasible(gang);
                return SUCCESS;
            }
        }
        self.restore(&self.permitted);
        self.ask_as_it_came()
    }

    /// When and where would the gang start?
    fn will_run(&self, gang: &Gang) -> c_int {
        counters::count(Outcome::Forecast);
        let now = lifecycle::now();
        let forecast = decisions::forecast(gang, &self.permitted, now);
        if forecast.as_ref().is_none_or(|forecast| forecast.start > now) && self.preempt(gang, now) {
            return SUCCESS;
        }
        let Some(forecast) = forecast else { return self.refuse(sys::SLURM_ERROR) };
        if let Some(domain) = &forecast.ask_inside {
            return self.trial(domain, gang, Preempt::Nobody);
        }
        self.restore(&forecast.placement.nodes);
        self.remark(|job| job.set_forecast(forecast.start, forecast.total_cpus));
        match forecast.refusal {
            None => decisions::promise(gang, forecast.placement),
            Some(refusal) => {
                remarks::forecast(gang.job, &forecast.placement, forecast.start, now);
                self.remark(|job| remarks::waits(job, &refusal));
            }
        }
        SUCCESS
    }

    /// Start the gang now, or let it wait whole.
    fn run_now(&self, gang: &Gang) -> c_int {
        let mut code = sys::SLURM_ERROR;
        let mut refused: Vec<NodeSet> = Vec::new();
        let mut why = None;
        while refused.len() < TRIALS {
            match decisions::propose(gang, &self.permitted, &refused) {
                Ok(placement) => {
                    code = self.trial(&placement.nodes, gang, Preempt::Nobody);
                    if code == SUCCESS {
                        counters::count(Outcome::Placed);
                        self.remark(|job| remarks::placed(job, &placement));
                        decisions::promise(gang, placement);
                        return SUCCESS;
                    }
                    refused.push(placement.nodes);
                }
                Err(refusal) => {
                    why = Some(refusal);
                    break;
                }
            }
        }
        if !refused.is_empty() {
            counters::count(Outcome::BrokenPromise);
            let sets = refused.len();
            log::debug(format_args!(
                "JobId={}: cons_tres refused {sets} node sets that seemed free",
                gang.job.0
            ));
            decisions::promise_broken(gang);
        }
        if self.preempt(gang, lifecycle::now()) {
            return SUCCESS;
        }
        let code = self.refuse(code);
        // Where cons_tres refused what seemed free, slurmctld's reason is as good as any.
        self.remark(|job| match &why {
            Some(refusal) if refused.is_empty() => remarks::waits(job, refusal),
            _ => remarks::nothing_to_say(job),
        });
        code
    }

    fn remark(&self, remark: impl FnOnce(&Job)) {
        if let Some((job, ..)) = &self.job {
            remark(job);
        }
    }

    /// Lets cons_tres look for victims, one domain at a time; false if there is nobody to preempt or it does not help.
    fn preempt(&self, gang: &Gang, now: Time) -> bool {
        // SAFETY: a Slurm list of candidates or NULL, slurmctld's during the call.
        if unsafe { sys::lockstep_list_count(self.raw.preemptees) } == 0 {
            return false;
        }
        // Where victims do not help, cons_tres's forecast says when the domain drains; ours knows better where.
        let is_now = || {
            let starts = self.job.as_ref().map_or(0, |(job, ..)| job.start_time());
            u32::from(self.raw.mode) != sys::SELECT_MODE_WILL_RUN || starts <= now + 1
        };
        let domains = decisions::domains(gang, &self.permitted, TRIALS);
        let helps =
            domains.iter().any(|nodes| self.trial(nodes, gang, Preempt::Candidates) == SUCCESS && is_now());
        if helps {
            counters::count(Outcome::Preempting);
        }
        helps
    }

    fn refuse(&self, code: c_int) -> c_int {
        counters::count(Outcome::Refused);
        self.restore(&self.permitted);
        code
    }

    /// Asks cons_tres for this job on exactly these nodes, from the state at entry.
    fn trial(&self, nodes: &NodeSet, gang: &Gang, preempt: Preempt) -> c_int {
        self.restore(nodes);
        if let Some((_, details, _)) = &self.job {
            TrialState::clear_contiguous(details);
        }
        let preemptees = match preempt {
            Preempt::Candidates => self.raw.preemptees,
            Preempt::Nobody => std::ptr::null_mut(),
        };
        let code = self.ask(Arguments { nodes: [gang.even.nodes; 3], preemptees, ..self.raw });
        if let Some((job, details, state)) = &self.job {
            if code == SUCCESS {
                state.restore_contiguous(details);
            } else {
                state.restore(job, details);
            }
        }
        code
    }

    fn ask_as_it_came(&self) -> c_int {
        self.ask(self.raw)
    }

    fn ask(&self, arguments: Arguments) -> c_int {
        // SAFETY: slurmctld's own arguments, passed on with fewer nodes or candidates; our lock is not held.
        unsafe { arguments.pass_on(self.inner) }
    }

    /// Puts the job back as it was at entry, and offers these nodes.
    fn restore(&self, nodes: &NodeSet) {
        if let Some((job, details, state)) = &self.job {
            state.restore(job, details);
        }
        self.write(nodes);
    }

    fn write(&self, nodes: &NodeSet) {
        // SAFETY: slurmctld's bitmap, which is this call's alone; cons_tres is not being asked.
        if let Some(mut bitmap) = unsafe { Bitmap::borrow(self.raw.bitmap) } {
            bitmap.copy_from(nodes);
        }
    }
}

/// As many nodes of a domain as the gang has, those that it requires among them.
fn some_nodes(domain: &NodeSet, gang: &Gang) -> NodeSet {
    let required = gang.even.required.as_ref();
    let mut nodes = required.cloned().unwrap_or_else(|| NodeSet::new(domain.size()));
    let missing = (gang.even.nodes as usize).saturating_sub(nodes.count());
    let others: Vec<_> = domain.iter().filter(|&node| !nodes.contains(node)).take(missing).collect();
    others.into_iter().for_each(|node| nodes.insert(node));
    nodes
}
