//! How Lockstep is installed, whether that form suits the release of Slurm, and which settings go with it.

use crate::cluster::Cluster;
use lockstep::fabric::diagnostic::{Code, Diagnostic, Place, codes};
use lockstep::slurm_conf::{Release, Setting, SlurmConf};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

codes! {
    /// The codes of this module.
    CODES;
    SELECT_TYPE = "C001" Error "a SelectType that Lockstep does not wrap";
    NOT_FOUND = "C002" Error "the named form is chosen, but PluginDir does not hold it";
    FOLDER_MISSING = "C003" Error "a folder of PluginDir does not exist";
    STANDS_BEHIND = "C004" Error "the drop-in form stands behind Slurm's own file";
    TOPOLOGY_PLUGIN = "C005" Error "a TopologyPlugin that the release does not have";
    NOT_IN_FORCE = "C006" Error "the running controller has another setting than slurm.conf";
    NOT_INSTALLED = "C101" Warning "Lockstep is not installed";
    FORM = "C102" Warning "a form that suits the release badly";
    DOUBLE_PLACEMENT = "C103" Warning "a TopologyPlugin that places jobs itself";
    AGAINST_PACKING = "C104" Warning "a setting that scatters jobs or hides them from the plugin";
    RELEASE_UNKNOWN = "C105" Warning "the release of Slurm could not be told";
}

const DROP_IN: &str = "select_cons_tres.so";
const NAMED: &str = "select_cons_tres_lockstep.so";
/// What tells Lockstep's library from Slurm's file of the same name: its plugin_name.
const MARK: &[u8] = b"Lockstep: gangs on neighbouring nodes";

/// The installed form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// No library of ours is loaded.
    None,
    /// In the place of Slurm's select/cons_tres.
    DropIn(PathBuf),
    /// Under its own name.
    Named(PathBuf),
}

impl std::fmt::Display for Form {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::None => f.write_str("not installed"),
            Self::DropIn(path) => write!(f, "drop-in, {}", path.display()),
            Self::Named(path) => write!(f, "named, {}", path.display()),
        }
    }
}

/// Finds the installed form and all that speaks against it.
pub fn examine(cluster: &Cluster) -> (Form, Vec<Diagnostic>) {
    let Some((path, conf)) = &cluster.slurm_conf else { return (Form::None, Vec::new()) };
    let mut review = Review { path, conf, release: cluster.release, findings: Vec::new() };
    let folders = review.plugin_folders(cluster);
    let form = review.form(&folders);
    review.topology_plugin();
    review.packing();
    for key in ["SelectType", "TopologyPlugin"] {
        review.in_force(key, cluster.in_force.get(&key.to_ascii_lowercase()));
    }
    if review.release.is_none() {
        let what = "cannot tell the release of Slurm, so some checks are left out";
        review.report(RELEASE_UNKNOWN, None, what, "give --slurm-version, as in `--slurm-version 24.11`");
    }
    (form, review.findings)
}

struct Review<'a> {
    path: &'a Path,
    conf: &'a SlurmConf,
    release: Option<Release>,
    findings: Vec<Diagnostic>,
}

impl Review<'_> {
    fn report(&mut self, code: Code, at: Option<&Setting>, what: impl Into<String>, hint: &str) {
        let place = at.map_or_else(|| Place::file(self.path), |setting| setting.place.clone());
        self.findings.push(Diagnostic::new(code, place, what, hint));
    }

    /// Whether the release is known and at least this one.
    fn is_at_least(&self, major: u16, minor: u16) -> bool {
        self.release.is_some_and(|release| release >= Release::new(major, minor))
    }

    /// The folders of PluginDir up to the first that does not exist, at which Slurm stops looking.
    fn plugin_folders(&mut self, cluster: &Cluster) -> Vec<PathBuf> {
        let setting = self.conf.setting("PluginDir");
        let value = setting.map(|setting| &setting.value).or(cluster.in_force.get("plugindir"));
        let Some(value) = value else { return default_folders() };
        let folders: Vec<PathBuf> = value.split(':').map(PathBuf::from).collect();
        let missing = folders.iter().position(|folder| !folder.is_dir());
        if let Some(missing) = missing {
            let what = format!("the folder {} does not exist", folders[missing].display());
            let hint = "make it on every host that reads this file, if only empty: Slurm stops looking for plugins there";
            self.report(FOLDER_MISSING, setting, what, hint);
        }
        folders[..missing.unwrap_or(folders.len())].to_vec()
    }

    fn form(&mut self, folders: &[PathBuf]) -> Form {
        let setting = self.conf.setting("SelectType");
        let default = if self.is_at_least(24, 5) { "select/cons_tres" } else { "select/linear" };
        let select_type = setting.map_or(default, |setting| &setting.value);
        match select_type {
            "select/cons_tres" => self.drop_in(folders, setting),
            "select/cons_tres_lockstep" => self.named(folders, setting),
            other => {
                let by = if setting.is_none() { " by default" } else { "" };
                let hint = "set SelectType=select/cons_tres; Lockstep wraps no other";
                self.report(SELECT_TYPE, setting, format!("SelectType is {other}{by}"), hint);
                Form::None
            }
        }
    }

    fn drop_in(&mut self, folders: &[PathBuf], select_type: Option<&Setting>) -> Form {
        let files: Vec<PathBuf> =
            folders.iter().map(|folder| folder.join(DROP_IN)).filter(|file| file.exists()).collect();
        match files.iter().position(|file| is_ours(file)) {
            Some(0) => return Form::DropIn(files[0].clone()),
            Some(at) => {
                let what = format!(
                    "{} stands behind {} and is never loaded",
                    files[at].display(),
                    files[0].display()
                );
                let hint = "put the folder of Lockstep's file first in PluginDir";
                self.report(STANDS_BEHIND, self.conf.setting("PluginDir"), what, hint);
            }
            None => {
                let what = "Lockstep is not installed: SelectType is Slurm's own";
                let hint = "see docs/install.md; the findings below hold for a cluster that will use it";
                self.report(NOT_INSTALLED, select_type, what, hint);
            }
        }
        Form::None
    }

    fn named(&mut self, folders: &[PathBuf], select_type: Option<&Setting>) -> Form {
        let Some(file) = folders.iter().map(|folder| folder.join(NAMED)).find(|file| file.exists()) else {
            let what = format!("no folder of PluginDir holds {NAMED}");
            let hint = "run `make install FORM=named` on every host, or set SelectType=select/cons_tres";
            self.report(NOT_FOUND, select_type, what, hint);
            return Form::None;
        };
        if self.release.is_some() && !self.is_at_least(25, 5) {
            let what = "the named form needs Lockstep's file on every host, or squeue and slurmd fail";
            let hint = "up to 24.11 prefer the drop-in form, which the controller alone needs";
            self.report(FORM, select_type, what, hint);
        }
        Form::Named(file)
    }

    fn topology_plugin(&mut self) {
        let Some(setting) = self.conf.setting("TopologyPlugin") else { return };
        let name = setting.value.to_ascii_lowercase();
        let name = name.strip_prefix("topology/").unwrap_or(&name);
        let plain = plain_topology(self.release);
        let exists = self.release.is_none_or(|release| topology_plugins(release).contains(&name));
        if !exists {
            let what = format!("{} does not exist in this release", setting.value);
            let hint = format!("set TopologyPlugin={plain}, with which Lockstep places jobs alone");
            self.report(TOPOLOGY_PLUGIN, Some(setting), what, &hint);
        } else if !["none", "default", "flat"].contains(&name) {
            let optional = self
                .conf
                .setting("TopologyParam")
                .is_some_and(|p| p.value.to_ascii_lowercase().contains("topooptional"));
            if name == "tree" && optional {
                return;
            }
            let what = format!(
                "under {} Slurm places jobs inside Lockstep's choice once more, and can only reject",
                setting.value
            );
            let hint = match name {
                "tree" => format!(
                    "set TopologyPlugin={plain}, or add TopologyParam=TopoOptional if you need the tree for message routing"
                ),
                _ => format!("set TopologyPlugin={plain}"),
            };
            self.report(DOUBLE_PLACEMENT, Some(setting), what, &hint);
        }
    }

    /// Settings under which placing gangs whole is of little use.
    fn packing(&mut self) {
        let options = [
            (
                "SelectTypeParameters",
                "cr_lln",
                "CR_LLN spreads jobs over the least loaded nodes",
                "take it out; partitions can have LLN=YES of their own",
            ),
            (
                "SchedulerParameters",
                "bf_busy_nodes",
                "bf_busy_nodes lets backfill prefer busy nodes to whole leaves",
                "take it out; Lockstep fills broken leaves first by itself",
            ),
            (
                "SchedulerParameters",
                "pack_serial_at_end",
                "pack_serial_at_end packs single-CPU jobs by node order, across leaves",
                "take it out; Lockstep keeps whole leaves free by itself",
            ),
        ];
        for (key, option, what, hint) in options {
            let setting = self.conf.setting(key);
            if setting.is_some_and(|setting| {
                setting.value.to_ascii_lowercase().split(',').any(|part| part == option)
            }) {
                self.report(AGAINST_PACKING, setting, what, hint);
            }
        }
        let scheduler = self.conf.setting("SchedulerType");
        if scheduler.is_some_and(|setting| setting.value.eq_ignore_ascii_case("sched/builtin")) {
            let what = "without backfill no leaf is drained for a waiting gang while small jobs run on";
            self.report(AGAINST_PACKING, scheduler, what, "set SchedulerType=sched/backfill");
        }
    }

    fn in_force(&mut self, key: &str, running: Option<&String>) {
        // The names of the plain topology plugin changed over the releases; each takes the older ones.
        let today = |value: &str| value.replace("/none", "/flat").replace("/default", "/flat");
        if let (Some(running), Some(setting)) = (running, self.conf.setting(key))
            && today(running) != today(&setting.value)
        {
            let what =
                format!("the running controller has {key}={running}, this file says {}", setting.value);
            self.report(
                NOT_IN_FORCE,
                Some(setting),
                what,
                "restart slurmctld: a reconfigure does not change it",
            );
        }
    }
}

/// The topology plugins of a release.
fn topology_plugins(release: Release) -> &'static [&'static str] {
    if release < Release::new(23, 11) {
        &["none", "tree", "3d_torus", "hypercube"]
    } else if release < Release::new(25, 5) {
        &["none", "default", "tree", "block", "3d_torus"]
    } else if release < Release::new(26, 5) {
        &["none", "default", "flat", "tree", "block"]
    } else {
        &["none", "default", "flat", "tree", "block", "ring", "torus3d"]
    }
}

/// The topology plugin that leaves placement to Lockstep.
pub fn plain_topology(release: Option<Release>) -> &'static str {
    match release {
        None => "topology/none, or topology/flat from 25.05 on",
        Some(release) if release < Release::new(23, 11) => "topology/none",
        Some(release) if release < Release::new(25, 5) => "topology/default",
        Some(_) => "topology/flat",
    }
}

/// Where distributions put Slurm's plugins.
fn default_folders() -> Vec<PathBuf> {
    [
        "/usr/lib/x86_64-linux-gnu/slurm-wlm",
        "/usr/lib/aarch64-linux-gnu/slurm-wlm",
        "/usr/lib64/slurm",
        "/usr/local/lib/slurm",
    ]
    .into_iter()
    .map(PathBuf::from)
    .filter(|folder| folder.is_dir())
    .collect()
}

fn is_ours(file: &Path) -> bool {
    let mut bytes = Vec::new();
    let read = File::open(file).and_then(|mut file| file.read_to_end(&mut bytes));
    read.is_ok() && bytes.windows(MARK.len()).any(|window| window == MARK)
}
