//! How others place jobs: what Lockstep is compared with.

pub mod slurm_tree;
