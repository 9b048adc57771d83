//! What the demo submits: gangs and small jobs, three times more than fit at once.

use crate::harness::Cluster;

/// GPUs of a node of the demo.
pub const GPUS: usize = 8;

/// A job of the demo.
#[derive(Clone, Copy)]
pub struct Work {
    pub nodes: usize,
    /// On each node.
    pub gpus: usize,
    pub seconds: u32,
}

impl Work {
    pub fn is_gang(self) -> bool {
        self.nodes > 1
    }

    pub fn name(self) -> String {
        match self {
            Self { nodes: 1, gpus, .. } => format!("small-{gpus}"),
            Self { nodes, .. } => format!("gang-{nodes}"),
        }
    }

    pub fn asks(self) -> String {
        let gpus = if self.gpus == 1 { "1 GPU".into() } else { format!("{} GPUs", self.gpus) };
        if self.is_gang() { format!("{} nodes of {gpus}", self.nodes) } else { gpus }
    }

    /// Submits it by sbatch and returns its number. A gang starts a step on all its nodes.
    pub fn submit(self, cluster: &Cluster) -> u32 {
        let nodes = format!("--nodes={}", self.nodes);
        let gpus = format!("--gpus-per-node={}", self.gpus);
        let name = format!("--job-name={}", self.name());
        let time = "--time=5";
        let script = format!("srun --ntasks-per-node=1 sleep {}", self.seconds);
        let args = ["--parsable", "--output=/dev/null", &nodes, &gpus, &name, time, "--wrap", &script];
        cluster.slurm("sbatch", &args).trim().parse().expect("sbatch prints the job's number")
    }
}

/// The jobs in the order of their submission: gangs of 2 to 8 nodes that come and go at different times, and small
/// jobs between them that want to sit everywhere.
pub fn jobs() -> impl Iterator<Item = Work> {
    let gang = |nodes, seconds| Work { nodes, gpus: GPUS, seconds };
    let small = |gpus, seconds| Work { nodes: 1, gpus, seconds };
    [
        gang(3, 9),
        small(1, 25),
        gang(2, 14),
        gang(4, 7),
        small(4, 11),
        gang(3, 12),
        gang(2, 6),
        small(2, 18),
        gang(4, 10),
        gang(2, 8),
        small(8, 5),
        gang(3, 7),
        small(1, 9),
        gang(4, 6),
        gang(2, 11),
        gang(3, 8),
        small(4, 14),
        gang(3, 6),
        gang(6, 7),
        small(1, 16),
        gang(2, 9),
        gang(4, 6),
        small(2, 7),
        gang(2, 5),
        gang(3, 8),
        gang(4, 5),
        gang(2, 7),
        small(8, 6),
        gang(3, 9),
        gang(4, 7),
        gang(8, 5),
        small(1, 12),
        gang(2, 6),
        gang(3, 5),
        gang(4, 8),
        gang(2, 9),
        small(4, 7),
        gang(3, 6),
        gang(4, 5),
    ]
    .into_iter()
}
