//! What people see of a decision: why a job waits, in the words of squeue's reason, and where it was placed, in the
//! system's comment.
//!
//! Whether a gang fits is known at every look at it, but when it will start only from a forecast, which backfill asks for.
//! So what the last forecast said is remembered, and said again when the main scheduler finds the gang still waiting.

use super::state::with;
use super::views::Job;
use crate::placement::verdict::{Placement, Refusal};
use crate::request::{JobId, Time};
use std::ffi::CString;
use std::fmt::Write;

/// What all remarks begin with.
const MARK: &str = "lockstep: ";
/// How many jobs that stand in the way are named.
const NAMED: usize = 3;
/// How many forecasts are remembered before all are forgotten.
const REMEMBERED: usize = 65_536;

/// Remembers when and for whom a gang waits. `now` and `start` are seconds since 1970.
pub fn forecast(job: JobId, placement: &Placement, start: Time, now: Time) {
    let when = moment(start, now);
    with(|state| {
        let ledger = &state.site.ledger;
        let holders = placement.nodes.iter().flat_map(|node| ledger.holders(node));
        // Who is still there when the gang starts is not in its way.
        let leaves = |&holder: &JobId| ledger.end_of(holder).is_some_and(|end| end <= start);
        let blockers = ledger.last_to_end_first(holders.filter(leaves));
        let named: Vec<String> = blockers.iter().take(NAMED).map(|job| job.0.to_string()).collect();
        let mut words = String::new();
        if !named.is_empty() {
            let _ = write!(words, "; waits for {}", named.join(","));
            if blockers.len() > NAMED {
                let _ = write!(words, " and {} more", blockers.len() - NAMED);
            }
        }
        let _ = write!(words, "; about {when}");
        if state.waits.len() >= REMEMBERED {
            state.waits.clear();
        }
        state.waits.insert(job, words);
    });
}

/// Says why a job waits.
pub fn waits(job: &Job, refusal: &Refusal) {
    let words = with(|state| {
        let fabric = state.site.fabric.as_ref()?;
        let level = state.site.policy.name_of(refusal.level);
        let when = state.waits.get(&JobId(job.id())).map_or("", String::as_str);
        Some(format!("{MARK}{}{when}", refusal.describe(fabric, level)))
    });
    let Some(words) = words.filter(|words| job.reason_in_words().as_ref() != Some(words)) else { return };
    if let Ok(words) = CString::new(words) {
        job.set_reason(Some(&words));
    }
}

/// Takes back what was said, where slurmctld's own reason counts.
pub fn nothing_to_say(job: &Job) {
    if job.reason_in_words().is_some_and(|words| words.starts_with(MARK)) {
        job.set_reason(None);
    }
}

/// Notes where a job is placed.
pub fn placed(job: &Job, placement: &Placement) {
    let words = with(|state| {
        state.waits.remove(&JobId(job.id()));
        let domain = state.site.fabric.as_ref()?.switch(placement.domain).name.clone();
        let (nodes, leaves, excess) = (placement.nodes.count(), placement.leaves, placement.excess);
        let switches = if leaves == 1 { "1 switch".into() } else { format!("{leaves} switches") };
        Some(format!("{MARK}{nodes} nodes on {domain} ({switches}, excess {excess})"))
    });
    comment(job, words.as_deref());
}

/// Says why a job can never start. A job that is refused at submission keeps its comment as long as slurmctld remembers it.
pub fn never(job: &Job, why: &str) {
    let words = format!("{MARK}can never start: {why}");
    if job.system_comment().is_none_or(|before| !before.contains(&words)) {
        comment(job, Some(&words));
    }
}

/// Says something in the system's comment, in place of what was said before and beside what others wrote there.
fn comment(job: &Job, words: Option<&str>) {
    let before = job.system_comment().unwrap_or_default();
    let others = before.split("; ").filter(|part| !part.is_empty() && !part.starts_with(MARK));
    let parts: Vec<&str> = others.chain(words).collect();
    if let Ok(comment) = CString::new(parts.join("; ")) {
        job.set_system_comment(&comment);
    }
}

/// A moment in local time: the hour, or the day as well if it is not within a day.
fn moment(time: Time, now: Time) -> String {
    // SAFETY: an all-zero tm is a valid one.
    let mut local: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both point to values of this frame; localtime_r is safe among threads.
    let known = unsafe { !libc::localtime_r(&raw const time, &raw mut local).is_null() };
    let (day, hour) =
        (format!("{:02}-{:02}", local.tm_mon + 1, local.tm_mday), (local.tm_hour, local.tm_min));
    let hour = format!("{:02}:{:02}", hour.0, hour.1);
    match known {
        false => "some day".into(),
        true if time - now < 20 * 3600 => hour,
        true => format!("{day} {hour}"),
    }
}
