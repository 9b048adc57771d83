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
use super::counters::{self, Outcome};
use super::decisions;
use super::delegate::Inner;
use super::demand;
use super::guard::{self, Entry};
use super::single::Single;
use super::views::{Details, Job, OwnList, TrialState};
use super::{lifecycle, log, remarks, state, sys, views};
use crate::nodeset::NodeSet;
use crate::placement::victims::{Candidate, lost_work};
use crate::policy::Mode;
use crate::request::{JobId, Time};
use crate::site::demand::Demand;
use crate::site::{Gang, Never, PassThrough};
use std::cell::Cell;
use std::ffi::c_int;
use std::time::{Duration, Instant};

/// How many node sets cons_tres is asked about before the job waits for the next round.
const TRIALS: usize = 3;

/// One call of slurmctld, with the state at its entry.
pub struct Call<'a> {
    inner: &'a Inner,
    raw: Arguments,
    job: Option<(Job<'a>, Details<'a>, TrialState)>,
    /// The nodes that slurmctld permits.
    permitted: NodeSet,
    began: Instant,
    /// How long cons_tres took of that.
    in_inner: Cell<Duration>,
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

/// No jobs to preempt.
const NOBODY: sys::List = std::ptr::null_mut();
const SUCCESS: c_int = sys::SLURM_SUCCESS as c_int;

impl<'a> Call<'a> {
    /// Takes a call, and remembers the state at its entry.
    ///
    /// # Safety
    /// The arguments are what slurmctld passed, and the call ends before its locks are released.
    pub unsafe fn new(inner: &'a Inner, raw: Arguments) -> Self {
        let began = Instant::now();
        // SAFETY: slurmctld's job, locked during the call.
        let job = unsafe { Job::borrow(raw.job) }.and_then(|job| {
            let details = job.details()?;
            let state = TrialState::save(&job, &details);
            Some((job, details, state))
        });
        // SAFETY: slurmctld's bitmap, which is this call's alone.
        let bitmap = unsafe { Bitmap::borrow(raw.bitmap) };
        let permitted = bitmap.map(|bitmap| bitmap.to_set());
        Self { inner, raw, job, permitted: permitted.unwrap_or_default(), began, in_inner: Cell::default() }
    }

    /// Answers the call. A panic on the way counts as "ask cons_tres".
    pub fn answer(self) -> c_int {
        static ENTRY: Entry = Entry::new("job_test");
        guard::call(
            &ENTRY,
            sys::SLURM_ERROR,
            || {
                lifecycle::test_entry("job_test");
                let code = self.decide();
                if let Some((job, ..)) = &self.job {
                    let ours = self.began.elapsed().saturating_sub(self.in_inner.get());
                    decisions::note_time(JobId(job.id()), ours);
                }
                code
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
        let gang = match self.read_demand().map(|demand| (decisions::gang(&demand), demand)) {
            Ok((Err(PassThrough::NotAGang), demand)) => match self.single(&demand) {
                Some(code) => return code,
                None => Err(PassThrough::NotAGang),
            },
            Ok((gang, _)) => gang,
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
        if gang.mode < Mode::Preferred {
            return self.observe(&gang);
        }
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
        if decisions::is_over_budget(JobId(job.id())) {
            return Err(PassThrough::OverBudget);
        }
        demand::read(job, details, self.raw.nodes, self.permitted.size())
    }

    /// A job of one node; none if it is for cons_tres to answer.
    fn single(&self, demand: &Demand) -> Option<c_int> {
        let single = Single::of(demand, &self.permitted)?;
        match u32::from(self.raw.mode) {
            sys::SELECT_MODE_RUN_NOW => self.start_single(&single),
            sys::SELECT_MODE_WILL_RUN => self.forecast_single(&single),
            _ => self.test_single(&single),
        }
    }

    /// Starts it where it costs the gangs to come the least.
    fn start_single(&self, single: &Single) -> Option<c_int> {
        let Some(node) = single.node_now() else {
            // What no node has free by the counts, cons_tres cannot find either, except by preemption.
            let waits = single.is_ours && !self.may_preempt();
            return waits.then(|| {
                self.remark(remarks::nothing_to_say);
                self.refuse(sys::SLURM_ERROR)
            });
        };
        self.restore(&node);
        if self.ask(Arguments { preemptees: NOBODY, ..self.raw }) == SUCCESS {
            counters::count(Outcome::PlacedSingle);
            self.note_submission(1);
            return Some(SUCCESS);
        }
        counters::count(Outcome::BrokenPromise);
        single.mistrust();
        self.restore(&self.permitted);
        None
    }

    /// When and where it would start. With victims in sight, or where its tasks may also be dealt over several nodes or go
    /// to nodes outside of the fabric, cons_tres knows better.
    fn forecast_single(&self, single: &Single) -> Option<c_int> {
        if self.may_preempt() || !single.is_ours {
            return None;
        }
        let (start, node, cpus) = single.forecast(lifecycle::now())?;
        counters::count(Outcome::Forecast);
        self.restore(&node);
        self.remark(|job| job.set_forecast(start, cpus));
        Some(SUCCESS)
    }

    /// Whether it could run on the empty machine: where one leaf could hold it, cons_tres need not look at all others.
    fn test_single(&self, single: &Single) -> Option<c_int> {
        let leaf = single.some_leaf()?;
        let fingerprint = single.fingerprint();
        self.restore(&leaf);
        if decisions::is_known_feasible(fingerprint) || self.ask_as_it_came() == SUCCESS {
            decisions::remember_feasible(fingerprint);
            counters::count(Outcome::Feasible);
            self.note_submission(1);
            return Some(SUCCESS);
        }
        self.restore(&self.permitted);
        None
    }

    /// Slurm decides; what Lockstep would have done is held against it.
    fn observe(&self, gang: &Gang) -> c_int {
        if u32::from(self.raw.mode) != sys::SELECT_MODE_RUN_NOW {
            return self.ask_as_it_came();
        }
        let ours = decisions::propose(gang, &self.permitted, &[]);
        let code = self.ask_as_it_came();
        // SAFETY: slurmctld's bitmap, which is this call's alone; cons_tres has answered.
        let chosen = unsafe { Bitmap::borrow(self.raw.bitmap) }.filter(|_| code == SUCCESS);
        decisions::compare(gang, chosen.map(|chosen| chosen.to_set()).as_ref(), &ours);
        code
    }

    /// Could the gang run on the empty, healthy machine? Load, drains and promises have no say.
    fn test_only(&self, gang: &Gang) -> c_int {
        if let Err(Never(why)) = &gang.places {
            counters::count(Outcome::Infeasible);
            if decisions::is_news_that_it_never_fits(gang) {
                log::info(format_args!("JobId={} can never start: {why}", gang.job.0));
            }
            self.remark(|job| remarks::never(job, why));
            return sys::SLURM_ERROR;
        }
        counters::count(Outcome::Feasible);
        self.note_submission(gang.even.nodes);
        let domains = decisions::domains(gang, &self.permitted, TRIALS);
        if decisions::is_known_feasible(gang.fingerprint()) {
            if let Some(domain) = domains.first() {
                self.write(&some_nodes(domain, gang));
            }
            return SUCCESS;
        }
        // What cons_tres takes for an answer grows with the nodes that it is offered: as few as the gang needs first.
        let few = domains.first().map(|domain| some_nodes(domain, gang));
        for nodes in few.iter().chain(&domains) {
            if self.trial(nodes, gang.sizes(), self.raw.preemptees) == SUCCESS {
                decisions::remember_feasible(gang.fingerprint());
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
        if forecast.as_ref().is_none_or(|(forecast, _)| forecast.start > now) && self.preempt(gang, now) {
            return SUCCESS;
        }
        let Some((forecast, ask_inside)) = forecast else { return self.refuse(sys::SLURM_ERROR) };
        if let Some(domain) = ask_inside {
            return self.trial(&domain, gang.sizes(), NOBODY);
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
                    let count = placement.nodes.count() as u32;
                    code = self.trial(&placement.nodes, [count; 3], NOBODY);
                    if code == SUCCESS {
                        counters::count(Outcome::Placed);
                        self.note_submission(count);
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

    fn note_submission(&self, nodes: u32) {
        if let Some((job, ..)) = &self.job {
            state::with(|state| state.note_submission(JobId(job.id()), nodes, job.time_limit()));
        }
    }

    fn remark(&self, remark: impl FnOnce(&Job)) {
        if let Some((job, ..)) = &self.job {
            remark(job);
        }
    }

    fn may_preempt(&self) -> bool {
        // SAFETY: a Slurm list of candidates or NULL, slurmctld's during the call.
        unsafe { sys::lockstep_list_count(self.raw.preemptees) > 0 }
    }

    /// Starts the gang, or would, once some running jobs have left: the fewest and least in any one domain. False if there
    /// is nobody to preempt or it does not help.
    fn preempt(&self, gang: &Gang, now: Time) -> bool {
        if !self.may_preempt() {
            return false;
        }
        // Where victims do not help, cons_tres's forecast says when the nodes drain; ours knows better where.
        let is_now = || {
            let starts = self.job.as_ref().map_or(0, |(job, ..)| job.start_time());
            u32::from(self.raw.mode) != sys::SELECT_MODE_WILL_RUN || starts <= now + 1
        };
        let running = views::jobs_of(self.raw.preemptees);
        let candidates: Vec<Candidate> = running
            .iter()
            .map(|job| Candidate {
                job: JobId(job.id()),
                priority: job.preemption_rank(),
                lost: lost_work(job.node_count(), job.start_time(), now),
            })
            .collect();
        if let Some((placement, victims)) = decisions::evict(gang, &self.permitted, &candidates) {
            // Of our own, since cons_tres sorts it; in slurmctld's order, in which it takes victims.
            let list = OwnList::of_jobs(running.iter().filter(|job| victims.contains(&JobId(job.id()))));
            let count = placement.nodes.count() as u32;
            if self.trial(&placement.nodes, [count; 3], list.raw()) == SUCCESS && is_now() {
                counters::count(Outcome::Preempting);
                decisions::promise_after_preemption(gang, placement);
                return true;
            }
        }
        let domains = decisions::domains(gang, &self.permitted, TRIALS);
        let helps = domains
            .iter()
            .any(|nodes| self.trial(nodes, gang.sizes(), self.raw.preemptees) == SUCCESS && is_now());
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
    fn trial(&self, nodes: &NodeSet, sizes: [u32; 3], preemptees: sys::List) -> c_int {
        self.restore(nodes);
        if let Some((_, details, _)) = &self.job {
            TrialState::clear_contiguous(details);
        }
        let code = self.ask(Arguments { nodes: sizes, preemptees, ..self.raw });
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
        let began = Instant::now();
        // SAFETY: slurmctld's own arguments, passed on with fewer nodes or candidates; our lock is not held.
        let code = unsafe { arguments.pass_on(self.inner) };
        self.in_inner.set(self.in_inner.get() + began.elapsed());
        code
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
