//! The command line as people meet it: what it prints, where, and with which exit code.

use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// A folder with a cluster's files, in which lockstep runs.
struct Site(TempDir);

impl Site {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        for (name, text) in files {
            let path = folder.path().join(name);
            path.parent().map(std::fs::create_dir_all);
            std::fs::write(path, text).expect("a file in a temporary folder");
        }
        Self(folder)
    }

    /// Runs lockstep and returns exit code, stdout and stderr.
    fn run(&self, args: &str) -> (i32, String, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_lockstep"))
            .args(args.split_whitespace())
            .current_dir(self.0.path())
            .env_remove("SLURM_CONF")
            .output()
            .expect("lockstep runs");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        (output.status.code().expect("no signal"), text(output.stdout), text(output.stderr))
    }

    /// The same as one text, for a snapshot.
    fn shown(&self, args: &str) -> String {
        let (code, stdout, stderr) = self.run(args);
        format!("$ lockstep {args}\n{stdout}--- stderr\n{stderr}--- exit {code}\n")
    }
}

const NODES: &str =
    "NodeName=n[01-16] CPUs=8\nPartitionName=train Nodes=n[01-12] Default=YES\nPartitionName=all Nodes=ALL\n";
const TREE: &str = "SwitchName=top Switches=leaf[1-4]
SwitchName=leaf1 Nodes=n[01-04]
SwitchName=leaf2 Nodes=n[05-08]
SwitchName=leaf3 Nodes=n[09-12]
SwitchName=leaf4 Nodes=n[13-16]
";
const OURS: &str = "\x7fELF Lockstep: gangs on neighbouring nodes, over select/cons_tres\0";

/// A site without a finding: the drop-in form before Slurm's own file.
fn tidy() -> Site {
    let conf = format!("ClusterName=tidy\nSelectType=select/cons_tres\nPluginDir=ours:slurms\n{NODES}");
    Site::new(&[
        ("slurm.conf", &conf),
        ("topology.conf", TREE),
        ("ours/select_cons_tres.so", OURS),
        ("slurms/select_cons_tres.so", "\x7fELF Slurm's own"),
    ])
}

/// A site with something wrong in each file.
fn untidy() -> Site {
    let conf = "ClusterName=untidy\nSelectType=select/cons_tres\nPluginDir=slurms:ours:gone\nTopologyPlugin=topology/default
SelectTypeParameters=CR_Core_Memory,CR_LLN\nSchedulerParameters=bf_busy_nodes\nSchedulerType=sched/builtin
NodeName=n[1-12] CPUs=8\nNodeName=login[1-2] CPUs=1
PartitionName=gpu Nodes=n[1-12]\nPartitionName=other Nodes=login[1-2]\nPartitionName=named Nodes=ALL Topology=nowhere\n";
    let topology = "SwitchName=storage Nodes=n[1-12]\nSwitchName=a Nodes=n[1,3,5,7,9-11]\nSwitchName=b Nodes=n[2,4]\nSwitchName=c Nodes=n[6,8,12]\n";
    Site::new(&[
        ("slurm.conf", conf),
        ("topology.conf", topology),
        ("lockstep.toml", "[fabric]\nexclude = [\"storage\", \"mgmt\"]\n"),
        ("slurms/select_cons_tres.so", "\x7fELF Slurm's own"),
        ("ours/select_cons_tres.so", OURS),
    ])
}

#[test]
fn check_of_a_tidy_site_is_clean() {
    insta::assert_snapshot!(tidy().shown("check --slurm-conf slurm.conf --slurm-version 22.05"));
}

#[test]
fn check_says_what_is_wrong_and_what_to_do() {
    insta::assert_snapshot!(untidy().shown("check --slurm-conf slurm.conf --slurm-version 22.05"));
}

#[test]
fn check_as_json_says_the_same() {
    let (code, stdout, _) = untidy().run("check --slurm-conf slurm.conf --slurm-version 22.05 --json");
    let value: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(code, 2);
    assert_eq!(value["errors"], 4);
    assert_eq!(value["fabric"]["leaves"], 3);
    let first = &value["findings"][0];
    assert_eq!((first["code"].as_str(), first["line"].as_u64()), (Some("T107"), None));
    assert_eq!(value["partitions"][0]["fits"][1]["can_hold"], 1);
    let clean = tidy().run("check --slurm-conf slurm.conf --slurm-version 22.05 --json");
    assert_eq!((clean.0, clean.2.as_str()), (0, ""));
}

#[test]
fn check_against_an_old_file_shows_what_changes() {
    let site = tidy();
    let new = TREE
        .replace("leaf2 Nodes=n[05-08]", "leaf2 Nodes=n[05-07]")
        .replace("leaf3 Nodes=n[09-12]", "leaf5 Nodes=n[08-12]");
    let new = new.replace("leaf[1-4]", "leaf[1-2,5]") + "SwitchName=row Switches=top,leaf4\n";
    std::fs::write(site.0.path().join("new.conf"), new).expect("a file");
    insta::assert_snapshot!(site.shown("check --topology new.conf --alone --against topology.conf"));
    let same = site.run("check --topology topology.conf --alone --against topology.conf");
    assert!(same.1.contains("changes\nnone\n"), "{}", same.1);
}

#[test]
fn check_warns_about_gang_sizes_that_few_leaves_can_hold() {
    let sizes = [1, 1, 2, 2, 2, 3, 3, 3, 5, 5, 6, 6, 6, 8, 11];
    let leaves: String =
        sizes.iter().enumerate().map(|(i, n)| format!("SwitchName=l{i} Nodes=n{i}x[1-{n}]\n")).collect();
    let site = Site::new(&[("topology.conf", &(leaves + "SwitchName=top Switches=l[0-14]\n"))]);
    insta::assert_snapshot!(site.shown("check --topology topology.conf --alone"));
}

#[test]
fn the_form_of_installation_is_held_against_the_release() {
    let site = |select_type: &str, file: &str| {
        let conf = format!("SelectType={select_type}\nPluginDir=plugins\n{NODES}");
        Site::new(&[("slurm.conf", &conf), ("topology.conf", TREE), (file, OURS)])
    };
    let named = site("select/cons_tres_lockstep", "plugins/select_cons_tres_lockstep.so");
    let found = |site: &Site, release: &str| {
        let (_, out, _) = site.run(&format!("check --slurm-conf slurm.conf --slurm-version {release}"));
        out.lines()
            .filter(|line| line.contains("Lockstep ") || line.contains("[C"))
            .collect::<Vec<_>>()
            .join("\n")
    };
    let missing = site("select/cons_tres_lockstep", "plugins/other.so");
    let stock = site("select/cons_tres", "plugins/other.so");
    let linear = site("select/linear", "plugins/other.so");
    insta::assert_snapshot!(
        [
            found(&named, "22.05"),
            found(&named, "25.05"),
            found(&missing, "25.05"),
            found(&stock, "24.11"),
            found(&linear, "23.11")
        ]
        .join("\n\n")
    );
}

#[test]
fn every_topology_plugin_is_known_by_release() {
    let judge = |plugin: &str, release: &str| {
        let conf = format!("SelectType=select/cons_tres\nTopologyPlugin={plugin}\n{NODES}");
        let site = Site::new(&[("slurm.conf", &conf), ("topology.conf", TREE)]);
        let (_, out, _) = site.run(&format!("check --slurm-conf slurm.conf --slurm-version {release}"));
        ["C005", "C103"].into_iter().find(|code| out.contains(code)).unwrap_or("fine")
    };
    for (plugin, release, judgement) in [
        ("topology/none", "22.05", "fine"),
        ("topology/none", "25.05", "fine"),
        ("topology/default", "22.05", "C005"),
        ("topology/default", "24.11", "fine"),
        ("topology/flat", "24.11", "C005"),
        ("topology/flat", "26.05", "fine"),
        ("topology/tree", "24.11", "C103"),
        ("topology/tree\nTopologyParam=TopoOptional", "24.11", "fine"),
        ("topology/block", "22.05", "C005"),
        ("topology/block", "25.05", "C103"),
        ("topology/ring", "25.11", "C005"),
        ("topology/torus3d", "26.05", "C103"),
    ] {
        assert_eq!(judge(plugin, release), judgement, "{plugin} in {release}");
    }
}

#[test]
fn topo_draws_a_tree() {
    let site = tidy();
    insta::assert_snapshot!(site.shown("topo --slurm-conf slurm.conf"));
    let (_, json, _) = site.run("topo --slurm-conf slurm.conf --json");
    let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(value["levels"].to_string(), "[4,1]");
    assert_eq!(value["switches"][1]["nodes"], "n[01-04]");
}

#[test]
fn topo_without_a_fabric_says_why_on_stderr() {
    let site = Site::new(&[("topology.conf", "SwitchName=a Switches=b\n")]);
    insta::assert_snapshot!(site.shown("topo --topology topology.conf --alone"));
}

#[test]
fn topo_draws_a_picture() {
    let site = tidy();
    let (code, out, _) = site.run("topo --slurm-conf slurm.conf --svg fabric.svg");
    assert_eq!((code, out.as_str()), (0, ""));
    let picture = std::fs::read_to_string(site.0.path().join("fabric.svg")).expect("the picture");
    for part in ["leaf1", "leaf4", "n[13-16]", "16 nodes on 4 leaves"] {
        assert!(picture.contains(part), "{part} is missing in {picture}");
    }
    // One square a node.
    assert_eq!(picture.matches("h7v7h-7z").count(), 16);
}

#[test]
fn colours_are_for_terminals() {
    let site = tidy();
    assert!(!site.run("topo --slurm-conf slurm.conf").1.contains('\x1b'));
    assert!(site.run("--color always topo --slurm-conf slurm.conf").1.contains("\x1b["));
}

#[test]
fn nothing_to_read_is_said_with_the_way_out() {
    let site = Site::new(&[]);
    if Path::new("/etc/slurm/slurm.conf").exists() {
        println!("SKIPPED: this host has a slurm.conf of its own");
        return;
    }
    let (code, out, err) = site.run("check");
    assert_eq!((code, out.as_str()), (2, ""));
    assert_eq!(
        err,
        "lockstep: no /etc/slurm/slurm.conf; give --slurm-conf FILE, or --topology FILE --alone\n"
    );
}

#[test]
fn man_pages_and_completions_are_generated() {
    let site = Site::new(&[("man/keep", "")]);
    assert_eq!(site.run("generate man man"), (0, String::new(), String::new()));
    for page in ["lockstep.1", "lockstep-check.1", "lockstep-topo.1"] {
        let text = std::fs::read_to_string(site.0.path().join("man").join(page)).expect(page);
        assert!(text.contains(".SH DESCRIPTION"), "{page}");
    }
    for shell in ["bash", "zsh", "fish"] {
        let (code, script, _) = site.run(&format!("generate completions {shell}"));
        assert!(code == 0 && script.contains("against"), "{shell}");
    }
    assert_eq!(site.run("generate man nowhere").0, 2);
}

#[test]
fn each_partition_is_held_against_its_own_topology() {
    let conf = "SelectType=select/cons_tres\nPluginDir=ours\nNodeName=n[1-16]\nPartitionName=a Nodes=ALL\n\
        PartitionName=b Nodes=ALL Topology=nvl\nPartitionName=c Nodes=ALL\nPartitionName=d Nodes=ALL Topology=flat\n";
    let yaml = "- topology: nvl\n  block:\n    block_sizes: [8, 16]\n    blocks:\n\
        \x20     - {block: b1, nodes: 'n[1-8]'}\n      - {block: b2, nodes: 'n[9-16]'}\n\
        - topology: main\n  cluster_default: true\n  tree:\n    switches:\n\
        \x20     - {switch: s1, nodes: 'n[1-12]'}\n      - {switch: s2, nodes: 'n[13-16]'}\n\
        - topology: flat\n  flat: true\n";
    let site = Site::new(&[
        ("slurm.conf", conf),
        ("topology.yaml", yaml),
        ("topology.conf", "not read\n"),
        ("ours/select_cons_tres.so", OURS),
    ]);
    insta::assert_snapshot!(site.shown("check --slurm-conf slurm.conf --slurm-version 25.05"));
    let blocks = site.shown("topo --slurm-conf slurm.conf --topology-name nvl --slurm-version 25.05 --conf");
    assert!(blocks.contains("SwitchName=b_1-2_ Switches=b[1-2]\nSwitchName=b1 Nodes=n[1-8]\n"), "{blocks}");
}

const JOBS: &str =
    "job_id,submission_time,duration,num_gpu\na,0,600,8\nb,10,600,32\nc,20,60,4\nd,900,60,16\n";

#[test]
fn a_simulation_compares_placers() {
    let site = Site::new(&[("jobs.csv", JOBS), ("topology.conf", TREE)]);
    let args = "sim jobs.csv --topology topology.conf --placers lockstep,pods --warm-up 0";
    insta::assert_snapshot!("sim", site.shown(args));
    let (code, json, _) = site.run(&format!("{args} --json --html page.html"));
    let run: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let names: Vec<&str> =
        run["placers"].as_array().expect("a list").iter().filter_map(|p| p["name"].as_str()).collect();
    assert_eq!((code, names), (0, vec!["lockstep", "pods"]));
    for figure in [
        "gangs",
        "gangs_spread_pct",
        "utilisation",
        "effective_utilisation",
        "gang_wait_mean_s",
        "gang_wait_p95_s",
        "small_wait_mean_s",
    ] {
        assert!(run["placers"][0][figure].is_number(), "{figure}");
    }
    assert_eq!(run["parameters"]["nodes"], 16);
    let page = std::fs::read_to_string(site.0.path().join("page.html")).expect("the page");
    assert!(page.contains("<svg") && page.contains("effective utilisation"));
    let outside = ["http:", "https:", "<script", "<link", "<img"];
    let links = page.replace("http://www.w3.org/2000/svg", "");
    assert!(outside.iter().all(|mark| !links.contains(mark)), "the page needs something outside the file");
}

#[test]
fn a_simulation_says_what_it_cannot_read() {
    let broken = JOBS.replace("600,32", "600,many");
    let site =
        Site::new(&[("jobs.csv", &broken), ("notes.txt", "nothing of the kind\n"), ("topology.conf", "\n")]);
    let shown = [
        "sim jobs.csv",
        "sim notes.txt",
        "sim none.csv",
        "sim --load 0",
        "sim --mix 8:1",
        "sim --topology topology.conf",
        "sim --nodes 1 --mix 64=1",
        "sim --jobs 10 --html no/such/folder.html",
    ];
    insta::assert_snapshot!("sim_errors", shown.map(|args| site.shown(args)).join("\n"));
}
