//! Both forms, as clients and slurmds see them.

use crate::harness::{Cluster, Install, Nodes, Setup};

/// Every command and a job step work.
fn clients_work(cluster: &Cluster) {
    let id = cluster.submit(600, &["-N2", "--gpus-per-node=8", "--exclusive"]);
    cluster.wait_state(id, "RUNNING");
    assert!(cluster.slurm("squeue", &["-o", "%i %b %N"]).contains(&format!("{id} gres:gpu:8 n[1-2]")));
    assert!(cluster.slurm("sinfo", &["-N", "-o", "%N %C %G"]).contains("n1 16/0/0/16 gpu:8"));
    assert!(cluster.slurm("scontrol", &["show", "node", "n1"]).contains("AllocTRES=cpu=16"));
    assert!(cluster.slurm("scontrol", &["show", "job", &id.to_string()]).contains("JobState=RUNNING"));
    let ran = cluster.slurm("srun", &["-N2", "--gpus-per-node=1", "printenv", "SLURMD_NODENAME"]);
    let mut nodes: Vec<&str> = ran.lines().collect();
    nodes.sort_unstable();
    assert_eq!(nodes, ["n3", "n4"]);
}

#[test]
fn drop_in_clients_and_slurmds_have_no_file_of_ours() {
    let cluster = Cluster::start(Setup::new(Install::DropIn, Nodes::Real(4)).wired(2, 2));
    let conf = std::fs::read_to_string(cluster.conf_path()).unwrap();
    assert!(!conf.contains("plugins"), "clients read a slurm.conf that does not know our folder");
    clients_work(&cluster);
    assert!(!cluster.logged(&["lockstep: ", "(drop-in) over select/cons_tres of Slurm"]).is_empty());
}

#[test]
fn named_clients_and_slurmds_have_the_file() {
    let cluster = Cluster::start(Setup::new(Install::Named, Nodes::Real(4)).wired(2, 2));
    clients_work(&cluster);
    assert!(!cluster.logged(&["lockstep: ", "(named) over select/cons_tres of Slurm"]).is_empty());
    assert!(
        cluster
            .slurm("scontrol", &["show", "config"])
            .contains("SelectType              = select/cons_tres_lockstep")
    );
}
