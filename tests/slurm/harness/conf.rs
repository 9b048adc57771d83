//! What a cluster is made of, and the configuration files that say so to Slurm.

use super::ports::Ports;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// The file names by which Slurm knows the two forms of the plugin.
pub const NAMED: &str = "select_cons_tres_lockstep.so";
pub const DROP_IN: &str = "select_cons_tres.so";

/// What decides placements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Install {
    /// Slurm's own select/cons_tres.
    Stock,
    /// Lockstep under its own name, seen by every process.
    Named,
    /// Lockstep in cons_tres's place, seen by slurmctld alone.
    DropIn,
}

/// The cluster's nodes, `n1` to `nN`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nodes {
    /// A slurmd for each.
    Real(usize),
    /// No slurmd: jobs are allocated and never launched.
    Cloud(usize),
}

impl Nodes {
    pub fn count(self) -> usize {
        match self {
            Self::Real(count) | Self::Cloud(count) => count,
        }
    }
}

/// A cluster to start.
#[derive(Clone, Debug)]
pub struct Setup {
    pub install: Install,
    pub nodes: Nodes,
    /// The text of topology.conf; none writes no such file.
    pub topology: Option<String>,
    /// The text of lockstep.toml; none writes no such file.
    pub policy: Option<String>,
    /// `topology/none`, or `topology/tree` for stock Slurm with the same file.
    pub topology_plugin: &'static str,
    pub cpus: u32,
    pub memory_mb: u64,
    pub gpus: u32,
    /// Further lines of slurm.conf. A key that the harness sets too goes to the later line, this one.
    pub extra: String,
    /// Options of single nodes, such as `("n[1-8]", "Features=fast")`; the rest have none.
    pub node_options: Vec<(String, String)>,
    /// The text of gres.conf; none describes the GPUs of [`Self::gpus`].
    pub gres_conf: Option<String>,
    /// Further environment of slurmctld.
    pub env: Vec<(String, String)>,
    /// What slurmctld runs under, such as valgrind and its options.
    pub wrapper: Vec<String>,
}

impl Setup {
    /// Nodes of 16 CPUs, 64,000 MB and 8 GPUs.
    pub fn new(install: Install, nodes: Nodes) -> Self {
        Self {
            install,
            nodes,
            topology: None,
            policy: None,
            topology_plugin: "topology/none",
            cpus: 16,
            memory_mb: 64_000,
            gpus: 8,
            extra: String::new(),
            node_options: Vec::new(),
            gres_conf: None,
            env: Vec::new(),
            wrapper: Vec::new(),
        }
    }

    /// A topology of so many nodes a leaf and leaves a spine: `leaf1` under `spine1`, and so on.
    pub fn wired(mut self, leaf: usize, spine: usize) -> Self {
        self.topology = Some(two_levels(self.nodes.count(), leaf, spine));
        self
    }

    pub fn topology(mut self, text: &str) -> Self {
        self.topology = Some(text.into());
        self
    }

    pub fn policy(mut self, text: &str) -> Self {
        self.policy = Some(text.into());
        self
    }

    pub fn extra(mut self, lines: &str) -> Self {
        self.extra.push_str(lines);
        self.extra.push('\n');
        self
    }

    pub fn node_option(mut self, nodes: &str, options: &str) -> Self {
        self.node_options.push((nodes.into(), options.into()));
        self
    }

    pub fn gres_conf(mut self, text: &str) -> Self {
        self.gres_conf = Some(text.into());
        self
    }

    pub fn env(mut self, key: &str, value: &str) -> Self {
        self.env.push((key.into(), value.into()));
        self
    }
}

/// A topology.conf of leaves of so many nodes, so many leaves a spine.
pub fn two_levels(nodes: usize, leaf: usize, spine: usize) -> String {
    let leaves = nodes.div_ceil(leaf);
    let mut text = String::new();
    for l in 0..leaves {
        let _ = writeln!(
            text,
            "SwitchName=leaf{} Nodes=n[{}-{}]",
            l + 1,
            l * leaf + 1,
            ((l + 1) * leaf).min(nodes)
        );
    }
    for s in 0..leaves.div_ceil(spine) {
        let (first, last) = (s * spine + 1, ((s + 1) * spine).min(leaves));
        let _ = writeln!(text, "SwitchName=spine{} Switches=leaf[{first}-{last}]", s + 1);
    }
    text
}

/// Where Slurm keeps its plugins: distributions differ, and so do architectures.
pub fn slurm_plugin_dir() -> PathBuf {
    let entries = |dir: &str| fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let libs = entries("/usr/lib").chain(["/usr/lib", "/usr/lib64", "/usr/local/lib"].map(PathBuf::from));
    let mut folders = libs.flat_map(|lib| ["slurm-wlm", "slurm"].map(|name| lib.join(name)));
    folders.find(|dir| dir.join(DROP_IN).exists()).expect("Slurm's plugins are not installed: run make deps")
}

/// What a slurm.conf is written for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    Controller,
    Everyone,
}

/// The text of a slurm.conf. `plugins` is the folder that stands before Slurm's own.
pub fn slurm_conf(
    setup: &Setup,
    dir: &Path,
    plugins: &Path,
    user: &str,
    ports: &Ports,
    reader: Reader,
) -> String {
    let (dir, own) = (dir.display(), slurm_plugin_dir());
    let (cluster, first_port) = (ports.cluster_name(), ports.first);
    let ours = match setup.install {
        Install::Stock => false,
        Install::Named => true,
        Install::DropIn => reader == Reader::Controller,
    };
    let plugin_dir =
        if ours { format!("{}:{}", plugins.display(), own.display()) } else { own.display().to_string() };
    let select = match setup.install {
        Install::Named => "select/cons_tres_lockstep",
        Install::Stock | Install::DropIn => "select/cons_tres",
    };
    let nodes = setup.nodes.count();
    let mut text = format!(
        "ClusterName={cluster}\n\
         SlurmctldHost=localhost(127.0.0.1)\n\
         SlurmctldPort={first_port}\n\
         SlurmUser={user}\n\
         SlurmdUser={user}\n\
         AuthType=auth/munge\n\
         AuthInfo=socket={dir}/munge.sock\n\
         CredType=cred/munge\n\
         StateSaveLocation={dir}/state\n\
         SlurmdSpoolDir={dir}/spool/%n\n\
         SlurmctldPidFile={dir}/slurmctld.pid\n\
         SlurmdPidFile={dir}/slurmd-%n.pid\n\
         SlurmctldLogFile={dir}/slurmctld.log\n\
         SlurmdLogFile={dir}/slurmd-%n.log\n\
         SlurmctldDebug=debug\n\
         DebugFlags=NO_CONF_HASH\n\
         PluginDir={plugin_dir}\n\
         SelectType={select}\n\
         SelectTypeParameters=CR_Core_Memory\n\
         TopologyPlugin={}\n\
         SchedulerType=sched/backfill\n\
         SchedulerParameters=bf_interval=1,bf_resolution=1,sched_interval=1,sched_min_interval=10000,batch_sched_delay=1\n\
         ProctrackType=proctrack/linuxproc\n\
         TaskPlugin=task/none\n\
         MpiDefault=none\n\
         MailProg=/bin/true\n\
         SwitchType=switch/none\n\
         ReturnToService=2\n\
         SlurmdTimeout=300\n\
         KillWait=1\n\
         MinJobAge=3600\n\
         GresTypes=gpu\n",
        setup.topology_plugin
    );
    let gpus = if setup.gpus > 0 { format!("Gres=gpu:{} ", setup.gpus) } else { String::new() };
    let hardware = format!("CPUs={} RealMemory={} {gpus}", setup.cpus, setup.memory_mb);
    match setup.nodes {
        Nodes::Cloud(_) => {
            let _ = writeln!(
                text,
                "SuspendProgram=/bin/true\nResumeProgram=/bin/true\nSuspendTime=-1\nResumeTimeout=3600\nResumeRate=0\n\
                 PrivateData=cloud\nTreeWidth=65533\nNodeName=DEFAULT {hardware}State=CLOUD"
            );
        }
        Nodes::Real(_) => {
            let _ = writeln!(
                text,
                "SlurmdParameters=config_overrides\n\
                 NodeName=DEFAULT {hardware}State=UNKNOWN"
            );
        }
    }
    // Lines of single nodes, in groups that share their options.
    let options = |node: usize| {
        let name = format!("n{node}");
        let given =
            setup.node_options.iter().filter(|(nodes, _)| contains(nodes, &name)).map(|(_, o)| o.as_str());
        given.collect::<Vec<_>>().join(" ")
    };
    match setup.nodes {
        Nodes::Cloud(_) if setup.node_options.is_empty() => {
            let _ = writeln!(text, "NodeName=n[1-{nodes}] NodeAddr=127.0.0.1");
        }
        Nodes::Cloud(_) => {
            for node in 1..=nodes {
                let _ = writeln!(text, "NodeName=n{node} NodeAddr=127.0.0.1 {}", options(node));
            }
        }
        Nodes::Real(_) => {
            for node in 1..=nodes {
                let port = ports.first as usize + node;
                let line = format!("NodeName=n{node} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port}");
                let _ = writeln!(text, "{line} {}", options(node));
            }
        }
    }
    text.push_str("PartitionName=DEFAULT MaxTime=INFINITE DefaultTime=10 DefMemPerCPU=100\n");
    if !setup.extra.contains("PartitionName=main ") {
        text.push_str("PartitionName=main Nodes=ALL Default=YES\n");
    }
    text.push_str(&setup.extra);
    text
}

fn contains(hostlist: &str, node: &str) -> bool {
    let dialect = lockstep::fabric::hostlist::Dialect::of_slurm(22, 5);
    lockstep::fabric::hostlist::expand(hostlist, dialect)
        .is_ok_and(|names| names.iter().any(|name| name == node))
}

/// The text of gres.conf: device files that exist everywhere stand for GPUs.
pub fn gres_conf(setup: &Setup) -> String {
    if let Some(text) = &setup.gres_conf {
        return text.clone();
    }
    match (setup.gpus, setup.nodes) {
        (0, _) => String::new(),
        (gpus, Nodes::Real(_)) => format!("Name=gpu File=/dev/tty[0-{}]\n", gpus - 1),
        (gpus, Nodes::Cloud(_)) => format!("Name=gpu Count={gpus}\n"),
    }
}
