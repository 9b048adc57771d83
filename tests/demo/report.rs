//! What became of the demo's jobs: a table, and the sums under it.

use crate::harness::Cluster;
use crate::workload::{GPUS, Work};
use comfy_table::{CellAlignment, Table, presets::UTF8_FULL_CONDENSED};
use lockstep::fabric::hostlist::fold;
use std::collections::BTreeMap;

/// Times of a job in seconds since the epoch.
struct Times {
    submitted: u64,
    started: u64,
    ended: u64,
}

/// Prints the table.
pub fn print(cluster: &Cluster, works: &BTreeMap<u32, Work>) {
    let wiring = cluster.wiring();
    let times = times(cluster);
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    table.set_header(["job", "asked", "nodes", "leaves", "excess switches", "waited"]);
    for column in [0, 4, 5] {
        table.column_mut(column).expect("a column of the header").set_cell_alignment(CellAlignment::Right);
    }
    let (mut excess, mut spread, mut gangs, mut gang_wait) = (0, 0, 0, 0);
    for (id, work) in works {
        let job = cluster.job(*id);
        let waited = times[id].started - times[id].submitted;
        let leaves: Vec<&str> = wiring.leaves(&job.nodes).into_iter().collect();
        let extra = wiring.excess(&job.nodes);
        if work.is_gang() {
            gangs += 1;
            excess += extra;
            spread += usize::from(extra > 0);
            gang_wait += waited;
        }
        let extra = if work.is_gang() { extra.to_string() } else { "-".into() };
        let row =
            [id.to_string(), work.asks(), fold(&job.nodes), leaves.join(" "), extra, format!("{waited} s")];
        table.add_row(row);
    }
    println!("{table}");
    let begin = times.values().map(|times| times.submitted).min().unwrap_or_default();
    let end = times.values().map(|times| times.ended).max().unwrap_or_default();
    let work: u64 = works
        .iter()
        .map(|(id, work)| (work.nodes * work.gpus) as u64 * (times[id].ended - times[id].started))
        .sum();
    let all = (cluster.setup.nodes.count() * GPUS) as u64 * (end - begin);
    println!(
        "{gangs} gangs: {spread} on more leaf switches than they needed, {excess} excess switches in all; \
         mean wait {} s.\nAll {} jobs done after {} s; GPUs in use {} % of that time.",
        gang_wait / gangs,
        works.len(),
        end - begin,
        100 * work / all
    );
}

fn times(cluster: &Cluster) -> BTreeMap<u32, Times> {
    let mut squeue = cluster.command("squeue");
    squeue.env("SLURM_TIME_FORMAT", "%s").args(["-h", "-t", "all", "-o", "%i %V %S %e"]);
    let output = squeue.output().expect("squeue runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let mut numbers = text.split_whitespace().map(|word| word.parse::<u64>().expect("squeue prints numbers"));
    let mut times = BTreeMap::new();
    while let (Some(id), Some(submitted), Some(started), Some(ended)) =
        (numbers.next(), numbers.next(), numbers.next(), numbers.next())
    {
        times.insert(id as u32, Times { submitted, started, ended });
    }
    times
}
