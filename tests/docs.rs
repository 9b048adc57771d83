//! The documentation lists every code with its severity and meaning, and no code stands for two things.

use lockstep::fabric::diagnostic::Code;
use lockstep::fabric::hostlist::Dialect;
use lockstep::fabric::{assemble, blocks, conf_text, draft, lint, review, topology_conf, topology_yaml};
use lockstep::{policy, slurm_conf};
use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn every_code_of_the_core_is_documented() {
    let docs = include_str!("../docs/topology.md");
    let lists: [&[Code]; 11] = [
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
        policy::file::CODES,
    ];
    let mut ids = BTreeSet::new();
    for code in lists.concat() {
        let row = format!("| {} | {} | {} |", code.id, code.severity, code.meaning);
        assert!(docs.contains(&row), "missing in docs/topology.md: {row}");
        assert!(ids.insert(code.id), "{} stands for two things", code.id);
    }
}

#[test]
fn the_documented_policy_is_one() {
    let docs = include_str!("../docs/configuration.md");
    let from = docs.find("    [default]").expect("the example");
    let example = docs[from..].lines().take_while(|line| line.is_empty() || line.starts_with("    "));
    let text: String = example.flat_map(|line| [line.trim(), "\n"]).collect();
    assert!(text.contains("[[rule]]"));
    let path = Path::new("docs/configuration.md");
    for text in [&text, include_str!("../slurm-conf/lockstep.toml")] {
        policy::Policy::parse(text, path, Dialect::default()).expect("a sound policy");
    }
}
