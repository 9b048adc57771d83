//! Any text that looks like a trace is refused, or gives jobs in order that can be played.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lockstep::simulator::trace::{Format, Trace};
use std::path::Path;

fuzz_target!(|text: &str| {
    let Some(format) = Format::detect(text) else { return };
    if let Ok(trace) = Trace::parse(text.as_bytes(), Path::new("trace"), format) {
        assert!(trace.jobs.is_sorted_by_key(|job| job.submit));
        assert_eq!(trace.jobs.first().map(|job| job.submit), Some(0));
        assert!(trace.jobs.iter().all(|job| job.run > 0 && job.devices > 0));
    }
});
