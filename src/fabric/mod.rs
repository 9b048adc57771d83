//! The fabric: the forest of switches over the cluster's nodes, and the texts it is read from.

pub mod hostlist;
pub mod tree;
