//! Lockstep places Slurm's multi-node GPU jobs whole, on neighbouring nodes, or lets them wait whole.
//!
//! Data flows one way, downwards:
//!
//! ```text
//! topology.conf text -> fabric -> request + cluster -> placement -> verdict -> Slurm's bitmap
//! ```
//!
//! The core (everything but `plugin` and `cli`) knows no Slurm type and no clock, and breaks every tie by id, so the
//! same input always gives the same placement. `plugin` is the C boundary that slurmctld loads and holds the only
//! `unsafe` code.
#![deny(unsafe_code)]

pub mod cluster;
pub mod fabric;
pub mod fragmentation;
pub mod nodeset;
pub mod placement;
#[cfg(feature = "plugin")]
#[allow(unsafe_code)]
pub mod plugin;
pub mod policy;
pub mod request;
#[cfg(feature = "cli")]
pub mod simulator;
pub mod site;
pub mod slurm_conf;
