//! What the site decides in lockstep.toml and what users wish for, in a running slurmctld.

use crate::harness::{Cluster, Install, Nodes, Setup};
use std::time::Duration;

/// Four leaves of four nodes, two a spine; the first node of each leaf is taken for an hour.
fn broken_leaves(policy: &str) -> Cluster {
    let setup = Setup::new(Install::DropIn, Nodes::Cloud(16)).wired(4, 2).policy(policy);
    let cluster = Cluster::start(setup.extra("PartitionName=other Nodes=ALL"));
    for node in ["n1", "n5", "n9", "n13"] {
        let blocker = cluster.submit(600, &["-N1", "--exclusive", "-w", node, "-t", "60"]);
        cluster.wait("the leaf is broken", |c| c.job(blocker).holds_nodes());
    }
    cluster
}

fn gang(cluster: &Cluster, nodes: &str, more: &[&str]) -> u32 {
    cluster.submit(600, &[&["-N", nodes, "--exclusive"], more].concat())
}

/// Waits for a gang's nodes; on how many leaves and spines they are.
fn switches(cluster: &Cluster, job: u32) -> (usize, usize) {
    cluster.wait("the gang has its nodes", |c| c.job(job).holds_nodes());
    let (wiring, nodes) = (cluster.wiring(), cluster.job(job).nodes);
    (wiring.leaves(&nodes).len(), wiring.spines(&nodes).len())
}

fn waits(cluster: &Cluster, job: u32) -> String {
    cluster.wait("Lockstep says why", |c| c.job(job).reason.starts_with("lockstep: "));
    std::thread::sleep(Duration::from_secs(3));
    let job = cluster.job(job);
    assert!(job.is("PENDING"), "{job:?}");
    job.reason
}

/// Why a job was refused at submission: what sbatch says, and what slurmctld's record of the job says.
fn refusal(cluster: &Cluster, args: &[&str]) -> String {
    let output = cluster.try_slurm("sbatch", &[args, &["--wrap", "true"]].concat());
    assert!(!output.status.success(), "{args:?} was taken");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("Requested node configuration is not available"), "{said}");
    let jobs = cluster.slurm("scontrol", &["--oneliner", "show", "jobs"]);
    let last = jobs.lines().rfind(|line| line.contains("JobState=FAILED")).unwrap_or_default();
    let comment = last.split("SystemComment=").nth(1).unwrap_or_default();
    let end = [" Comment=", " StdErr="].iter().filter_map(|next| comment.find(next)).min();
    comment[..end.unwrap_or(comment.len())].trim().to_owned()
}

#[test]
fn each_job_has_the_mode_of_the_first_rule_that_matches() {
    let cluster = broken_leaves(
        "[levels]\nrack = 0\n\
         [[rule]]\nmatch = { partition = 'other', min_nodes = 5 }\nmode = 'off'\n\
         [[rule]]\nmatch = { partition = 'other' }\nmode = 'preferred'\n",
    );
    let required = gang(&cluster, "4", &[]);
    assert!(waits(&cluster, required).starts_with("lockstep: needs 4 nodes under one rack"));
    cluster.slurm("scancel", &[&required.to_string()]);
    let preferred = gang(&cluster, "4", &["-p", "other"]);
    assert_eq!(switches(&cluster, preferred), (2, 1), "the next level up at once");
    cluster.slurm("scancel", &[&preferred.to_string()]);
    cluster.wait("the nodes are free", |c| !c.job(preferred).holds_nodes());
    // 12 nodes fit under no switch: required is refused, off is Slurm's.
    let off = gang(&cluster, "12", &["-p", "other"]);
    assert_eq!(switches(&cluster, off), (4, 2));
    assert_eq!(
        refusal(&cluster, &["-N12"]),
        "lockstep: can never start: it needs 12 nodes under one switch, and no switch has so many that could serve"
    );
}

#[test]
fn a_gang_may_spread_after_its_wait_and_not_before() {
    let cluster = broken_leaves("[default]\nwiden_after = '8s'\n");
    let submitted = std::time::Instant::now();
    let job = gang(&cluster, "4", &[]);
    assert_eq!(switches(&cluster, job), (2, 1));
    assert!(submitted.elapsed() > Duration::from_secs(7), "before its time: {:?}", submitted.elapsed());
    // Backfill had planned it for then.
    assert_eq!(cluster.logged(&["lockstep: audit"]), Vec::<String>::new());
}

#[test]
fn levels_excess_and_elastic_gangs() {
    let mut cluster = broken_leaves("[default]\nlevel = 'spine'\nmax_excess = 0\n");
    // Three nodes fit on a leaf; four need one leaf when empty, and none more is allowed.
    let three = gang(&cluster, "3", &[]);
    assert_eq!(switches(&cluster, three), (1, 1));
    let four = gang(&cluster, "4", &[]);
    waits(&cluster, four);
    cluster.set_policy("[default]\nlevel = 'spine'\n");
    assert_eq!(switches(&cluster, four), (2, 1));
    cluster.slurm("scancel", &[&three.to_string(), &four.to_string()]);
    cluster.wait("the nodes are free", |c| ![three, four].iter().any(|&job| c.job(job).holds_nodes()));

    let rigid = gang(&cluster, "2-8", &[]);
    waits(&cluster, rigid);
    cluster.slurm("scancel", &[&rigid.to_string()]);
    cluster.set_policy("[default]\nelastic = true\n");
    let elastic = gang(&cluster, "2-8", &[]);
    assert_eq!(switches(&cluster, elastic), (2, 1));
    assert_eq!(cluster.job(elastic).nodes.len(), 6, "the most that fit under one spine");
}

#[test]
fn observing_changes_nothing_and_counts() {
    let cluster = broken_leaves("[default]\nmode = 'observe'\n");
    let job = gang(&cluster, "4", &[]);
    let (leaves, _) = switches(&cluster, job);
    assert!(leaves > 1, "as stock Slurm places it");
    cluster.reconfigure();
    let counted =
        "observed: 1 gangs started by Slurm, of which 1 could sit closer together and 1 would have waited";
    assert_eq!(cluster.logged(&[counted]).len(), 1);
}

#[test]
fn a_fault_keeps_the_last_good_policy() {
    let mut cluster = broken_leaves("[default]\nmode = 'off'\n");
    for fault in ["[default]\nmode = 'strict'\n", "[default]\nlevel = 'rack'\n", "[default"] {
        cluster.set_policy(fault);
        let job = gang(&cluster, "4", &[]);
        let (leaves, _) = switches(&cluster, job);
        assert!(leaves > 1, "still Slurm's to place");
        cluster.slurm("scancel", &[&job.to_string()]);
    }
    let errors =
        cluster.logged(&["error: lockstep: ", "lockstep.toml:", "the last good policy stays in use"]);
    assert!(errors.len() >= 3 && errors[0].contains(":2:8: error[P001]"), "{errors:#?}");
    cluster.set_policy("");
    let job = gang(&cluster, "4", &[]);
    waits(&cluster, job);
}

#[test]
fn users_wish_and_never_loosen() {
    let cluster = broken_leaves("[default]\nlevel = 'spine'\n");
    let leaf = gang(&cluster, "4", &["--comment=lockstep:level=leaf"]);
    waits(&cluster, leaf);
    cluster.slurm("scancel", &[&leaf.to_string()]);
    let home = gang(&cluster, "4", &["--comment=run 7; lockstep:level=home"]);
    waits(&cluster, home);
    cluster.slurm("scancel", &[&home.to_string()]);
    let few = gang(&cluster, "4", &["--switches=1"]);
    waits(&cluster, few);
    cluster.slurm("scancel", &[&few.to_string()]);
    let few_for_a_while = gang(&cluster, "4", &["--switches=1@0:05"]);
    assert_eq!(switches(&cluster, few_for_a_while), (2, 1));
    cluster.slurm("scancel", &[&few_for_a_while.to_string()]);
    cluster.wait("the nodes are free", |c| !c.job(few_for_a_while).holds_nodes());
    let looser = gang(&cluster, "4", &["--comment=lockstep:mode=preferred,level=1"]);
    assert_eq!(switches(&cluster, looser), (2, 1));
    cluster.slurm("scancel", &[&looser.to_string()]);
    cluster.wait("the nodes are free", |c| !c.job(looser).holds_nodes());
    let segments = gang(&cluster, "6", &["--comment=lockstep:segment=3"]);
    assert_eq!(switches(&cluster, segments), (2, 1), "three on each leaf");

    let malformed = refusal(&cluster, &["-N4", "--comment=lockstep:segment=none"]);
    assert_eq!(malformed, "lockstep: can never start: segment `none` is no number of nodes");
    let unknown = refusal(&cluster, &["-N4", "--comment=lockstep:level=rack"]);
    assert!(unknown.starts_with("lockstep: can never start: there is no level `rack`"), "{unknown}");
    let too_tight = refusal(&cluster, &["-N8", "--comment=lockstep:level=leaf"]);
    assert_eq!(
        too_tight,
        "lockstep: can never start: it needs 8 nodes under one switch of level 1, and its wish allows no more than one leaf"
    );
}
