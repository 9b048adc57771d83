//! The engine against brute force: on small fabrics every possible choice is looked at and priced straight from the
//! definitions in docs/placement.md, and none may be better than the engine's.

mod choice;
mod forecast;
mod victims;

use super::*;
use crate::cluster::{Capacity, Held, Holding, Reluctance};
use crate::fabric::tree::{Below, Declared, Level};
use crate::request::{GresKind, JobId, Memory};
use proptest::prelude::*;

const GPU: GresKind = GresKind(0);
/// GPUs a node.
const GPUS: u32 = 4;
/// Nodes that a fabric has at most.
const NODES: usize = 11;

/// A tree of up to three levels with a few nodes, as nested lists: spines of racks of leaf sizes.
fn trees() -> impl Strategy<Value = Fabric> {
    let racks = prop::collection::vec(prop::collection::vec(1u32..4, 1..3), 1..3);
    let trees = prop::collection::vec(racks, 1..3).prop_map(|spines| build(&spines));
    trees.prop_filter("too large for brute force", |fabric| fabric.node_count() <= NODES)
}

fn build(spines: &[Vec<Vec<u32>>]) -> Fabric {
    let mut declared = Vec::new();
    let mut add = |below| {
        declared.push(Declared { name: format!("s{}", declared.len()), below });
        declared.len() - 1
    };
    let (mut node, mut tops) = (0, Vec::new());
    for racks in spines {
        let mut middles = Vec::new();
        for leaves in racks {
            let mut bottoms = Vec::new();
            for &size in leaves {
                bottoms.push(add(Below::Nodes((node..node + size).collect())));
                node += size;
            }
            middles.push(add(Below::Switches(bottoms)));
        }
        tops.push(add(Below::Switches(middles)));
    }
    add(Below::Switches(tops));
    Fabric::new(node as usize, &declared)
}

/// The nodes whose bits are set.
fn set(fabric: &Fabric, bits: u32) -> NodeSet {
    let size = fabric.node_count();
    NodeSet::from_nodes(size, (0..size as u32).filter(|node| bits >> node & 1 == 1))
}

/// A gang of whole nodes, or of so many GPUs on each.
fn share(gpus: Option<u32>) -> Share {
    let gres = gpus.map(|gpus| (GPU, gpus.into()));
    Share {
        whole_node: gpus.is_none(),
        cpus: 1,
        memory: Memory::Megabytes(0),
        gres: gres.into_iter().collect(),
    }
}

/// Nodes of four GPUs.
fn ledger(fabric: &Fabric) -> Ledger {
    let mut ledger = Ledger::new(fabric.node_count());
    ledger.set_slot_kind(GPU);
    for node in 0..fabric.node_count() as u32 {
        ledger.set_capacity(node, Capacity { cpus: 8, memory_mb: 0, gres: vec![(GPU, GPUS.into())] });
    }
    ledger
}

/// What a job holds that has so many GPUs on each of its nodes.
fn holding(nodes: impl IntoIterator<Item = u32>, gpus: u32, end: Time) -> Holding {
    let held = Held { cpus: 1, memory_mb: 0, gres: vec![(GPU, gpus.into())] };
    Holding { nodes: nodes.into_iter().map(|node| (node, held.clone())).collect(), end, suspended: false }
}

/// Every choice of so many of the given nodes.
fn choices(from: &[u32], size: usize) -> Vec<Vec<u32>> {
    match (size, from) {
        (0, _) => vec![vec![]],
        (_, []) => vec![],
        (_, [first, rest @ ..]) => {
            let with = choices(rest, size - 1).into_iter().map(|mut nodes| {
                nodes.push(*first);
                nodes
            });
            with.chain(choices(rest, size)).collect()
        }
    }
}

/// The given nodes under a domain.
fn under(fabric: &Fabric, domain: SwitchId, nodes: &NodeSet) -> Vec<u32> {
    fabric.nodes_under(domain).iter().copied().filter(|&node| nodes.contains(node)).collect()
}

/// Whether a choice of nodes under a domain is what the gang asks for, its number aside.
fn serves(
    fabric: &Fabric,
    request: &Request,
    segments: Option<Level>,
    domain: SwitchId,
    nodes: &[u32],
) -> bool {
    let leaf = |node: u32| fabric.leaf_of(node).unwrap();
    let mut positions: Vec<_> = nodes.iter().map(|&node| fabric.position(node).unwrap()).collect();
    positions.sort_unstable();
    let mut leaves: Vec<_> = nodes.iter().map(|&node| leaf(node)).collect();
    leaves.sort_unstable();
    leaves.dedup();
    let whole_segments = || match (request.segment, segments) {
        (Some(size), Some(level)) if fabric.switch(domain).level > level => {
            let part = |node: u32| {
                let mut id = leaf(node);
                while let Some(above) =
                    fabric.switch(id).parent.filter(|&id| fabric.switch(id).level <= level)
                {
                    id = above;
                }
                id
            };
            let mut parts: Vec<_> = nodes.iter().map(|&node| part(node)).collect();
            parts.sort_unstable();
            let rests =
                parts.chunk_by(|a, b| a == b).map(|part| part.len() as u32 % size).filter(|&rest| rest > 0);
            rests.clone().count() <= 1 && rests.into_iter().all(|rest| rest == request.nodes % size)
        }
        _ => true,
    };
    request.required.iter().flat_map(NodeSet::iter).all(|node| nodes.contains(&node))
        && (!request.strictly_contiguous || positions.windows(2).all(|pair| pair[1] == pair[0] + 1))
        && request.max_leaves.is_none_or(|most| leaves.len() <= most as usize)
        && (request.uniform.is_empty()
            || request.uniform.iter().any(|set| nodes.iter().all(|&node| set.contains(node))))
        && whole_segments()
}

/// What a choice of nodes costs, straight from the definitions, the most important part first.
fn price(
    fabric: &Fabric,
    ledger: &Ledger,
    mix: &Mix,
    usable: &NodeSet,
    request: &Request,
    domain: SwitchId,
    nodes: &[u32],
) -> Vec<u64> {
    let shares_nodes = !request.share.whole_node;
    let count = |id: SwitchId, among: &dyn Fn(u32) -> bool| {
        fabric.nodes_under(id).iter().filter(|&&node| among(node)).count() as u64
    };
    let is_idle = |node: u32| !shares_nodes || ledger.holders(node).next().is_none();
    let touched = |id: &SwitchId| count(*id, &|node| nodes.contains(&node)) > 0;
    let inside = |id: SwitchId| {
        std::iter::successors(Some(id), |&id| fabric.switch(id).parent).any(|above| above == domain)
    };
    let mut price = vec![u64::from(request.nodes) - nodes.len() as u64];
    for level in 0..fabric.level_count() as Level {
        let switches = fabric.at_level(level).iter().filter(|&&id| inside(id));
        price.push(switches.filter(|&id| touched(id)).count() as u64);
    }
    let holds = |level, size: u32| {
        fabric.at_level(level).iter().any(|&id| fabric.switch(id).node_count() >= size as usize)
    };
    let mut lost = 0;
    for &(size, weight) in mix.gangs() {
        let Some(home) = (0..fabric.level_count() as Level).find(|&level| holds(level, size)) else {
            continue;
        };
        // A gang that shares its nodes on several leaves: what it costs higher domains is not counted.
        if shares_nodes && home > 0 && !fabric.switch(domain).is_leaf() {
            continue;
        }
        for &id in fabric.at_level(home) {
            let before = count(id, &|node| usable.contains(node) && is_idle(node));
            let taken = count(id, &|node| nodes.contains(&node) && is_idle(node));
            lost += weight * (before / u64::from(size) - (before - taken) / u64::from(size));
        }
    }
    let mut left = 0;
    if shares_nodes {
        let taken = ledger.devices(&request.share);
        for &node in nodes {
            let free = ledger.slots(node).free;
            for &(size, weight) in mix.parts().iter().filter(|&&(size, _)| size < GPUS) {
                lost += weight * u64::from(free / size - (free - taken) / size);
            }
            left += u64::from(free - taken);
        }
    } else {
        for &id in fabric.at_level(0).iter().filter(|id| touched(id)) {
            left += count(id, &|node| usable.contains(node) && !nodes.contains(&node));
        }
    }
    let reluctances = || nodes.iter().map(|&node| ledger.reluctance(node));
    let powered_down = reluctances().filter(|reluctance| reluctance.powered_down).count() as u64;
    let weight = reluctances().map(|reluctance| u64::from(reluctance.weight)).sum();
    price.extend([lost, left, powered_down, weight, under(fabric, domain, usable).len() as u64]);
    price
}
