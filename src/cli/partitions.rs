//! Where gangs of each size fit, partition by partition.

use crate::cluster::{self, Cluster};
use crate::report::BOLD;
use comfy_table::{CellAlignment, Table, presets};
use lockstep::fabric::diagnostic::{Diagnostic, Place, codes};
use lockstep::fabric::lint::{self, Fit, Home};
use lockstep::fabric::tree::Fabric;
use lockstep::fabric::{is_yaml, topology_yaml};
use lockstep::nodeset::NodeSet;
use lockstep::slurm_conf::{Partition, Setting};
use serde::Serialize;

codes! {
    /// The codes of this module.
    CODES;
    NO_SUCH_TOPOLOGY = "C007" Error "a partition names a topology that topology.yaml does not define";
    SCARCE = "C106" Warning "a gang size that few domains can hold";
    PARTITION_OUTSIDE = "C108" Warning "a partition without a node in the fabric";
}

/// Partitions with the same nodes and topology, and where gangs fit on them.
#[derive(Serialize)]
pub struct PartitionGroup {
    names: Vec<String>,
    nodes: usize,
    outside: usize,
    #[serde(serialize_with = "fits_as_json")]
    fits: Vec<Fit>,
    #[serde(skip)]
    set: NodeSet,
    #[serde(skip)]
    topology: Option<String>,
}

fn fits_as_json<S: serde::Serializer>(fits: &[Fit], serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct View {
        gang: usize,
        level: Option<u16>,
        can_hold: usize,
        domains: usize,
    }
    serializer.collect_seq(fits.iter().map(|fit| View {
        gang: fit.size,
        level: fit.home.map(|home| home.level),
        can_hold: fit.home.map_or(0, |home| home.can_hold),
        domains: fit.home.map_or(0, |home| home.domains),
    }))
}

/// The partitions, each on its own topology. A topology that is read alone is one partition.
pub fn examine(cluster: &Cluster) -> (Vec<PartitionGroup>, Vec<Diagnostic>) {
    let mut groups: Vec<PartitionGroup> = Vec::new();
    let mut findings = Vec::new();
    let Some((_, conf)) = &cluster.slurm_conf else {
        let alone =
            |fabric: &Fabric| PartitionGroup::new("(all nodes)", None, fabric, fabric.listed().clone());
        groups.extend(cluster.reading.fabric.as_ref().map(alone));
        findings.extend(groups.iter().filter_map(|group| group.scarcity(cluster)));
        return (groups, findings);
    };
    for partition in conf.partitions() {
        let name = &partition.name.value;
        let topology = partition.topology.as_ref().map(|topology| topology.value.as_str());
        let set = conf.nodes_of(partition, &cluster.nodes, cluster.dialect());
        let same = groups.iter_mut().find(|group| group.set == set && group.topology.as_deref() == topology);
        if let Some(same) = same {
            same.names.push(name.clone());
            continue;
        }
        let fabric = match &partition.topology {
            Some(named) => {
                own_topology(cluster, partition, named).map_err(|finding| findings.push(finding)).ok()
            }
            None => cluster.reading.fabric.clone(),
        };
        let Some(fabric) = fabric else { continue };
        if set.intersects(fabric.listed()) {
            let group = PartitionGroup::new(name, topology, &fabric, set);
            findings.extend(group.scarcity(cluster));
            groups.push(group);
        } else {
            let what =
                format!("no node of partition {name} is in the fabric, so none of its gangs is placed");
            let hint = "correct the Nodes of the partition or of the topology";
            findings.push(Diagnostic::new(PARTITION_OUTSIDE, partition.name.place.clone(), what, hint));
        }
    }
    (groups, findings)
}

/// The fabric of a partition that names its topology.
fn own_topology(cluster: &Cluster, partition: &Partition, named: &Setting) -> Result<Fabric, Diagnostic> {
    let user = format!("partition {} uses topology `{}`", partition.name.value, named.value);
    let known = is_yaml(&cluster.topology)
        && cluster::source(&cluster.topology)
            .is_ok_and(|text| topology_yaml::names(&text).contains(&named.value));
    if !known {
        let hint = format!("define it in {}", cluster.topology.with_file_name("topology.yaml").display());
        let what = format!("{user}, which is not defined");
        return Err(Diagnostic::new(NO_SUCH_TOPOLOGY, named.place.clone(), what, hint));
    }
    cluster.read_topology(&cluster.topology, Some(&named.value)).fabric.ok_or_else(|| {
        let what = format!("{user}, which gives no fabric, so none of its gangs is placed");
        let hint = format!("`lockstep topo --topology-name {}` says why", named.value);
        Diagnostic::new(PARTITION_OUTSIDE, named.place.clone(), what, hint)
    })
}

impl PartitionGroup {
    fn new(name: &str, topology: Option<&str>, fabric: &Fabric, set: NodeSet) -> Self {
        let nodes = set.count();
        let listed = set.count_common(fabric.listed());
        let sizes = std::iter::successors(Some(2), |size| Some(2 * size)).take_while(|&size| size <= listed);
        Self {
            names: vec![name.into()],
            nodes,
            outside: nodes - listed,
            fits: lint::fits(fabric, &set, sizes),
            set,
            topology: topology.map(str::to_string),
        }
    }

    /// The gang sizes that few domains can hold.
    fn scarcity(&self, cluster: &Cluster) -> Option<Diagnostic> {
        let scarce: Vec<String> = self.fits.iter().filter_map(scarcity).collect();
        let what = format!("partition {}: {}", self.names.join(", "), scarce.join(", "));
        let hint = "gangs of these sizes wait for those few: keep them free, or ask for sizes that fit more";
        (!scarce.is_empty()).then(|| Diagnostic::new(SCARCE, Place::file(&cluster.topology), what, hint))
    }

    /// Where gangs of each size fit, for the terminal.
    pub fn table(&self) -> String {
        let outside =
            if self.outside > 0 { format!(", {} outside the fabric", self.outside) } else { String::new() };
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_header(["gang", "fits in a", "domains that can hold it"]);
        for fit in &self.fits {
            let (level, domains) = match fit.home {
                Some(Home { level, can_hold, domains }) => {
                    let level = if level == 0 { "leaf".into() } else { format!("level {level}") };
                    (level, format!("{can_hold} of {domains}"))
                }
                None => ("-".into(), "none: no gang crosses trees".into()),
            };
            table.add_row([fit.size.to_string(), level, domains]);
        }
        if let Some(column) = table.column_mut(0) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        let names = self.names.join(", ");
        format!("\n{BOLD}partition {names}{BOLD:#}  {} nodes{outside}\n{}\n", self.nodes, table.trim_fmt())
    }
}

fn scarcity(fit: &Fit) -> Option<String> {
    let home = fit.home.filter(|home| home.is_scarce())?;
    let domains = if home.level == 0 { "leaves".into() } else { format!("domains of level {}", home.level) };
    Some(format!("only {} of {} {domains} can hold {} nodes", home.can_hold, home.domains, fit.size))
}
