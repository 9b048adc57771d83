//! Finds Slurm's headers, makes the bindings and builds the C shim (feature `plugin`).

fn main() {}
