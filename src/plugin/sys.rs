//! Slurm's internal records and the C shim, as bindgen read them from the headers of the release built for.

#![allow(missing_docs, non_camel_case_types, non_snake_case, non_upper_case_globals, dead_code)]
#![allow(clippy::all, clippy::undocumented_unsafe_blocks, unsafe_op_in_unsafe_fn, unnecessary_transmutes)]

include!(concat!(env!("OUT_DIR"), "/slurm.rs"));
