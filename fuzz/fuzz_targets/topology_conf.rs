//! Any text gives a fabric or errors; a fabric that is written and read again is the same. What stands after a NUL is
//! the text of every included file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lockstep::fabric::hostlist::Dialect;
use lockstep::fabric::{TopologyFile, topology_conf};
use std::path::Path;

fuzz_target!(|text: &str| {
    let (main, included) = text.split_once('\0').unwrap_or((text, ""));
    let source = |path: &Path| {
        let text = if path == Path::new("topology.conf") { main } else { included };
        Ok(text.to_string())
    };
    let file = TopologyFile {
        source: &source,
        path: Path::new("topology.conf"),
        dialect: Dialect::default(),
        topology: None,
        exclude: &["excluded".into()],
    };
    let nodes = TopologyFile::named_nodes([file]);
    let reading = file.read(&nodes);
    let errors = reading.diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).count();
    assert_eq!(reading.fabric.is_some(), errors == 0);
    let Some(fabric) = reading.fabric else { return };

    let plain = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
    let names = (0..nodes.size() as u32).filter_map(|node| nodes.name(node));
    if !names.chain(fabric.switches().map(|(_, switch)| switch.name.as_str())).all(plain) {
        return;
    }
    let written = topology_conf::write(&fabric, &nodes);
    let source = |_: &Path| Ok(written.clone());
    let again = TopologyFile { source: &source, exclude: &[], ..file }.read(&nodes);
    assert_eq!(again.fabric.as_ref(), Some(&fabric), "{written}");
});
