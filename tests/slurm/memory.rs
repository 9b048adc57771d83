//! slurmctld under valgrind: nothing of Lockstep's leaks, and it reads nothing that it may not.

use crate::harness::{Cluster, Install, Nodes, Setup};
use std::fs;
use std::path::Path;

/// The errors of a valgrind report in XML that are the library's own. Slurm has leaks too, also below calls that we
/// pass on: an error belongs to the first library on its stack that is neither valgrind's, nor libc, nor Slurm's base
/// library, which allocates on behalf of everybody.
fn errors_of(library: &Path, report: &str) -> Vec<String> {
    const NOBODY: [&str; 5] = ["/vgpreload_", "/libc.so", "/libc-", "/ld-linux", "/libslurmfull.so"];
    let own = library.to_string_lossy();
    let errors = report.split("<error>").skip(1);
    let blamed = errors.filter(|error| {
        let stack = error.split("</stack>").next().unwrap_or_default();
        let objects = stack.split("<obj>").skip(1).filter_map(|rest| rest.split("</obj>").next());
        objects
            .into_iter()
            .find(|object| !NOBODY.iter().any(|name| object.contains(name)))
            .is_some_and(|object| object == own)
    });
    blamed.map(str::to_owned).collect()
}

#[test]
fn an_error_is_blamed_on_the_library_that_made_it() {
    let frame = |object: &str| format!("<frame><ip>0x1</ip><obj>{object}</obj></frame>");
    let error = |objects: &[&str]| {
        let frames: String = objects.iter().map(|object| frame(object)).collect();
        format!("<error><kind>Leak_DefinitelyLost</kind><stack>{frames}</stack></error>")
    };
    let (ours, base) = ("/tmp/x/select_cons_tres.so", "/usr/lib/slurm-wlm/libslurmfull.so");
    let (inner, malloc) =
        ("/usr/lib/slurm-wlm/select_cons_tres.so", "/usr/libexec/valgrind/vgpreload_memcheck.so");
    let of = |objects: &[&str]| errors_of(Path::new(ours), &error(objects)).len();
    assert_eq!(of(&[malloc, base, ours, "/usr/sbin/slurmctld"]), 1);
    assert_eq!(of(&[ours, "/usr/sbin/slurmctld"]), 1);
    assert_eq!(of(&[malloc, base, inner, ours, "/usr/sbin/slurmctld"]), 0);
    assert_eq!(of(&[malloc, base, "/usr/sbin/slurmctld"]), 0);
}

#[test]
fn nothing_leaks_in_a_slurmctld_that_runs_200_jobs() {
    let mut setup = Setup::new(Install::DropIn, Nodes::Real(8)).wired(4, 2).extra("MessageTimeout=100");
    let valgrind = [
        "valgrind",
        "--leak-check=full",
        // What slurmctld holds to the end is not lost. Nor is what is "possibly" so: Rust's hash maps hold their
        // memory by a pointer into its middle.
        "--show-leak-kinds=definite,indirect",
        "--num-callers=40",
        // The plugin is unloaded before leaks are looked for.
        "--keep-debuginfo=yes",
        "--child-silent-after-fork=yes",
        "--xml=yes",
        "--xml-file=valgrind.xml",
    ];
    setup.wrapper = valgrind.map(str::to_owned).into();
    let mut cluster = Cluster::start(setup);
    // A job that runs through it all, one that waits through it all, and one of each kind of end.
    let steady = cluster.submit(600, &["-N2", "-w", "n[1-2]", "--gpus-per-node=1", "--time=100"]);
    let waiting = cluster.submit(600, &["-N8", "--exclusive"]);
    let suspended = cluster.submit(600, &["-N2", "--gpus-per-node=1"]);
    let shrunk = cluster.submit(600, &["-N3", "--gpus-per-node=1"]);
    for id in [steady, suspended, shrunk] {
        cluster.wait_state(id, "RUNNING");
    }
    cluster.slurm("scontrol", &["suspend", &suspended.to_string()]);
    cluster.slurm("scontrol", &["resume", &suspended.to_string()]);
    cluster.slurm("scontrol", &["update", &format!("JobId={shrunk}"), "NumNodes=2"]);
    cluster.slurm("scontrol", &["update", "NodeName=n8", "State=DRAIN", "Reason=test"]);
    cluster.set_topology(Some("SwitchName=broken Nodes=n[1-"));
    cluster.reconfigure();
    cluster.set_topology(Some("SwitchName=leaf1 Nodes=n[1-4]\nSwitchName=leaf2 Nodes=n[5-8]\nSwitchName=spine1 Switches=leaf[1-2]\n"));
    cluster.reconfigure();
    cluster.slurm("scontrol", &["update", "NodeName=n8", "State=RESUME"]);
    cluster.slurm("scancel", &[&suspended.to_string()]);
    cluster.slurm("scontrol", &["requeuehold", &shrunk.to_string()]);
    // Only now: a launch that meets a reconfigure can get lost on its way to a slurmd, and the job then runs to its limit.
    cluster.submit(0, &["--array=1-100", "-N1", "--gpus=1", "--time=9"]);
    cluster.submit(0, &["--array=1-60", "-N2", "--gpus-per-node=7", "--time=9"]);
    cluster.submit(0, &["--array=1-36", "-N4", "--gpus-per-node=4", "--time=9"]);
    let arrays =
        |c: &Cluster| c.jobs().iter().filter(|job| job.id.contains('_') && job.is("COMPLETED")).count();
    cluster.wait_for(std::time::Duration::from_secs(900), "the arrays are done", |c| arrays(c) == 196);
    assert!(cluster.job(steady).is("RUNNING"));
    assert!(cluster.job(waiting).is("PENDING"));
    cluster.stop_controller();

    let report = fs::read_to_string(cluster.path("valgrind.xml")).unwrap();
    assert!(report.contains("</valgrindoutput>"), "valgrind ended early");
    let plugin = cluster.path("plugins/select_cons_tres.so");
    let errors = errors_of(&plugin, &report);
    assert!(errors.is_empty(), "{} errors are ours:\n{}", errors.len(), errors.join("\n"));
    for complaint in ["lockstep: audit", "lockstep: internal error"] {
        assert_eq!(cluster.logged(&[complaint]), Vec::<String>::new());
    }
}
