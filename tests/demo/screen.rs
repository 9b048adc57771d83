//! What the demo shows while jobs run: who sits on which node, sinfo and squeue.

use crate::harness::{Cluster, Job, Wiring};
use crate::workload::{GPUS, Work};
use console::{Term, measure_text_width, style, truncate_str};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Draws over itself on a terminal; elsewhere prints a picture now and then.
pub struct Screen {
    term: Term,
    started: Instant,
    drawn: Option<Instant>,
    lines: usize,
}

impl Screen {
    pub fn new() -> Self {
        Self { term: Term::stdout(), started: Instant::now(), drawn: None, lines: 0 }
    }

    /// Shows the cluster as it is now, if it is time to.
    pub fn show(&mut self, cluster: &Cluster, works: &BTreeMap<u32, Work>, jobs: &[Job]) {
        let every = Duration::from_secs(if self.term.is_term() { 1 } else { 10 });
        if self.drawn.is_some_and(|drawn| drawn.elapsed() < every) {
            return;
        }
        self.drawn = Some(Instant::now());
        let ended = jobs.iter().filter(|job| job.is("COMPLETED")).count();
        let mut lines = vec![
            format!(
                "After {} s: {ended} of {} jobs are done.",
                self.started.elapsed().as_secs(),
                works.len()
            ),
            String::new(),
        ];
        lines.extend(picture(&cluster.wiring(), works, jobs));
        for (command, args) in [
            ("sinfo", ["--format=%9P %5D %6t %N", "--noconvert"]),
            ("squeue", ["--format=%.5i %8j %2t %5M %.5D %R", "--sort=-t,i"]),
        ] {
            lines.push(String::new());
            lines.push(style(format!("$ {command}")).dim().to_string());
            lines.extend(cluster.slurm(command, &args).lines().map(str::to_owned));
        }
        self.draw(lines);
    }

    fn draw(&mut self, mut lines: Vec<String>) {
        if self.term.is_term() {
            let (height, width) = self.term.size();
            let room = usize::from(height).saturating_sub(2).max(1);
            let more = lines.len().saturating_sub(room);
            if more > 0 {
                lines.truncate(room);
                lines.push(format!("... and {} more", more));
            }
            for line in &mut lines {
                *line = truncate_str(line, usize::from(width), "…").into_owned();
            }
            // What cannot be shown is not worth stopping a cluster for.
            drop(self.term.clear_last_lines(self.lines));
        } else {
            lines.push(String::new());
        }
        self.lines = lines.len();
        lines.iter().for_each(|line| drop(self.term.write_line(line)));
    }
}

/// A line for each leaf: a gang's number on each of its nodes, the GPUs that small jobs hold elsewhere.
fn picture(wiring: &Wiring, works: &BTreeMap<u32, Work>, jobs: &[Job]) -> Vec<String> {
    let mut gangs: BTreeMap<&str, u32> = BTreeMap::new();
    let mut gpus: BTreeMap<&str, usize> = BTreeMap::new();
    for job in jobs.iter().filter(|job| job.holds_nodes()) {
        let Some((id, work)) = job.id.parse().ok().and_then(|id| works.get_key_value(&id)) else { continue };
        for node in &job.nodes {
            if work.is_gang() {
                gangs.insert(node, *id);
            } else {
                *gpus.entry(node).or_default() += work.gpus;
            }
        }
    }
    let cell = |node: &String| match (gangs.get(node.as_str()), gpus.get(node.as_str())) {
        // Six colours that can be told apart on black and on white.
        (Some(id), _) => {
            style(format!(" {id:>2}  ")).black().on_color256([114, 180, 110, 176, 216, 152][*id as usize % 6])
        }
        (None, Some(used)) => style(format!(" {used}/{GPUS} ")).dim(),
        (None, None) => style("  .  ".to_owned()).dim(),
    };
    let mut spine = "";
    let mut lines = Vec::new();
    for (leaf, nodes) in wiring.members() {
        let above = wiring.spine_of(leaf);
        let label = if above == spine { "" } else { above };
        spine = above;
        let cells: Vec<String> = nodes.iter().map(|node| cell(node).to_string()).collect();
        lines.push(format!("{label:<8}{leaf:<7}{}", cells.join(" ")));
    }
    let legend = format!("a gang's number on each of its nodes, or the GPUs that small jobs hold of {GPUS}");
    debug_assert!(measure_text_width(&legend) < 80);
    lines.push(format!("{:15}{}", "", style(legend).dim()));
    lines
}
