//! A running cluster: start it, talk to it, break it, take it down.

use super::conf::{self, DROP_IN, Install, NAMED, Nodes, Reader, Setup};
use super::job::{Job, Wiring};
use super::ports::Ports;
use super::reaper::{MARK, Reaper};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, User, geteuid};
use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::{panicking, sleep};
use std::time::{Duration, Instant};

/// How long anything that must happen may take. Generous: the machine may be busy with other clusters.
const PATIENCE: Duration = Duration::from_secs(120);

/// A running cluster; dropping it takes it down.
pub struct Cluster {
    pub setup: Setup,
    dir: PathBuf,
    plugins: PathBuf,
    ports: Ports,
    user: String,
    munged: Option<Child>,
    controller: Option<Child>,
    slurmds: Vec<Child>,
    reaper: Reaper,
}

impl Cluster {
    /// Starts a cluster and waits until every node can take jobs.
    pub fn start(setup: Setup) -> Self {
        let ports = Ports::take(1 + if let Nodes::Real(count) = setup.nodes { count } else { 0 });
        let dir = tempfile::Builder::new().prefix("lockstep-").tempdir().unwrap().keep();
        // Slurm follows no relative path, and the reaper compares literally.
        let dir = dir.canonicalize().unwrap();
        let reaper = Reaper::start(&dir, &ports.cluster_name());
        let user = User::from_uid(geteuid()).unwrap().map_or_else(|| geteuid().to_string(), |user| user.name);
        let mut cluster = Self {
            plugins: dir.join("plugins"),
            ports,
            setup,
            dir,
            user,
            munged: None,
            controller: None,
            slurmds: Vec::new(),
            reaper,
        };
        for folder in ["state", "spool", "plugins"] {
            fs::create_dir(cluster.dir.join(folder)).unwrap();
        }
        if cluster.setup.install != Install::Stock {
            cluster.install_plugin();
        }
        cluster.start_munge();
        cluster.write_conf();
        cluster.start_controller();
        cluster.start_slurmds();
        cluster
    }

    // --- talking to it

    /// Runs a Slurm command and returns what it printed; it must succeed.
    pub fn slurm(&self, command: &str, args: &[&str]) -> String {
        let output = self.try_slurm(command, args);
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{command} {}: {}{stdout}{stderr}", args.join(" "), output.status);
        stdout
    }

    /// Runs a Slurm command.
    pub fn try_slurm(&self, command: &str, args: &[&str]) -> Output {
        self.command(command).args(args).output().unwrap()
    }

    /// A command in the cluster's environment.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env("SLURM_CONF", self.conf_path())
            .env(MARK, self.ports.cluster_name())
            .current_dir(&self.dir)
            .stdin(Stdio::null());
        command
    }

    /// slurm.conf as clients and slurmds read it.
    pub fn conf_path(&self) -> PathBuf {
        self.dir.join("slurm.conf")
    }

    /// Who runs it: SlurmUser, and the owner of its jobs.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The command that takes a kept cluster down.
    pub fn stop_command(&self) -> &Path {
        self.reaper.stop_command()
    }

    /// Submits a batch job that sleeps; returns its number.
    pub fn submit(&self, seconds: u32, args: &[&str]) -> u32 {
        let script = format!("sleep {seconds}");
        let all: Vec<&str> = ["--parsable", "-o", "/dev/null"]
            .iter()
            .chain(args)
            .copied()
            .chain(["--wrap", &script])
            .collect();
        self.slurm("sbatch", &all).trim().parse().unwrap()
    }

    /// All jobs, ended ones too.
    pub fn jobs(&self) -> Vec<Job> {
        let lines = self.slurm("squeue", &["-a", "-h", "-r", "-t", "all", "-o", Job::FORMAT]);
        lines.lines().filter_map(Job::parse).collect()
    }

    /// One job.
    pub fn job(&self, id: u32) -> Job {
        let id = id.to_string();
        let found = self.jobs().into_iter().find(|job| job.id == id);
        found.unwrap_or_else(|| panic!("slurmctld does not know job {id}"))
    }

    /// A field of `scontrol show job`.
    pub fn job_field(&self, id: u32, key: &str) -> String {
        let line = self.slurm("scontrol", &["-o", "show", "job", &id.to_string()]);
        let found = line.split_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        found.unwrap_or_default().to_owned()
    }

    /// Waits until something holds; fails with the logs' last lines if it takes too long.
    pub fn wait(&self, what: &str, holds: impl FnMut(&Self) -> bool) {
        self.wait_for(PATIENCE, what, holds);
    }

    /// As [`Self::wait`], with its own limit.
    pub fn wait_for(&self, limit: Duration, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        let start = Instant::now();
        while !holds(self) {
            assert!(start.elapsed() < limit, "waited {limit:?} in vain until {what}; {:#?}", self.jobs());
            sleep(Duration::from_millis(100));
        }
    }

    /// Waits until a job is in a state.
    pub fn wait_state(&self, id: u32, state: &str) {
        self.wait(&format!("job {id} is {state}"), |c| c.job(id).is(state));
    }

    /// Which leaf each node hangs on.
    pub fn wiring(&self) -> Wiring {
        Wiring::of(self.setup.topology.as_deref().unwrap_or_default())
    }

    /// slurmctld's log.
    pub fn log(&self) -> String {
        text(&fs::read(self.dir.join("slurmctld.log")).unwrap_or_default())
    }

    /// The log's lines that hold all these words.
    pub fn logged(&self, words: &[&str]) -> Vec<String> {
        let log = self.log();
        log.lines().filter(|line| words.iter().all(|word| line.contains(word))).map(str::to_owned).collect()
    }

    /// A file in the cluster's folder.
    pub fn path(&self, file: &str) -> PathBuf {
        self.dir.join(file)
    }

    // --- changing it

    /// Changes topology.conf; none removes it. slurmctld is not told.
    pub fn set_topology(&mut self, topology: Option<&str>) {
        self.setup.topology = topology.map(str::to_owned);
        self.write_conf();
    }

    /// Changes lockstep.toml and has slurmctld read it.
    pub fn set_policy(&mut self, policy: &str) {
        self.setup.policy = Some(policy.into());
        self.write_conf();
        self.reconfigure();
    }

    /// Writes the configuration files as the setup says now.
    pub fn write_conf(&self) {
        let write = |file: &str, text: &str| fs::write(self.dir.join(file), text).unwrap();
        let conf =
            |reader| conf::slurm_conf(&self.setup, &self.dir, &self.plugins, &self.user, &self.ports, reader);
        write("slurm.conf", &conf(Reader::Everyone));
        write("controller.conf", &conf(Reader::Controller));
        write("gres.conf", &conf::gres_conf(&self.setup));
        write("cgroup.conf", "");
        for (file, text) in [("topology.conf", &self.setup.topology), ("lockstep.toml", &self.setup.policy)] {
            match text {
                Some(text) => write(file, text),
                None => drop(fs::remove_file(self.dir.join(file))),
            }
        }
    }

    /// `scontrol reconfigure`, and waits until slurmctld has done it.
    pub fn reconfigure(&self) {
        let before = self.logged(&["lockstep: calls decided"]).len();
        self.slurm("scontrol", &["reconfigure"]);
        if self.setup.install != Install::Stock {
            self.wait("slurmctld has read its configuration", |c| {
                c.logged(&["lockstep: calls decided"]).len() > before
            });
        }
    }

    /// Puts the built plugin where the setup wants it.
    pub fn install_plugin(&self) {
        let library = built_library();
        let target = self.plugins.join(if self.setup.install == Install::DropIn { DROP_IN } else { NAMED });
        fs::copy(&library, &target)
            .unwrap_or_else(|e| panic!("{}: {e}; cargo build makes it", library.display()));
    }

    /// Takes the plugin's file away.
    pub fn remove_plugin(&self) {
        for file in [NAMED, DROP_IN] {
            drop(fs::remove_file(self.plugins.join(file)));
        }
    }

    /// How many processes work in a cluster's folder: daemons, steps and jobs. For the harness's own test.
    pub fn processes_in(dir: &Path) -> usize {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let folders = processes.filter_map(|process| fs::read_link(process.path().join("cwd")).ok());
        folders.filter(|folder| folder.to_string_lossy().starts_with(&*dir.to_string_lossy())).count()
    }

    /// Starts slurmctld and waits until it answers.
    pub fn start_controller(&mut self) {
        let mut words = self.setup.wrapper.iter().map(String::as_str).chain(["slurmctld"]);
        let mut command = self.command(words.next().unwrap_or("slurmctld"));
        let output = fs::File::create(self.dir.join("slurmctld.out")).unwrap();
        command
            .args(words)
            .arg("-D")
            .arg("-f")
            .arg(self.dir.join("controller.conf"))
            .envs(self.setup.env.iter().map(|(key, value)| (key, value)))
            .stdout(output.try_clone().unwrap())
            .stderr(output);
        self.controller = Some(command.spawn().unwrap());
        let start = Instant::now();
        while !self.try_slurm("scontrol", &["ping"]).status.success() {
            assert!(self.controller_lives(), "slurmctld ended at start");
            assert!(start.elapsed() < PATIENCE, "slurmctld does not answer");
            sleep(Duration::from_millis(50));
        }
    }

    /// Stops slurmctld and waits until it has saved its state.
    pub fn stop_controller(&mut self) {
        self.end_controller(Signal::SIGTERM);
    }

    /// Kills slurmctld in the middle of whatever it does.
    pub fn kill_controller(&mut self) {
        self.end_controller(Signal::SIGKILL);
    }

    fn end_controller(&mut self, signal: Signal) {
        if let Some(mut child) = self.controller.take() {
            kill(pid(&child), signal).unwrap();
            child.wait().unwrap();
        }
    }

    /// Whether slurmctld runs.
    pub fn controller_lives(&mut self) -> bool {
        self.controller.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// slurmctld's process; none when it is stopped.
    pub fn controller_pid(&self) -> Option<u32> {
        self.controller.as_ref().map(Child::id)
    }

    fn start_munge(&mut self) {
        let file = |name: &str| self.dir.join(name);
        // Any 32 bytes or more; this munged serves one cluster on this machine.
        let key: Vec<u8> = (0..128u8).map(|i| i ^ self.ports.first as u8).collect();
        fs::write(file("munge.key"), key).unwrap();
        fs::set_permissions(file("munge.key"), fs::Permissions::from_mode(0o600)).unwrap();
        let child = self
            .command("munged")
            .args(["--foreground", "--force", "--num-threads=4"])
            .arg(format!("--key-file={}", file("munge.key").display()))
            .arg(format!("--socket={}", file("munge.sock").display()))
            .arg(format!("--pid-file={}", file("munge.pid").display()))
            .arg(format!("--log-file={}", file("munge.log").display()))
            .arg(format!("--seed-file={}", file("munge.seed").display()))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|e| panic!("munged: {e}; run make deps"));
        self.munged = Some(child);
        let socket = file("munge.sock");
        let start = Instant::now();
        while !socket.exists() {
            assert!(start.elapsed() < PATIENCE, "munged did not start; see {}", file("munge.log").display());
            sleep(Duration::from_millis(20));
        }
    }

    /// Starts the slurmds, if the cluster has any, and waits until every node answers.
    pub fn start_slurmds(&mut self) {
        let Nodes::Real(count) = self.setup.nodes else { return };
        let slurmds = (1..=count).map(|node| self.start_slurmd(node)).collect();
        self.slurmds = slurmds;
        let first = self.ports.first + 1;
        self.wait("every slurmd listens and has registered", |c| {
            let states = c.slurm("sinfo", &["-h", "-N", "-o", "%T"]);
            // `unknown*` or `idle*`: not heard of yet.
            !states.contains('*')
                && (first..).take(count).all(|port| TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok())
        });
    }

    /// Stops the slurmds; the jobs run on.
    pub fn stop_slurmds(&mut self) {
        for mut child in self.slurmds.drain(..) {
            if !matches!(child.try_wait(), Ok(None)) {
                continue; // It was killed, and its pid may be somebody else's.
            }
            kill(pid(&child), Signal::SIGTERM).unwrap();
            child.wait().unwrap();
        }
    }

    /// Kills the slurmd of a node, `n1` for the first; its steps and jobs run on.
    pub fn kill_slurmd(&mut self, node: &str) {
        let number: usize = node.trim_start_matches('n').parse().unwrap();
        let slurmd = &mut self.slurmds[number - 1];
        kill(pid(slurmd), Signal::SIGKILL).unwrap();
        slurmd.wait().unwrap();
    }

    fn start_slurmd(&self, node: usize) -> Child {
        let name = format!("n{node}");
        fs::create_dir_all(self.dir.join("spool").join(&name)).unwrap();
        let output = fs::File::create(self.dir.join(format!("slurmd-{name}.out"))).unwrap();
        self.command("slurmd")
            .args(["-D", "-N", &name, "-f"])
            .arg(self.conf_path())
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .spawn()
            .unwrap_or_else(|e| panic!("slurmd: {e}; run make deps"))
    }

    // --- taking it down

    /// Leaves the cluster up when this process ends; [`Self::stop_command`] stops it.
    pub fn keep(mut self) {
        self.reaper.keep();
    }

    fn show_last_lines(&self) {
        // slurmctld says these again and again.
        let chatter = ["Running job scheduler", "_attempt_backfill", "Spawning ping agent"];
        for (file, count) in [("slurmctld.log", 60), ("slurmctld.out", 10), ("slurmd-n1.log", 20)] {
            let path = self.dir.join(file);
            let Ok(bytes) = fs::read(&path) else { continue };
            let text = text(&bytes);
            let lines = text.lines().filter(|line| !chatter.iter().any(|words| line.contains(words)));
            let lines: Vec<&str> = lines.collect();
            eprintln!("--- {}", path.display());
            lines[lines.len().saturating_sub(count)..].iter().for_each(|line| eprintln!("{line}"));
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if panicking() {
            self.show_last_lines();
            self.reaper.reap_and_leave_folder();
        } else {
            self.reaper.reap();
        }
        for child in self.slurmds.iter_mut().chain(&mut self.controller).chain(&mut self.munged) {
            // Killed by the reaper; nobody else collects it.
            drop(child.try_wait());
        }
    }
}

/// The plugin that cargo built beside this test or example.
pub fn built_library() -> PathBuf {
    let exe = std::env::current_exe().unwrap();
    // target/PROFILE/deps/TEST, or target/PROFILE/examples/EXAMPLE. The copy in target/PROFILE is made by `cargo build`
    // alone: it may be an old one or none.
    exe.ancestors().nth(2).map(|dir| dir.join("deps/liblockstep.so")).unwrap()
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).unwrap())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
