//! Any text is a hostlist or is refused; what is folded unfolds to the same names.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lockstep::fabric::hostlist::{Dialect, Hostlist, expand, fold};

fuzz_target!(|text: &str| {
    for suffixes in [false, true] {
        let Ok(list) = Hostlist::parse(text, Dialect { suffixes }) else { continue };
        if list.count() > 10_000 {
            continue;
        }
        let names = list.names();
        assert_eq!(names.len() as u64, list.count());
        assert_eq!(expand(&fold(&names), Dialect { suffixes: false }).as_ref(), Ok(&names));
    }
});
