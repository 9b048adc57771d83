//! `lockstep check`: everything that can be told from the files before a gang is placed wrongly.

use crate::against::{self, Changes};
use crate::cluster::{Cluster, ClusterArgs};
use crate::install::{self, Form};
use crate::partitions::{self, PartitionGroup};
use crate::report::{self, BOLD, FAINT, Finding};
use crate::{Outcome, topo};
use lockstep::fabric::diagnostic::{Diagnostic, Place, Severity, codes};
use lockstep::fabric::tree::Fabric;
use lockstep::fabric::{hostlist, lint};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

codes! {
    /// The codes of this module.
    CODES;
    NODE_ORDER = "C107" Warning "a node order that does not follow the fabric";
}

/// Checks slurm.conf, the topology and lockstep.toml, and says what to do.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Show what the topology changes against an old topology file
    #[arg(long, value_name = "OLD")]
    against: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    cluster: ClusterArgs,
}

const EXAMPLES: &str = "Examples:
  lockstep check
  lockstep check --live
  lockstep check --slurm-conf site/slurm.conf --slurm-version 24.11
  lockstep check --topology new.conf --against /etc/slurm/topology.conf

Exit codes: 0 clean or notes only, 1 warnings, 2 errors. docs/topology.md explains every code.";

pub fn run(args: &Args) -> Outcome {
    let mut cluster = args.cluster.read(args.against.as_deref())?;
    let mut findings = std::mem::take(&mut cluster.diagnostics);
    let (form, found) = install::examine(&cluster);
    findings.extend(found);
    let (partitions, found) = partitions::examine(&cluster);
    findings.extend(found);
    if let Some(fabric) = &cluster.reading.fabric {
        findings.extend(lint::shape(fabric, &cluster.topology));
        findings.extend(cluster.slurm_conf.as_ref().and_then(|_| node_order(fabric, &cluster)));
    }
    let changes = args.against.as_deref().and_then(|old| {
        let mut reading = cluster.read_topology(old, None);
        findings.extend(reading.diagnostics.drain(..).filter(Diagnostic::is_error));
        Some(against::changes(&reading.fabric?, cluster.reading.fabric.as_ref()?, &cluster.nodes))
    });
    let report = Report { cluster: &cluster, form, partitions, changes, findings };
    report::show(&if args.json { report::json(&report.view())? } else { report.text() })?;
    Ok(ExitCode::from(match report.worst() {
        None | Some(Severity::Note) => 0,
        Some(Severity::Warning) => 1,
        Some(Severity::Error) => 2,
    }))
}

/// Whether ranks, which follow slurmctld's node order, stay on a leaf as long as they can.
fn node_order(fabric: &Fabric, cluster: &Cluster) -> Option<Diagnostic> {
    let torn = lint::torn_leaves(fabric);
    let first = fabric.switch(*torn.first()?);
    let names = fabric.nodes_under(torn[0]).iter().filter_map(|&node| cluster.nodes.name(node));
    let what = format!(
        "in slurmctld's node order the nodes of {} of {} leaves are no neighbours (first {}: {})",
        torn.len(),
        fabric.at_level(0).len(),
        first.name,
        hostlist::fold(names.take(8)),
    );
    let hint =
        "ranks follow that order: name the nodes leaf by leaf, or give jobs a SLURM_HOSTFILE in fabric order";
    Some(Diagnostic::new(NODE_ORDER, Place::file(&cluster.topology), what, hint))
}

fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

struct Report<'a> {
    cluster: &'a Cluster,
    form: Form,
    partitions: Vec<PartitionGroup>,
    changes: Option<Changes>,
    findings: Vec<Diagnostic>,
}

#[derive(Serialize)]
struct View<'a> {
    release: Option<String>,
    slurm_conf: Option<String>,
    topology: String,
    policy: Option<String>,
    installed: String,
    recommended_topology_plugin: &'static str,
    fabric: Option<FabricView>,
    partitions: &'a [PartitionGroup],
    changes: &'a Option<Changes>,
    errors: usize,
    warnings: usize,
    notes: usize,
    findings: Vec<Finding<'a>>,
}

#[derive(Serialize)]
struct FabricView {
    nodes: usize,
    leaves: usize,
    switches: usize,
    levels: usize,
}

impl Report<'_> {
    fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.code.severity).max()
    }

    fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.code.severity == severity).count()
    }

    fn view(&self) -> View<'_> {
        let cluster = self.cluster;
        View {
            release: cluster.release.map(|release| release.to_string()),
            slurm_conf: cluster.slurm_conf.as_ref().map(|(path, _)| path.display().to_string()),
            topology: cluster.topology.display().to_string(),
            policy: cluster.policy.as_ref().map(|path| path.display().to_string()),
            installed: self.form.to_string(),
            recommended_topology_plugin: install::plain_topology(cluster.release),
            fabric: cluster.reading.fabric.as_ref().map(|fabric| FabricView {
                nodes: fabric.order().len(),
                leaves: fabric.at_level(0).len(),
                switches: fabric.switch_count(),
                levels: fabric.level_count(),
            }),
            partitions: &self.partitions,
            changes: &self.changes,
            errors: self.count(Severity::Error),
            warnings: self.count(Severity::Warning),
            notes: self.count(Severity::Note),
            findings: self.findings.iter().map(Finding::from).collect(),
        }
    }

    fn text(&self) -> String {
        let mut text = self.head();
        self.partitions.iter().for_each(|group| text += &group.table());
        if let Some(changes) = &self.changes {
            text += &format!("\n{BOLD}changes{BOLD:#}\n");
            changes.lines().for_each(|line| text += &(line + "\n"));
            if changes.is_empty() {
                text += "none\n";
            }
        }
        text.push('\n');
        self.findings.iter().for_each(|finding| text += &(report::line(finding) + "\n"));
        let count = |severity: Severity| counted(self.count(severity), &severity.to_string());
        let [errors, warnings, notes] = [Severity::Error, Severity::Warning, Severity::Note].map(count);
        text + &format!("{FAINT}{errors}, {warnings}, {notes}{FAINT:#}\n")
    }

    /// What was read.
    fn head(&self) -> String {
        let cluster = self.cluster;
        let path = |path: &Path| path.display().to_string();
        let mut rows = Vec::new();
        if let Some((file, conf)) = &cluster.slurm_conf {
            let release = cluster.release.map_or("unknown".into(), |release| release.to_string());
            let preempt = conf.setting("PreemptType").map_or("preempt/none", |setting| &setting.value);
            let recommended = format!("TopologyPlugin={}", install::plain_topology(cluster.release));
            rows.push(("Slurm", format!("{release}, {}, {} nodes", file.display(), conf.nodes().len())));
            rows.push(("Lockstep", self.form.to_string()));
            rows.push(("preemption", preempt.into()));
            rows.push(("recommended", recommended));
        }
        rows.push(("policy", cluster.policy.as_deref().map_or("none".into(), path)));
        rows.push(("topology", path(&cluster.topology)));
        rows.push(("fabric", cluster.reading.fabric.as_ref().map_or("none".into(), topo::summary)));
        rows.iter().map(|(name, value)| format!("{BOLD}{name:<11}{BOLD:#} {value}\n")).collect()
    }
}
