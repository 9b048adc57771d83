//! Any text gives a fabric or errors.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lockstep::fabric::hostlist::Dialect;
use lockstep::fabric::{NodeNames, TopologyFile, topology_yaml};
use std::path::Path;

fuzz_target!(|text: &str| {
    let source = |_: &Path| Ok(text.to_string());
    let names = topology_yaml::names(text);
    let nodes = NodeNames::new((0..64).map(|node| Some(format!("n{node}"))));
    for topology in std::iter::once(None).chain(names.iter().take(4).map(|name| Some(name.as_str()))) {
        let file = TopologyFile {
            source: &source,
            path: Path::new("topology.yaml"),
            dialect: Dialect { suffixes: true },
            topology,
            exclude: &[],
        };
        let reading = file.read(&nodes);
        let errors = reading.diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).count();
        assert_eq!(reading.fabric.is_some(), errors == 0);
    }
});
