//! Any text is read to its end, with its nodes in order. What stands after a NUL is the text of every included file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lockstep::fabric::hostlist::Dialect;
use lockstep::slurm_conf::{SlurmConf, natural_order};
use std::path::Path;

fuzz_target!(|text: &str| {
    let (main, included) = text.split_once('\0').unwrap_or((text, ""));
    let source = |path: &Path| {
        let text = if path == Path::new("slurm.conf") { main } else { included };
        Ok(text.to_string())
    };
    let (conf, _) = SlurmConf::read(&source, Path::new("slurm.conf"), Dialect::default());
    assert!(conf.nodes().is_sorted_by(|a, b| natural_order(a, b).is_le()));
    let names = conf.node_names();
    for partition in conf.partitions() {
        assert!(conf.nodes_of(partition, &names, Dialect::default()).count() <= names.size());
    }
});
