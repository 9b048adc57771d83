//! What Lockstep decided and what it left to cons_tres, counted since slurmctld started.
//!
//! A site must be able to tell how many of its jobs are placed by Lockstep and why the others are not. Each reason for
//! a pass-through is logged once, with the first job it met; the totals are logged at every reconfigure and at the end.

use super::log;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// Why a call went to cons_tres untouched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum PassThrough {
    /// No usable topology.conf.
    NoFabric,
    /// One node, and no say in which: no gang to keep together.
    NotAGang,
    /// Slurm asks for a reservation, not for a job.
    Reservation,
    /// Feature counts or exclusive features: Slurm asks for the parts one by one.
    FeatureParts,
    /// The partition shares its CPUs among jobs, which the ledger does not model.
    Oversubscribed,
    /// `--spread-job`: the user wants the opposite.
    SpreadJob,
    /// The job grows another one.
    Expansion,
    /// A GRES that several jobs share (MPS, shards).
    SharedGres,
    /// None of the nodes that the job could use hangs on the fabric.
    OffFabric,
    /// The user names nodes that the topology does not list.
    NodesOffFabric,
    /// The rule for it says `off`.
    RuledOut,
    /// Its nodes should be neighbours, but under no switch there are so many.
    OnlyPreferred,
    /// The last decision for it took too long.
    OverBudget,
    /// A job record without what every job has.
    Unreadable,
}

impl PassThrough {
    const ALL: [Self; 14] = [
        Self::NoFabric,
        Self::NotAGang,
        Self::Reservation,
        Self::FeatureParts,
        Self::Oversubscribed,
        Self::SpreadJob,
        Self::Expansion,
        Self::SharedGres,
        Self::OffFabric,
        Self::NodesOffFabric,
        Self::RuledOut,
        Self::OnlyPreferred,
        Self::OverBudget,
        Self::Unreadable,
    ];
}

impl fmt::Display for PassThrough {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoFabric => "no usable topology.conf",
            Self::NotAGang => "not a multi-node request",
            Self::Reservation => "a reservation, not a job",
            Self::FeatureParts => "feature counts or exclusive features",
            Self::Oversubscribed => "a partition that oversubscribes its nodes",
            Self::SpreadJob => "--spread-job",
            Self::Expansion => "the expansion of a running job",
            Self::SharedGres => "a GRES shared by several jobs",
            Self::OffFabric => "no permitted node is in topology.conf",
            Self::NodesOffFabric => "a required node is not in topology.conf",
            Self::RuledOut => "a rule with mode off",
            Self::OnlyPreferred => "a preferred gang that no switch could hold",
            Self::OverBudget => "a decision that takes too long",
            Self::Unreadable => "an incomplete job record",
        })
    }
}

/// What became of a call that Lockstep did decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Outcome {
    /// Started on Lockstep's nodes.
    Placed,
    /// Took a part of one node, or one node, of Lockstep's choice.
    PlacedSingle,
    /// Starts, or would start, once cons_tres's victims have left.
    Preempting,
    /// Waits whole: no domain has room.
    Refused,
    /// Forecast: when and where it will start.
    Forecast,
    /// Could run on the empty machine.
    Feasible,
    /// Could not run even on the empty machine.
    Infeasible,
    /// The ledger promised nodes that cons_tres refused.
    BrokenPromise,
    /// A started gang stands outside of the domain that its rule allows.
    AuditBreach,
    /// A gang that is only observed was started by Slurm.
    Observed,
    /// It would have sat on fewer leaves or inside its home domain.
    WouldPlaceCloser,
    /// It would have waited.
    WouldWait,
    /// Slurm let an observed gang wait that would have started.
    WouldStart,
    /// The ledger was found to differ from what slurmctld counts.
    Drift,
    /// A panic was caught.
    InternalError,
}

const OUTCOMES: usize = Outcome::InternalError as usize + 1;

static PASSED: [AtomicU64; PassThrough::ALL.len()] = [const { AtomicU64::new(0) }; PassThrough::ALL.len()];
static OUTCOME: [AtomicU64; OUTCOMES] = [const { AtomicU64::new(0) }; OUTCOMES];

/// Counts a pass-through, and logs the first for each reason. Single nodes are no news.
pub fn pass_through(reason: PassThrough, job_id: u32) {
    let before = PASSED[reason as usize].fetch_add(1, Ordering::Relaxed);
    if before == 0 && reason != PassThrough::NotAGang && reason != PassThrough::NoFabric {
        log::info(format_args!("JobId={job_id} goes to cons_tres unchanged: {reason} (said once)"));
    }
}

/// Counts an outcome.
pub fn count(outcome: Outcome) {
    OUTCOME[outcome as usize].fetch_add(1, Ordering::Relaxed);
}

/// One line with all totals.
pub fn summary() -> String {
    let outcome = |which: Outcome| OUTCOME[which as usize].load(Ordering::Relaxed);
    let passed: Vec<_> = PassThrough::ALL
        .iter()
        .map(|reason| (PASSED[*reason as usize].load(Ordering::Relaxed), reason))
        .filter(|(count, _)| *count > 0)
        .map(|(count, reason)| format!("{count} {reason}"))
        .collect();
    let observed = match outcome(Outcome::Observed) + outcome(Outcome::WouldStart) {
        0 => String::new(),
        _ => format!(
            "observed: {} gangs started by Slurm, of which {} could sit closer together and {} would have waited; {} looks at \
             waiting gangs that would have started; ",
            outcome(Outcome::Observed),
            outcome(Outcome::WouldPlaceCloser),
            outcome(Outcome::WouldWait),
            outcome(Outcome::WouldStart)
        ),
    };
    format!(
        "calls decided: {} placed, {} single nodes, {} preempting, {} refused, {} forecasts, {} feasible, {} infeasible; \
         {} broken promises, {} audit breaches, {} drifts of the ledger, {} internal errors; {observed}passed through: {}",
        outcome(Outcome::Placed),
        outcome(Outcome::PlacedSingle),
        outcome(Outcome::Preempting),
        outcome(Outcome::Refused),
        outcome(Outcome::Forecast),
        outcome(Outcome::Feasible),
        outcome(Outcome::Infeasible),
        outcome(Outcome::BrokenPromise),
        outcome(Outcome::AuditBreach),
        outcome(Outcome::Drift),
        outcome(Outcome::InternalError),
        if passed.is_empty() { "none".into() } else { passed.join(", ") }
    )
}
