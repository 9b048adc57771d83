//! What happens to jobs that run or wait.

use super::{as_in_stock, cancel, running, running_on, seen, waits};
use crate::harness::{Cluster, Install};

fn scontrol(cluster: &Cluster, args: &[&str]) {
    cluster.slurm("scontrol", args);
}

/// `scontrol update JobId=...` with further words.
fn update(cluster: &Cluster, id: u32, change: &str) {
    scontrol(cluster, &["update", &format!("JobId={id}"), change]);
}

/// Slurm makes a requeued job wait for two minutes. Some seconds must be: its nodes refuse a launch in the second in which
/// they revoked the job's credential.
fn start_soon(cluster: &Cluster, id: u32) {
    update(cluster, id, "StartTime=now+3");
}

fn set_node(cluster: &Cluster, nodes: &str, state: &str) {
    scontrol(cluster, &["update", &format!("NodeName={nodes}"), &format!("State={state}"), "Reason=test"]);
}

/// How many nodes sinfo counts in each state.
fn node_states(cluster: &Cluster) -> String {
    let mut lines: Vec<String> =
        cluster.slurm("sinfo", &["-h", "-o", "%D %T"]).lines().map(str::to_owned).collect();
    lines.sort();
    lines.join(", ")
}

#[test]
fn reservations() {
    as_in_stock(
        Install::DropIn,
        |setup| setup,
        |c| {
            let users = format!("Users={}", c.user());
            let reserve = |words: &[&str]| {
                scontrol(c, &[&["create", "reservation", users.as_str(), "Duration=30"], words].concat());
            };
            reserve(&["ReservationName=half", "Nodes=n[1-4]", "StartTime=now"]);
            let outside = c.submit(600, &["-N4", "--gpus-per-node=8"]);
            let mut notes = running_on(c, &[outside]);
            let too_big = c.submit(600, &["-N2", "--gpus-per-node=8"]);
            notes.push(waits(c, too_big, "Resources"));
            let inside = c.submit(600, &["-N3", "--gpus-per-node=8", "--reservation=half"]);
            let small = c.submit(600, &["-n1", "--gpus=1", "--reservation=half"]);
            notes.extend(running(c, &[inside, small]));
            for id in [inside, small] {
                assert!(c.job(id).nodes.iter().all(|node| ["n1", "n2", "n3", "n4"].contains(&node.as_str())));
            }
            cancel(c, &[inside, small]);
            scontrol(c, &["delete", "ReservationName=half"]);
            notes.extend(running(c, &[too_big]));
            cancel(c, &[too_big, outside]);
            // A reservation to come keeps jobs off that would run into it.
            reserve(&["ReservationName=later", "Nodes=n[1-4]", "StartTime=now+5minutes"]);
            let long = c.submit(600, &["-N2", "--gpus-per-node=8", "--time=20"]);
            notes.extend(running(c, &[long]));
            assert!(c.job(long).nodes.iter().all(|node| ["n5", "n6", "n7", "n8"].contains(&node.as_str())));
            // Slurm chooses a reservation's nodes itself, also with Lockstep.
            reserve(&["ReservationName=any", "NodeCnt=2", "StartTime=now"]);
            let any = c.submit(600, &["-N2", "--gpus-per-node=8", "--reservation=any"]);
            notes.extend(running(c, &[any]));
            notes
        },
    );
}

#[test]
fn suspend_and_resume() {
    as_in_stock(
        Install::Named,
        |setup| setup,
        |c| {
            let first = c.submit(600, &["-N4", "-w", "n[1-4]", "--ntasks-per-node=16"]);
            let mut notes = running_on(c, &[first]);
            let second = c.submit(600, &["-N4", "-w", "n[1-4]", "--ntasks-per-node=16"]);
            notes.push(waits(c, second, "Resources"));
            scontrol(c, &["suspend", &first.to_string()]);
            c.wait_state(first, "SUSPENDED");
            // Its cores are free, and the other gang takes them.
            notes.extend(running_on(c, &[second]));
            notes.push(seen(c, first));
            scontrol(c, &["suspend", &second.to_string()]);
            c.wait_state(second, "SUSPENDED");
            scontrol(c, &["resume", &first.to_string()]);
            notes.extend(running_on(c, &[first]));
            cancel(c, &[first, second]);
            let third = c.submit(1, &["-N4", "-w", "n[1-4]", "--exclusive"]);
            c.wait_state(third, "COMPLETED");
            notes.push(seen(c, third));
            notes
        },
    );
}

#[test]
fn requeue() {
    as_in_stock(
        Install::DropIn,
        |setup| setup,
        |c| {
            let gang = c.submit(600, &["-N4", "--gpus-per-node=8", "--requeue"]);
            let mut notes = running(c, &[gang]);
            scontrol(c, &["requeuehold", &gang.to_string()]);
            notes.push(waits(c, gang, "job requeued in held state"));
            // Its nodes are free for others.
            let all = c.submit(1, &["-N8", "--gpus-per-node=8"]);
            c.wait_state(all, "COMPLETED");
            notes.push(seen(c, all));
            start_soon(c, gang);
            scontrol(c, &["release", &gang.to_string()]);
            notes.extend(running(c, &[gang]));
            scontrol(c, &["requeue", &gang.to_string()]);
            notes.push(waits(c, gang, "BeginTime"));
            start_soon(c, gang);
            notes.extend(running(c, &[gang]));
            notes
        },
    );
}

#[test]
fn drained_and_failed_nodes() {
    as_in_stock(
        Install::Named,
        // A node that was set down stays down.
        |setup| setup.extra("ReturnToService=1"),
        |c| {
            let kept = c.submit(600, &["-N2", "-w", "n[1-2]", "--gpus-per-node=8"]);
            let mut notes = running_on(c, &[kept]);
            // A drained node keeps its job and takes no other.
            set_node(c, "n[1,3]", "DRAIN");
            notes.push(node_states(c));
            let elsewhere = c.submit(600, &["-N4", "-x", "n4", "--gpus-per-node=8"]);
            notes.extend(running_on(c, &[elsewhere]));
            let waiting = c.submit(600, &["-N2", "-w", "n[3-4]", "--gpus-per-node=8"]);
            c.wait("the job waits for its node", |c| c.job(waiting).reason.contains("ReqNodeNotAvail"));
            set_node(c, "n[1,3]", "RESUME");
            notes.extend(running_on(c, &[waiting, kept]));
            // A node that fails: its job starts again elsewhere, ends, or goes on without it, as its user chose.
            cancel(c, &[kept, elsewhere, waiting]);
            let again = c.submit(600, &["-N2", "-w", "n[1-2]", "--gpus-per-node=1", "--requeue"]);
            let ends = c.submit(600, &["-N2", "-w", "n[1-2]", "--gpus-per-node=1", "--no-requeue"]);
            let goes_on = c.submit(600, &["-N3", "-w", "n[1-3]", "--gpus-per-node=1", "--no-kill"]);
            notes.extend(running_on(c, &[again, ends, goes_on]));
            set_node(c, "n2", "DOWN");
            c.wait_state(ends, "NODE_FAIL");
            notes.push(waits(c, again, "BeginTime"));
            notes.push(seen(c, ends));
            notes.extend(running_on(c, &[goes_on]));
            notes.push(node_states(c));
            set_node(c, "n2", "RESUME");
            start_soon(c, again);
            notes.extend(running_on(c, &[again]));
            notes
        },
    );
}

#[test]
fn reconfigure() {
    as_in_stock(
        Install::Named,
        |setup| setup.extra("PartitionName=short Nodes=n[1-4] MaxTime=5"),
        |c| {
            let gang = c.submit(600, &["-N4", "-w", "n[5-8]", "--exclusive"]);
            let small = c.submit(600, &["-n1", "-w", "n1", "--gpus=3"]);
            let mut notes = running_on(c, &[gang, small]);
            let pending = c.submit(600, &["-N8", "--exclusive"]);
            notes.push(waits(c, pending, "Resources"));
            let starts = [c.job(gang).started, c.job(small).started];
            c.setup.extra = c.setup.extra.replace("Nodes=n[1-4] MaxTime=5", "Nodes=n[1-6] MaxTime=9");
            c.write_conf();
            c.reconfigure();
            c.wait("the partition has changed", |c| {
                c.slurm("scontrol", &["-o", "show", "partition", "short"]).contains("MaxTime=00:09:00")
            });
            notes.extend(running_on(c, &[gang, small]));
            assert_eq!([c.job(gang).started, c.job(small).started], starts);
            notes.push(waits(c, pending, "Resources"));
            let new = c.submit(600, &["-p", "short", "-N3", "--time=3", "-x", "n1", "--gpus-per-node=1"]);
            notes.extend(running_on(c, &[new]));
            cancel(c, &[gang, small, new]);
            notes.extend(running_on(c, &[pending]));
            notes
        },
    );
}

#[test]
fn shrinking() {
    as_in_stock(
        Install::DropIn,
        |setup| setup,
        |c| {
            let gang = c.submit(600, &["-N8", "--gpus-per-node=8"]);
            let mut notes = running_on(c, &[gang]);
            let next = c.submit(600, &["-N4", "--gpus-per-node=8"]);
            notes.push(waits(c, next, "Resources"));
            update(c, gang, "NumNodes=4");
            notes.extend(running_on(c, &[gang, next]));
            // Slurm shrinks a job once; the other way is to say which nodes it keeps, the first among them.
            let kept = c.job(next).nodes[..2].join(",");
            update(c, next, &format!("NodeList={kept}"));
            notes.extend(running_on(c, &[next]));
            let pair = c.submit(600, &["-N2", "--gpus-per-node=4"]);
            notes.extend(running(c, &[pair]));
            // Shrunk jobs end as any other.
            cancel(c, &[gang, next, pair]);
            let all = c.submit(1, &["-N8", "--exclusive"]);
            c.wait_state(all, "COMPLETED");
            notes.push(seen(c, all));
            notes
        },
    );
}
