//! Real Slurm clusters for the tests, the demo and the benchmarks.
//!
//! A [`Cluster`] is a private munged, a slurmctld, and either real slurmds (jobs really launch) or `State=CLOUD` nodes
//! without any (thousands of nodes, real decisions, nothing launches), in a temporary folder, on free ports of the
//! loopback interface, as whatever user runs it. It is taken down with its owner, however that ends, jobs and all.

// The tests, the demo and the benchmarks each use their own part of it.
#![allow(dead_code, unused_imports)]
// Whatever fails here should end the program that needs the cluster, with the place where it failed.
#![allow(clippy::unwrap_used)]

mod cluster;
mod conf;
mod job;
mod ports;
mod reaper;

pub use cluster::{Cluster, built_library};
pub use conf::{Install, Nodes, Setup, slurm_plugin_dir};
pub use job::{Job, Wiring, hosts};
