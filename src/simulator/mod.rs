//! A cluster played through on paper: jobs come as a trace tells, and placement decides where they go.

pub mod trace;
