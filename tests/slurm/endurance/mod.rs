//! Bad days of a busy cluster: slurmctld is killed again and again, its fabric changes under its jobs, nodes are lost,
//! small jobs never stop coming, and thousands of jobs go by.

mod crashes;
mod growth;
mod lost_nodes;
mod rewiring;
mod starvation;
mod traffic;
