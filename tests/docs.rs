//! The documentation lists every code with its severity and meaning, and no code stands for two things.

use lockstep::fabric::diagnostic::Code;
use lockstep::fabric::{assemble, blocks, conf_text, draft, lint, review, topology_conf, topology_yaml};
use lockstep::{policy, slurm_conf};
use std::collections::BTreeSet;

#[test]
fn every_code_of_the_core_is_documented() {
    let docs = include_str!("../docs/topology.md");
    let lists: [&[Code]; 10] = [
        conf_text::CODES,
        draft::CODES,
        blocks::CODES,
        topology_conf::CODES,
        topology_yaml::CODES,
        assemble::CODES,
        review::CODES,
        lint::CODES,
        slurm_conf::CODES,
        policy::CODES,
    ];
    let mut ids = BTreeSet::new();
    for code in lists.concat() {
        let row = format!("| {} | {} | {} |", code.id, code.severity, code.meaning);
        assert!(docs.contains(&row), "missing in docs/topology.md: {row}");
        assert!(ids.insert(code.id), "{} stands for two things", code.id);
    }
}
