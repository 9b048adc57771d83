//! The plugin in processes that are not slurmctld: a small C host loads it as Slurm's clients do.

use crate::harness::{built_library, slurm_plugin_dir};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Slurm's own select/cons_tres, and the library that its clients link.
fn slurm() -> (PathBuf, PathBuf) {
    let dir = slurm_plugin_dir();
    (dir.join("select_cons_tres.so"), dir.join("libslurmfull.so"))
}

struct Host {
    dir: TempDir,
    binary: PathBuf,
}

impl Host {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let binary = dir.path().join("host");
        compile(&[
            "-o",
            binary.to_str().unwrap(),
            concat!(env!("CARGO_MANIFEST_DIR"), "/tests/slurm/host.c"),
        ]);
        Self { dir, binary }
    }

    /// Installs the plugin under a file name in the host's own folder.
    fn install(&self, file: &str) -> PathBuf {
        let library = built_library();
        let installed = self.dir.path().join(file);
        fs::copy(&library, &installed)
            .unwrap_or_else(|e| panic!("{}: {e}; cargo build makes it", library.display()));
        installed
    }

    /// What the host prints with the plugin, in a process with or without Slurm's client library.
    fn run(&self, plugin: &Path, library: Option<&Path>) -> String {
        let output = Command::new(&self.binary).arg(plugin).args(library).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success(),
            "{}: {text}{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        text
    }

    /// Puts something else in cons_tres's place.
    fn fake_cons_tres(&self, version: u32) {
        let source = self.dir.path().join("fake.c");
        let text = format!(
            "#include <stdint.h>\nconst char plugin_name[] = \"fake\";\nconst uint32_t plugin_version = {version};\n"
        );
        fs::write(&source, text).unwrap();
        let target = self.dir.path().join("select_cons_tres.so");
        compile(&["-shared", "-fPIC", "-o", target.to_str().unwrap(), source.to_str().unwrap()]);
    }
}

fn compile(args: &[&str]) {
    assert!(Command::new("cc").args(["-Wall", "-Werror"]).args(args).status().unwrap().success());
}

fn link_cons_tres(host: &Host, name: &str) {
    std::os::unix::fs::symlink(slurm().0, host.dir.path().join(name)).unwrap();
}

#[test]
fn a_client_loads_the_named_form() {
    let host = Host::new();
    link_cons_tres(&host, "select_cons_tres.so");
    let seen = host.run(&host.install("select_cons_tres_lockstep.so"), Some(&slurm().1));
    insta::assert_snapshot!(seen, @r"
    before init: -1
    init: 0, id 110, type select/cons_tres_lockstep, version 0x160508
    record: made, freed: 0
    again: 0
    closed: 0
    ");
}

#[test]
fn a_client_loads_the_drop_in_form() {
    let host = Host::new();
    // As dpkg-divert leaves Slurm's own file.
    link_cons_tres(&host, "select_cons_tres.so.distrib");
    let seen = host.run(&host.install("select_cons_tres.so"), Some(&slurm().1));
    assert!(seen.contains("init: 0, id 109,"), "{seen}");
    assert!(seen.contains("record: made"), "{seen}");
}

#[test]
fn a_process_without_slurm_is_told_no_and_lives() {
    let host = Host::new();
    link_cons_tres(&host, "select_cons_tres.so");
    let seen = host.run(&host.install("select_cons_tres_lockstep.so"), None);
    assert!(seen.contains("init: -1") && seen.contains("closed: 0"), "{seen}");
}

#[test]
fn it_refuses_to_wrap_itself_nothing_or_another_version() {
    let host = Host::new();
    let plugin = host.install("select_cons_tres_lockstep.so");
    let refused = |why: &str| {
        let seen = host.run(&plugin, Some(&slurm().1));
        assert!(seen.contains("init: -1"), "{why}: {seen}");
    };
    refused("nothing to wrap");
    host.install("select_cons_tres.so");
    refused("a copy of itself");
    fs::remove_file(host.dir.path().join("select_cons_tres.so")).unwrap();
    host.fake_cons_tres(0x160507);
    refused("another micro version");
    host.fake_cons_tres(0x160508);
    refused("the right version, but not cons_tres");
}
