//! The C boundary: what slurmctld loads, and the only `unsafe` code of the crate.
//!
//! Slurm calls a select plugin through a table of C functions. Lockstep wraps Slurm's own `select/cons_tres`: it opens
//! the real plugin privately ([`delegate`]), answers the few calls in which a placement is decided or an allocation
//! changes ([`exports`]), and lets every other call jump straight through.
//!
//! Rules of the boundary:
//! * every function that Slurm calls stands behind [`guard`]: a panic becomes "ask cons_tres", never an abort;
//! * Slurm's pointers are turned into borrowed views ([`views`], [`bits`]) at one place and live no longer than the
//!   call, during which slurmctld holds its job and node write locks;
//! * our own lock is never held while cons_tres runs;
//! * in clients, which load the plugin too, nothing of slurmctld is touched.

mod bits;
mod counters;
mod decisions;
mod delegate;
mod demand;
mod drift;
mod exports;
mod figures;
mod guard;
mod job_test;
mod lifecycle;
mod log;
mod remarks;
mod single;
mod state;
mod sys;
mod views;
