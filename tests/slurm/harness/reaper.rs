//! Takes a cluster down, whatever becomes of the process that started it.
//!
//! The reaper is a process of its own that waits on a pipe from us. When the pipe closes, because we are done or because
//! we died, it kills every process of the cluster by its pid and removes the folder.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

/// Which processes are a cluster's: Slurm gives its jobs the cluster's name in this variable, the harness gives it to
/// the daemons.
pub const MARK: &str = "SLURM_CLUSTER_NAME";

/// Kills every process of the cluster, round after round until none is left, then removes the folder unless told to
/// leave it. `@DIR@` and `@MARK@` stand for the cluster's.
const STOP: &str = r#"#!/bin/sh
dir='@DIR@'
ours() {
    grep -qzxF '@MARK@' "$1/environ" && return
    # These two write their title over their environment.
    read -r name <"$1/comm" && case $name in
        slurmstepd | slurmscriptd) [ "$(readlink "$1/cwd")" = "$dir" ] ;;
        *) false ;;
    esac
}
quiet=0
rounds=0
# Two quiet rounds: a process may be forked while its parent is being looked at.
while [ $quiet -lt 2 ] && [ $rounds -lt 100 ]; do
    quiet=$((quiet + 1))
    rounds=$((rounds + 1))
    for proc in /proc/[0-9]*; do
        ours "$proc" && kill -9 "${proc#/proc/}" && quiet=0
    done 2>/dev/null
    sleep 0.1
done
[ "$1" = leave ] || rm -rf "$dir"
"#;

/// The process that waits for our end.
pub struct Reaper {
    process: Child,
    /// Closing it lets the reaper work. None when the reaper has had its word.
    reins: Option<ChildStdin>,
    stop: PathBuf,
}

impl Reaper {
    /// Watches over a cluster in this folder, whose processes have this name as their mark.
    pub fn start(dir: &Path, cluster_name: &str) -> Self {
        let mark = format!("{MARK}={cluster_name}");
        let script = STOP.replace("@DIR@", &dir.to_string_lossy()).replace("@MARK@", &mark);
        let stop = dir.join("stop");
        fs::write(&stop, &script).unwrap();
        fs::set_permissions(&stop, fs::Permissions::from_mode(0o755)).unwrap();
        // The reaper has the script in its memory: it must work even if somebody cleared the temporary folder.
        let wait = r#"read -r word || word=; [ "$word" != keep ] || exit 0; set -- "$word""#;
        let mut process = Command::new("sh")
            .args(["-c", &format!("{wait}\n{script}")])
            .stdin(Stdio::piped())
            // An interrupt from the terminal is for us; the reaper then has work to do.
            .process_group(0)
            .spawn()
            .unwrap();
        let reins = process.stdin.take();
        Self { process, reins, stop }
    }

    /// The command that does the reaper's work.
    pub fn stop_command(&self) -> &Path {
        &self.stop
    }

    /// Takes the cluster down, if it is not meant to be kept, and waits until it is done.
    pub fn reap(&mut self) {
        self.tell("");
    }

    /// As [`Self::reap`], but leaves the folder.
    pub fn reap_and_leave_folder(&mut self) {
        self.tell("leave");
    }

    /// The cluster stays up.
    pub fn keep(&mut self) {
        self.tell("keep");
    }

    fn tell(&mut self, word: &str) {
        if let Some(mut reins) = self.reins.take() {
            // A reaper that has gone cannot be told; nobody could do more here.
            drop(writeln!(reins, "{word}"));
            drop(reins);
            drop(self.process.wait());
        }
    }
}
