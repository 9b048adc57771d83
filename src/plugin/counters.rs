//! What Lockstep decided and what it left to cons_tres, counted since slurmctld started.
//!
//! A site must be able to tell how many of its jobs are placed by Lockstep and why the others are not. Each reason for
//! a pass-through is logged once, with the first job it met; the totals are logged at every reconfigure and at the end.

use super::log;
use crate::site::PassThrough;
use std::sync::atomic::{AtomicU64, Ordering};

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
