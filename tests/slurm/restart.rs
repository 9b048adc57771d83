//! Restarts, and the way back to stock Slurm: no job is lost, none moves.

use crate::harness::{Cluster, Install, Nodes, Setup};

/// Two running gangs and one that waits for them.
fn populated(install: Install) -> (Cluster, [u32; 2], u32) {
    let cluster = Cluster::start(Setup::new(install, Nodes::Real(4)).wired(2, 2));
    let running =
        [cluster.submit(600, &["-N2", "--exclusive"]), cluster.submit(600, &["-N2", "--gpus-per-node=8"])];
    for id in running {
        cluster.wait_state(id, "RUNNING");
    }
    let waiting = cluster.submit(1, &["-N2", "--exclusive"]);
    (cluster, running, waiting)
}

/// The jobs are as they were, and the waiting one starts once there is room.
fn nothing_was_lost(cluster: &Cluster, running: [u32; 2], places: [Vec<String>; 2], waiting: u32) {
    for (id, place) in running.into_iter().zip(places) {
        let job = cluster.job(id);
        assert_eq!((job.state.as_str(), &job.nodes), ("RUNNING", &place));
    }
    // What Lockstep said of it stays with a waiting gang, also back in stock Slurm.
    cluster.wait("the scheduler has looked at the waiting gang", |c| {
        let reason = c.job(waiting).reason;
        reason == "Resources" || reason.starts_with("lockstep: ")
    });
    assert!(cluster.job(waiting).nodes.is_empty());
    cluster.slurm("scancel", &[&running[0].to_string()]);
    cluster.wait_state(waiting, "COMPLETED");
    assert!(cluster.job(running[1]).is("RUNNING"));
}

#[test]
fn a_clean_restart_loses_and_moves_nothing() {
    let (mut cluster, running, waiting) = populated(Install::Named);
    let places = running.map(|id| cluster.job(id).nodes);
    cluster.stop_controller();
    cluster.start_controller();
    nothing_was_lost(&cluster, running, places, waiting);
}

#[test]
fn kill_9_loses_and_moves_nothing() {
    let (mut cluster, running, waiting) = populated(Install::DropIn);
    let places = running.map(|id| cluster.job(id).nodes);
    // slurmctld saves its state a few seconds after a change; what it never saved no scheduler could bring back.
    cluster.wait("the jobs are saved", |c| {
        let state = std::fs::read(c.path("state/job_state")).unwrap_or_default();
        let saved = |id: u32| state.windows(4).any(|word| word == id.to_be_bytes());
        running.into_iter().chain([waiting]).all(saved)
    });
    cluster.kill_controller();
    cluster.start_controller();
    nothing_was_lost(&cluster, running, places, waiting);
}

#[test]
fn back_to_stock_by_removing_the_drop_in() {
    let (mut cluster, running, waiting) = populated(Install::DropIn);
    let places = running.map(|id| cluster.job(id).nodes);
    cluster.stop_controller();
    cluster.remove_plugin();
    let before = cluster.logged(&["lockstep: "]).len();
    cluster.start_controller();
    assert_eq!(cluster.logged(&["lockstep: "]).len(), before, "Lockstep is gone");
    nothing_was_lost(&cluster, running, places, waiting);
}

#[test]
fn back_to_stock_from_the_named_form_with_the_file_still_there() {
    let (mut cluster, running, waiting) = populated(Install::Named);
    let places = running.map(|id| cluster.job(id).nodes);
    cluster.stop_controller();
    // SelectType alone goes back; the file stays where PluginDir finds it until the state is rewritten.
    cluster.setup.extra.push_str("SelectType=select/cons_tres\n");
    cluster.write_conf();
    cluster.start_controller();
    // Up to 22.05 slurmds load the plugin too, and no other than SelectType's: they must follow.
    cluster.stop_slurmds();
    cluster.start_slurmds();
    assert_eq!(
        cluster.slurm("scontrol", &["show", "config"]).matches("select/cons_tres_lockstep").count(),
        0
    );
    nothing_was_lost(&cluster, running, places, waiting);

    // Rewritten: now the file may go.
    cluster.stop_controller();
    cluster.remove_plugin();
    cluster.start_controller();
    assert!(cluster.job(running[1]).is("RUNNING"));
}
