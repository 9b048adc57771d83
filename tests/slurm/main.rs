//! Lockstep in real Slurm: each test starts a cluster of its own and takes it down.
#![cfg(feature = "plugin")]

mod harness;

mod clusters;
mod placement;
