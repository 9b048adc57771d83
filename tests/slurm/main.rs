//! Lockstep in real Slurm: each test starts a cluster of its own and takes it down.
#![cfg(feature = "plugin")]
// Whatever fails here fails a test, which is what should happen.
#![allow(clippy::unwrap_used)]

mod harness;

mod as_stock;
mod boundary;
mod churn;
mod clusters;
#[cfg(feature = "cli")]
mod command_line;
mod endurance;
mod fabrics;
mod faults;
mod figures;
mod het_jobs;
mod installs;
mod memory;
mod placement;
mod preemption;
mod reasons;
mod restart;
mod rules;
mod shapes;
mod small_jobs;
#[cfg(feature = "cli")]
mod stock_rules;
mod topology_files;
