//! What jobs may ask for.

use super::{as_in_stock, cancel, refused, running, running_on, waits};
use crate::harness::{Cluster, Install, Job};
use std::collections::BTreeMap;

/// How many of a job's nodes are of each kind.
fn kinds(cluster: &Cluster, id: u32, kind: impl Fn(u32) -> &'static str) -> String {
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for node in cluster.job(id).nodes {
        let number: u32 = node.trim_start_matches('n').parse().unwrap();
        *counts.entry(kind(number)).or_default() += 1;
    }
    format!("{counts:?}")
}

/// Which GPUs a job has on each of its nodes.
fn gpus(cluster: &Cluster, id: u32) -> String {
    let text = cluster.slurm("scontrol", &["-d", "show", "job", &id.to_string()]);
    let lines = text.lines().filter(|line| line.contains("GRES=") && line.contains("IDX"));
    lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>().join("; ")
}

/// Each GPU of `Nodes=n1 ... GRES=gpu:2(IDX:0-1)`.
fn devices(held: &str) -> Vec<String> {
    let between =
        |from: &str, to: &str| held.split(from).nth(1).and_then(|rest| rest.split(to).next()).unwrap();
    let dialect = lockstep::fabric::hostlist::Dialect::default();
    let list = format!("{}-gpu[{}]", between("Nodes=", " "), between("IDX:", ")"));
    lockstep::fabric::hostlist::expand(&list, dialect).unwrap()
}

#[test]
fn jobs_of_single_gpus() {
    as_in_stock(
        Install::Named,
        |setup| setup,
        |c| {
            let sizes = [1, 1, 4, 2, 8, 3, 1, 8, 8, 6, 2, 8];
            let jobs: Vec<u32> =
                sizes.iter().map(|size| c.submit(600, &[&format!("--gpus={size}")])).collect();
            // On which node is for Lockstep to say; how many GPUs, and that nobody else has them, is not.
            let mut notes = running(c, &jobs);
            let held: Vec<String> = jobs.iter().map(|id| gpus(c, *id)).collect();
            notes.extend(
                held.iter().map(|held| held.split("GRES=").nth(1).unwrap().split('(').next().unwrap().into()),
            );
            let mut devices: Vec<String> = held.iter().flat_map(|held| devices(held)).collect();
            devices.sort();
            assert_eq!(devices.len(), sizes.iter().sum::<usize>());
            devices.dedup();
            assert_eq!(devices.len(), sizes.iter().sum::<usize>(), "a GPU has two jobs");
            let last = c.submit(1, &["--gpus=4", "-w", "n1"]);
            notes.push(waits(c, last, "Resources"));
            cancel(c, &jobs);
            c.wait_state(last, "COMPLETED");
            notes.push(gpus(c, last).split(' ').next().unwrap().into());
            notes.push(refused(c, &["--gpus-per-node=9"]));
            notes
        },
    );
}

#[test]
fn whole_nodes() {
    as_in_stock(
        Install::DropIn,
        |setup| setup,
        |c| {
            let one = c.submit(600, &["-N1", "-w", "n1", "--exclusive"]);
            let four = c.submit(600, &["-N4", "-w", "n[5-8]", "--exclusive", "--gpus-per-node=2"]);
            let mut notes = running_on(c, &[one, four]);
            let beside = c.submit(1, &["-n1", "-w", "n1"]);
            let among = c.submit(1, &["-N2", "-w", "n[6-7]"]);
            notes.push(waits(c, beside, "Resources"));
            c.wait("the gang waits", |c| ["Priority", "Resources"].contains(&c.job(among).reason.as_str()));
            cancel(c, &[one, four]);
            c.wait_state(beside, "COMPLETED");
            c.wait_state(among, "COMPLETED");
            // A node on which anything runs is not whole.
            let small = c.submit(600, &["-n1", "-w", "n2"]);
            notes.extend(running_on(c, &[small]));
            let all = c.submit(600, &["-N8", "--exclusive"]);
            notes.push(waits(c, all, "Resources"));
            cancel(c, &[small]);
            notes.extend(running_on(c, &[all]));
            notes
        },
    );
}

#[test]
fn named_nodes() {
    as_in_stock(
        Install::Named,
        |setup| setup,
        |c| {
            let exact = [
                c.submit(600, &["-w", "n3", "-n1"]),
                c.submit(600, &["-N2", "-w", "n[3-4]", "--gpus-per-node=1"]),
                c.submit(600, &["-N2", "-x", "n[1-6]", "--gpus-per-node=8"]),
                c.submit(600, &["-N4", "-w", "n[1-4]", "--gpus-per-node=1"]),
                c.submit(600, &["-n1", "-x", "n[1-4,6-8]"]),
            ];
            let mut notes = running_on(c, &exact);
            // Two of three are named; the third is anyone's.
            let three = c.submit(600, &["-N3", "-w", "n[5-6]", "--gpus-per-node=1", "-x", "n[7-8]"]);
            let waiting = c.submit(600, &["-N2", "-w", "n[7-8]", "--gpus-per-node=1"]);
            notes.push(waits(c, waiting, "Resources"));
            cancel(c, &exact[2..3]);
            notes.extend(running_on(c, &[waiting]));
            cancel(c, &[three]);
            notes.push(refused(c, &["-w", "n9"]));
            notes.push(refused(c, &["-N2", "-w", "n[1-3]"]));
            notes
        },
    );
}

#[test]
fn features() {
    let speed = |node| if node <= 4 { "fast" } else { "slow" };
    as_in_stock(
        Install::DropIn,
        |setup| setup.node_option("n[1-4]", "Features=fast").node_option("n[5-8]", "Features=slow,big"),
        |c| {
            let mut notes = Vec::new();
            for (size, wish) in [
                ("-N1", "slow"),
                ("-N3", "fast"),
                ("-N4", "slow&big"),
                ("-N2", "fast|slow"),
                ("-N3", "[fast|slow]"),
                ("-N4", "[fast*2&slow*2]"),
            ] {
                let job = c.submit(600, &[size, "-C", wish, "--gpus-per-node=8"]);
                notes.extend(running(c, &[job]));
                // Either kind would do for these two; the rest have one answer.
                if !wish.contains('|') {
                    notes.push(format!("{wish}: {}", kinds(c, job, speed)));
                }
                if wish.starts_with("[fast|") {
                    assert!(kinds(c, job, speed).contains(": 3}"), "of one kind");
                }
                cancel(c, &[job]);
            }
            notes.push(refused(c, &["-N5", "-C", "fast"]));
            notes.push(refused(c, &["-N1", "-C", "fast&big"]));
            notes.push(refused(c, &["-N1", "-C", "blue"]));
            notes
        },
    );
}

#[test]
fn types_of_gpus() {
    let model = |node| if node <= 4 { "a100" } else { "h100" };
    as_in_stock(
        Install::Named,
        |setup| {
            setup
                .node_option("n[1-4]", "Gres=gpu:a100:8")
                .node_option("n[5-8]", "Gres=gpu:h100:8")
                .gres_conf("NodeName=n[1-4] Name=gpu Type=a100 File=/dev/tty[0-7]\nNodeName=n[5-8] Name=gpu Type=h100 File=/dev/tty[0-7]\n")
        },
        |c| {
            let mut notes = Vec::new();
            let mut jobs = Vec::new();
            for args in [
                ["-N2", "--gres=gpu:h100:4"],
                ["-N4", "--gpus-per-node=a100:6"],
                ["-N4", "--gres=gpu:h100:4"],
                ["-n1", "--gpus=a100:2"],
                ["-n1", "--gpus=h100:1"],
            ] {
                let job = c.submit(600, &args);
                notes.extend(running(c, &[job]));
                notes.push(format!("{args:?}: {}", kinds(c, job, model)));
                jobs.push(job);
            }
            let more = c.submit(600, &["-N4", "--gres=gpu:h100:8"]);
            notes.push(waits(c, more, "Resources"));
            cancel(c, &jobs);
            notes.extend(running_on(c, &[more]));
            notes.push(refused(c, &["-N5", "--gpus-per-node=a100:1"]));
            notes.push(refused(c, &["-N1", "--gpus-per-node=v100:1"]));
            notes
        },
    );
}

#[test]
fn memory() {
    as_in_stock(
        Install::DropIn,
        |setup| setup,
        |c| {
            let most = c.submit(600, &["-N8", "--mem=50000"]);
            let mut notes = running_on(c, &[most]);
            let fits = c.submit(600, &["-N4", "-w", "n[1-4]", "--mem=14000"]);
            notes.extend(running_on(c, &[fits]));
            let over = c.submit(600, &["-N4", "-w", "n[1-4]", "--mem=100"]);
            notes.push(waits(c, over, "Resources"));
            cancel(c, &[fits]);
            notes.extend(running_on(c, &[over]));
            cancel(c, &[most, over]);
            let by_cpu = c.submit(600, &["-N2", "--ntasks-per-node=8", "--mem-per-cpu=4000"]);
            notes.extend(running(c, &[by_cpu]));
            let all = c.submit(600, &["-N2", "--mem=0", "-w", "n[7-8]"]);
            notes.extend(running_on(c, &[all]));
            notes.push(refused(c, &["-N2", "--mem=64001"]));
            notes
        },
    );
}

#[test]
fn arrays() {
    as_in_stock(
        Install::Named,
        |setup| setup,
        |c| {
            let small = c.submit(1, &["--array=0-5%2", "-n1", "--gpus=1"]);
            let gangs = c.submit(1, &["--array=1-6", "-N4", "--gpus-per-node=8"]);
            c.wait("the arrays are done", |c| {
                let jobs = c.jobs();
                let of = |id: u32| jobs.iter().filter(move |job| job.id.starts_with(&format!("{id}_")));
                assert!(of(small).filter(|job| job.holds_nodes()).count() <= 2, "%2: {jobs:#?}");
                assert!(of(gangs).filter(|job| job.holds_nodes()).count() <= 2, "only two fit: {jobs:#?}");
                let whole = |job: &Job| job.is_ending() || [0, 4].contains(&job.nodes.len());
                assert!(of(gangs).all(whole), "not whole: {jobs:#?}");
                jobs.iter().all(|job| job.is("COMPLETED"))
            });
            let jobs = c.jobs();
            let mut notes: Vec<String> =
                jobs.iter().map(|job| format!("{} {} on {}", job.id, job.state, job.nodes.len())).collect();
            notes.sort();
            assert_eq!(notes.len(), 12);
            notes
        },
    );
}

#[test]
fn steps_and_interactive_jobs() {
    as_in_stock(
        Install::Named,
        |setup| setup,
        |c| {
            let mut notes = Vec::new();
            // Each task says its rank and which node it is on, as the launched step knows them.
            let ranks = c.slurm(
                "srun",
                &[
                    "-N4",
                    "-n8",
                    "--gpus-per-node=8",
                    "sh",
                    "-c",
                    "echo $SLURM_PROCID of $SLURM_NTASKS on node $SLURM_NODEID",
                ],
            );
            let mut ranks: Vec<&str> = ranks.lines().collect();
            ranks.sort_unstable();
            notes.extend(ranks.into_iter().map(str::to_owned));
            let inside =
                "srun -n2 -N2 true && srun -N1 -n1 --gpus=1 sh -c 'echo one GPU: $CUDA_VISIBLE_DEVICES'";
            notes.push(c.slurm("salloc", &["-Q", "-N2", "--gpus-per-node=2", "sh", "-c", inside]));
            // A heterogeneous job: both parts start, or none.
            let script = [
                "--parsable",
                "-n1",
                "--gpus=1",
                ":",
                "-N3",
                "--gpus-per-node=8",
                "-o",
                "/dev/null",
                "--wrap",
                "sleep 1",
            ];
            c.slurm("sbatch", &script);
            c.wait("the heterogeneous job is done", |c| c.jobs().iter().all(|job| job.is("COMPLETED")));
            let jobs = c.jobs();
            notes.extend(jobs.iter().map(|job| format!("{} {} on {}", job.id, job.state, job.nodes.len())));
            notes
        },
    );
}
