//! `lockstep topo`: the fabric as a tree in the terminal, as a picture, or as JSON.

use crate::cluster::{Cluster, ClusterArgs};
use crate::report::{self, BOLD, FAINT};
use crate::{Outcome, picture};
use lockstep::fabric::tree::{Fabric, SwitchId};
use lockstep::fabric::{hostlist, review, topology_conf};
use lockstep::nodeset::NodeId;
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;

/// Shows the fabric: every switch with its level, node count and nodes.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Draw the fabric into an SVG file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print a topology.conf in tree form, whatever form was read
    #[arg(long, conflicts_with = "json")]
    conf: bool,
    #[command(flatten)]
    cluster: ClusterArgs,
}

const EXAMPLES: &str = "Examples:
  lockstep topo
  lockstep topo --topology topology.conf --alone --svg fabric.svg
  lockstep topo --topology topology.yaml --conf > topology.conf
  lockstep topo --json | jq '.switches[] | select(.level == 0) | .name'

Findings in the files go to stderr. Exit codes: 0, or 2 if there is no fabric.";

pub fn run(args: &Args) -> Outcome {
    let cluster = args.cluster.read(None)?;
    report::to_stderr(&cluster.diagnostics);
    let Some(fabric) = &cluster.reading.fabric else {
        return Ok(ExitCode::from(2));
    };
    if let Some(file) = &args.svg {
        std::fs::write(file, picture::draw(fabric, &cluster.nodes).to_string())
            .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    }
    if args.json {
        report::show(&report::json(&View::of(fabric, &cluster))?)?;
    } else if args.conf {
        report::show(&topology_conf::write(fabric, &cluster.nodes))?;
    } else if args.svg.is_none() {
        report::show(&tree(fabric, &cluster))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The names of nodes, folded in fabric order.
fn folded(cluster: &Cluster, nodes: &[NodeId]) -> String {
    hostlist::fold(nodes.iter().filter_map(|&node| cluster.nodes.name(node)))
}

/// The fabric's size in words.
pub fn summary(fabric: &Fabric) -> String {
    let plural =
        |count: usize, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
    format!(
        "{} on {}, {} in {}",
        plural(fabric.order().len(), "node", "nodes"),
        plural(fabric.at_level(0).len(), "leaf", "leaves"),
        plural(fabric.switch_count(), "switch", "switches"),
        plural(fabric.level_count(), "level", "levels"),
    )
}

/// The fabric as an aligned tree.
fn tree(fabric: &Fabric, cluster: &Cluster) -> String {
    let mut text = format!("{BOLD}{}{BOLD:#}\n", summary(fabric));
    let stems = stems(fabric);
    let labels = fabric.switches().zip(&stems).map(|((_, switch), stem)| format!("{stem}{}", switch.name));
    let labels: Vec<String> = labels.collect();
    let widest = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0);
    let digits = fabric.order().len().to_string().len();
    for ((id, switch), label) in fabric.switches().zip(&labels) {
        let count = switch.node_count();
        let nodes = if switch.is_leaf() { folded(cluster, fabric.nodes_under(id)) } else { String::new() };
        let line =
            format!("{label:widest$}  {FAINT}level {}  {count:>digits$}{FAINT:#}  {nodes}", switch.level);
        text += line.trim_end();
        text.push('\n');
    }
    let outside: Vec<NodeId> = review::unlisted(&cluster.nodes, fabric).collect();
    if !outside.is_empty() {
        text += &format!("{FAINT}outside the fabric: {}{FAINT:#}\n", folded(cluster, &outside));
    }
    text
}

/// Deeper switches are not indented any further.
const MAX_INDENT: usize = 32 * 3;

/// The branches that stand before each switch's name.
fn stems(fabric: &Fabric) -> Vec<String> {
    let is_last = |id: SwitchId| {
        let parent = fabric.switch(id).parent;
        parent.is_none_or(|parent| fabric.switch(parent).children.last() == Some(&id))
    };
    let mut stems: Vec<String> = Vec::with_capacity(fabric.switch_count());
    for (id, switch) in fabric.switches() {
        stems.push(match switch.parent {
            None => String::new(),
            Some(parent) => {
                let above = stems[parent.0 as usize].replace("├─ ", "│  ").replace("└─ ", "   ");
                let above: String = above.chars().take(MAX_INDENT).collect();
                above + if is_last(id) { "└─ " } else { "├─ " }
            }
        });
    }
    stems
}

/// The fabric as JSON.
#[derive(Serialize)]
struct View<'a> {
    topology: String,
    nodes: usize,
    levels: Vec<usize>,
    outside: String,
    switches: Vec<SwitchView<'a>>,
}

#[derive(Serialize)]
struct SwitchView<'a> {
    name: &'a str,
    level: u16,
    parent: Option<&'a str>,
    node_count: usize,
    nodes: String,
}

impl<'a> View<'a> {
    fn of(fabric: &'a Fabric, cluster: &Cluster) -> Self {
        let outside: Vec<NodeId> = review::unlisted(&cluster.nodes, fabric).collect();
        Self {
            topology: cluster.topology.display().to_string(),
            nodes: fabric.order().len(),
            levels: (0..fabric.level_count()).map(|level| fabric.at_level(level as u16).len()).collect(),
            outside: folded(cluster, &outside),
            switches: fabric
                .switches()
                .map(|(id, switch)| SwitchView {
                    name: &switch.name,
                    level: switch.level,
                    parent: switch.parent.map(|parent| fabric.switch(parent).name.as_str()),
                    node_count: switch.node_count(),
                    nodes: folded(cluster, fabric.nodes_under(id)),
                })
                .collect(),
        }
    }
}
