//! Any text is a policy or is refused with a place inside it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lockstep::fabric::hostlist::Dialect;
use lockstep::policy::Policy;
use std::path::Path;

fuzz_target!(|text: &str| {
    if let Err(fault) = Policy::parse(text, Path::new("lockstep.toml"), Dialect::default()) {
        assert!((1..=text.split('\n').count()).contains(&(fault.place.line as usize)), "{fault}");
    }
});
