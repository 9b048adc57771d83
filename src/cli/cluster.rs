//! Which files describe the cluster, and what they say: the options that all subcommands share.

use lockstep::fabric::diagnostic::{Diagnostic, Place};
use lockstep::fabric::hostlist::Dialect;
use lockstep::fabric::{self, NodeNames, Reading, TopologyFile, conf_text};
use lockstep::policy::Policy;
use lockstep::slurm_conf::{self, Release, SlurmConf};
use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

const DEFAULT_SLURM_CONF: &str = "/etc/slurm/slurm.conf";

/// Where the cluster's files are.
#[derive(clap::Args, Default)]
#[command(next_help_heading = "Cluster")]
pub struct ClusterArgs {
    /// slurm.conf [default: with --live the controller's, else $SLURM_CONF, else /etc/slurm/slurm.conf]
    #[arg(long, value_name = "FILE")]
    slurm_conf: Option<PathBuf>,
    /// The topology file [default: topology.yaml, else topology.conf, beside slurm.conf]
    #[arg(long, value_name = "FILE")]
    topology: Option<PathBuf>,
    /// Which topology of a topology.yaml [default: the cluster's]
    #[arg(long, value_name = "NAME")]
    topology_name: Option<String>,
    /// The policy [default: lockstep.toml beside slurm.conf, if it exists]
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Read the topology file alone: the nodes are those it names, not those of slurm.conf
    #[arg(long, requires = "topology", conflicts_with_all = ["slurm_conf", "live"])]
    alone: bool,
    /// The release of Slurm, such as 24.11 [default: that of the installed one]
    #[arg(long, value_name = "RELEASE")]
    slurm_version: Option<Release>,
    /// Ask the running controller for nodes, version and settings
    #[arg(long)]
    live: bool,
}

/// A cluster as its files, and perhaps its controller, describe it.
pub struct Cluster {
    /// Slurm's release, if it could be told.
    pub release: Option<Release>,
    /// slurm.conf and its path; none for a topology file that is read alone.
    pub slurm_conf: Option<(PathBuf, SlurmConf)>,
    /// The settings in force in the running controller, by lower-case key; empty if it was not asked.
    pub in_force: BTreeMap<String, String>,
    /// The nodes.
    pub nodes: NodeNames,
    /// The policy's path, if there is one.
    pub policy: Option<PathBuf>,
    /// The topology file.
    pub topology: PathBuf,
    /// What the topology file says; its diagnostics are with the others.
    pub reading: Reading,
    /// The findings in all files.
    pub diagnostics: Vec<Diagnostic>,
    exclude: Vec<String>,
    topology_name: Option<String>,
}

/// Reads a file from disk.
pub fn source(path: &Path) -> io::Result<String> {
    std::fs::read_to_string(path)
}

impl ClusterArgs {
    /// A topology file alone: the nodes are those that it names.
    pub fn alone(topology: &Path) -> Self {
        Self { topology: Some(topology.into()), alone: true, ..Self::default() }
    }

    /// Reads all that the options name. Without slurm.conf the nodes are those that the topology file names, and
    /// those of the topology `also`.
    ///
    /// # Errors
    /// There is nothing to read, or the controller does not answer. What the files hold is not an error but a
    /// diagnostic.
    pub fn read(&self, also: Option<&Path>) -> Result<Cluster, Box<dyn Error>> {
        let in_force = if self.live { running_settings()? } else { BTreeMap::new() };
        let conf_path = self.slurm_conf_path(&in_force)?;
        let release = self.release(&in_force, conf_path.as_deref())?;
        let dialect = release.map_or(Dialect::default(), Release::dialect);
        let mut diagnostics = Vec::new();

        let conf = conf_path.map(|path| {
            let (conf, found) = SlurmConf::read(&source, &path, dialect);
            diagnostics
                .extend(found.into_iter().filter(|found| !self.live || found.code != slurm_conf::NO_NODES));
            (path, conf)
        });
        let folder = conf.as_ref().map(|(path, _)| path.parent().unwrap_or(Path::new("")));
        let policy_path = (self.policy.clone())
            .or_else(|| Some(folder?.join("lockstep.toml")).filter(|path| path.exists()));
        let policy = policy_path.as_deref().map_or(Ok(Policy::default()), |path| read_policy(path, dialect));
        let mut policy = policy.unwrap_or_else(|fault| {
            diagnostics.push(fault);
            Policy::default()
        });
        let topology = (self.topology.clone())
            .or_else(|| Some(fabric::file_in(folder?, Path::exists)))
            .ok_or("no topology file; give --topology FILE")?;
        let file = TopologyFile {
            source: &source,
            path: &topology,
            dialect,
            topology: self.topology_name.as_deref(),
            exclude: &policy.exclude,
        };
        let nodes = match &conf {
            _ if self.live => running_nodes()?,
            Some((_, conf)) if !conf.nodes().is_empty() => conf.node_names(),
            _ => {
                let paths = std::iter::once(topology.as_path()).chain(also);
                TopologyFile::named_nodes(paths.map(|path| TopologyFile { path, ..file }))
            }
        };
        let mut reading = file.read(&nodes);
        diagnostics.append(&mut reading.diagnostics);
        if let Some(fabric) = &reading.fabric {
            diagnostics.extend(policy.settle(fabric).err());
        }
        Ok(Cluster {
            release,
            slurm_conf: conf,
            in_force,
            nodes,
            policy: policy_path,
            topology,
            reading,
            diagnostics,
            exclude: policy.exclude,
            topology_name: self.topology_name.clone(),
        })
    }

    fn slurm_conf_path(&self, in_force: &BTreeMap<String, String>) -> Result<Option<PathBuf>, String> {
        if self.alone {
            return Ok(None);
        }
        // The controller may run on another host, or with a file of its own.
        let controllers = in_force.get("slurm_conf").map(PathBuf::from).filter(|path| path.exists());
        let environment = || std::env::var_os("SLURM_CONF").map(PathBuf::from);
        let given = self.slurm_conf.clone().or(controllers).or_else(environment);
        let default = || Some(PathBuf::from(DEFAULT_SLURM_CONF)).filter(|path| path.exists());
        let none = format!("no {DEFAULT_SLURM_CONF}; give --slurm-conf FILE, or --topology FILE --alone");
        Ok(Some(given.or_else(default).ok_or(none)?))
    }

    fn release(
        &self,
        in_force: &BTreeMap<String, String>,
        conf: Option<&Path>,
    ) -> Result<Option<Release>, Box<dyn Error>> {
        if self.slurm_version.is_some() {
            return Ok(self.slurm_version);
        }
        if let Some(version) = in_force.get("slurm_version") {
            return Ok(Some(version.parse()?));
        }
        // scontrol reads slurm.conf even to tell its version; slurmctld is there on controllers only.
        let conf = conf.unwrap_or(Path::new("/dev/null"));
        let asked = ["slurmctld", "scontrol"].into_iter().find_map(|program| {
            let output = Command::new(program).arg("-V").env("SLURM_CONF", conf).output().ok()?;
            String::from_utf8_lossy(&output.stdout).parse().ok()
        });
        Ok(asked)
    }
}

impl Cluster {
    /// Reads another topology file, or another topology of a topology.yaml, over the same nodes.
    pub fn read_topology(&self, path: &Path, name: Option<&str>) -> Reading {
        let name = name.or(self.topology_name.as_deref());
        let dialect = self.dialect();
        TopologyFile { source: &source, path, dialect, topology: name, exclude: &self.exclude }
            .read(&self.nodes)
    }

    /// What the cluster's Slurm takes for a hostlist.
    pub fn dialect(&self) -> Dialect {
        self.release.map_or(Dialect::default(), Release::dialect)
    }
}

fn read_policy(path: &Path, dialect: Dialect) -> Result<Policy, Diagnostic> {
    let text = source(path).map_err(|error| conf_text::unreadable(path, Place::file(path), &error))?;
    Policy::parse(&text, path, dialect)
}

fn scontrol(args: &[&str]) -> Result<String, Box<dyn Error>> {
    let output = Command::new("scontrol")
        .args(args)
        .output()
        .map_err(|error| format!("cannot run scontrol: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("scontrol {}: {}", args.join(" "), said.trim()).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// The settings in force by lower-case key.
fn running_settings() -> Result<BTreeMap<String, String>, Box<dyn Error>> {
    let text = scontrol(&["show", "config"])?;
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    Ok(pairs.map(|(key, value)| (key.trim().to_ascii_lowercase(), value.trim().to_string())).collect())
}

/// The nodes in the order of slurmctld's table, dynamic ones included.
fn running_nodes() -> Result<NodeNames, Box<dyn Error>> {
    let text = scontrol(&["--oneliner", "show", "nodes"])?;
    let names = text.lines().filter_map(|line| line.strip_prefix("NodeName=")?.split_whitespace().next());
    Ok(NodeNames::new(names.map(Some)))
}
