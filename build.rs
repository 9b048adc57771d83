//! Binds the plugin to one Slurm release (feature `plugin`): finds Slurm's headers, makes the Rust bindings, builds the
//! C shim, and turns the release into its set of symbols and `cfg`s from one table.
//!
//! The headers come from `SLURM_SOURCE_DIR`, else from `include/slurm-src`, which `make deps` fills from the
//! distribution's source package of the installed Slurm. Slurm itself is neither configured nor built: a stub
//! config.h and slurm_version.h are enough for its headers.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "plugin")]
    if let Err(message) = slurm::bind() {
        // One sentence that says what to do, instead of a panic's backtrace.
        eprintln!("error: {message}");
        std::process::exit(1);
    }
}

#[cfg(feature = "plugin")]
mod slurm {
    use std::env;
    use std::fs;
    use std::path::{Path, PathBuf};

    /// What one Slurm release asks of a select plugin.
    struct Release {
        /// `major.minor` as in Slurm's META file.
        name: &'static str,
        /// Whether this row is complete and the plugin was run under this release.
        supported: bool,
        /// Functions that slurmctld looks up; it dies if one is missing.
        symbols: &'static [&'static [&'static str]],
        /// How the structs and calls of this release differ: each becomes the cfg `slurm = "..."`.
        differences: &'static [&'static str],
    }

    /// The calls that every release makes.
    const CORE: &[&str] = &[
        "select_p_node_init",
        "select_p_job_test",
        "select_p_job_begin",
        "select_p_job_ready",
        "select_p_job_expand",
        "select_p_job_resized",
        "select_p_job_fini",
        "select_p_job_suspend",
        "select_p_job_resume",
        "select_p_select_nodeinfo_set_all",
        "select_p_select_nodeinfo_set",
        "select_p_reconfigure",
    ];
    /// Saved state, steps, and the per-node and per-job records on the wire: up to 24.11.
    const RECORDS: &[&str] = &[
        "select_p_state_save",
        "select_p_state_restore",
        "select_p_job_init",
        "select_p_step_pick_nodes",
        "select_p_step_start",
        "select_p_step_finish",
        "select_p_select_nodeinfo_pack",
        "select_p_select_nodeinfo_unpack",
        "select_p_select_nodeinfo_alloc",
        "select_p_select_nodeinfo_free",
        "select_p_select_nodeinfo_get",
        "select_p_select_jobinfo_alloc",
        "select_p_select_jobinfo_free",
        "select_p_select_jobinfo_set",
        "select_p_select_jobinfo_get",
        "select_p_select_jobinfo_copy",
        "select_p_select_jobinfo_pack",
        "select_p_select_jobinfo_unpack",
        "select_p_get_info_from_plugin",
    ];
    /// Reservations without a job: up to 23.02.
    const RESERVATIONS: &[&str] = &["select_p_resv_test"];
    /// 22.05 alone.
    const UP_TO_22_05: &[&str] = &[
        "select_p_job_signal",
        "select_p_select_jobinfo_sprint",
        "select_p_select_jobinfo_xstrdup",
        "select_p_update_node_config",
    ];
    /// Since 26.05.
    const MEMORY: &[&str] = &["select_p_job_mem_reduce"];

    /// Calls that Lockstep answers itself; every other one goes to cons_tres by a trampoline.
    const HOOKED: &[&str] = &[
        "select_p_job_test",
        "select_p_select_nodeinfo_set",
        "select_p_job_expand",
        "select_p_job_resized",
        "select_p_job_fini",
        "select_p_job_suspend",
        "select_p_job_resume",
        "select_p_reconfigure",
        "select_p_get_info_from_plugin",
        "select_p_select_nodeinfo_set_all",
    ];

    #[rustfmt::skip]
    const RELEASES: &[Release] = &[
        Release { name: "22.05", supported: true, symbols: &[CORE, RECORDS, RESERVATIONS, UP_TO_22_05], differences: &[] },
        Release { name: "23.02", supported: false, symbols: &[CORE, RECORDS, RESERVATIONS], differences: &[] },
        Release { name: "23.11", supported: false, symbols: &[CORE, RECORDS], differences: &["resv_exc"] },
        Release { name: "24.05", supported: false, symbols: &[CORE, RECORDS], differences: &["resv_exc", "whole_node_flags", "job_state_calls"] },
        Release { name: "24.11", supported: false, symbols: &[CORE, RECORDS], differences: &["resv_exc", "whole_node_flags", "job_state_calls", "will_run_data"] },
        Release { name: "25.05", supported: false, symbols: &[CORE], differences: &["resv_exc", "whole_node_flags", "job_state_calls", "will_run_data", "one_plugin_id"] },
        Release { name: "25.11", supported: false, symbols: &[CORE], differences: &["resv_exc", "whole_node_flags", "job_state_calls", "will_run_data", "one_plugin_id"] },
        Release { name: "26.05", supported: false, symbols: &[CORE, MEMORY], differences: &["resv_exc", "whole_node_flags", "job_state_calls", "will_run_data", "one_plugin_id", "step_id"] },
    ];

    /// Slurm's internal types that the plugin reads; everything they do not lead to stays out of the bindings.
    const TYPES: &str = "job_record_t|job_details|node_record_t|part_record_t|job_resources_t|gres_state_t|gres_job_state_t|\
                         gres_node_state_t|slurmctld_resv_t|job_feature_t|job_states|log_level_t|select_plugindata_info|select_nodedata_type|node_states";
    const CONSTANTS: &str = "SLURM_VERSION_NUMBER|SLURM_SUCCESS|SLURM_ERROR|ESLURM_.*|NO_VAL.*|INFINITE.*|MEM_PER_CPU|CR_.*|\
                             SHARED_FORCE|NODE_STATE_.*|JOB_STATE_.*|WHOLE_NODE_REQUIRED|FEATURE_OP_.*|SELECT_MODE_.*|lockstep_.*";
    const SHIM: &str = "lockstep_.*";

    /// Emits all that the `plugin` feature needs, or says in one sentence what is missing and what to do.
    pub fn bind() -> Result<(), String> {
        let root = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
        let out = PathBuf::from(variable("OUT_DIR")?);
        for watched in ["include/wrapper.h", "include/shim.h", "include/shim.c", "include/slurm-src/META"] {
            println!("cargo:rerun-if-changed={watched}");
        }
        println!("cargo:rerun-if-env-changed=SLURM_SOURCE_DIR");

        let source =
            env::var_os("SLURM_SOURCE_DIR").map_or_else(|| root.join("include/slurm-src"), PathBuf::from);
        let version = Version::read(&source)?;
        let release = version.release()?;

        let stub = out.join("stub");
        write_stub_headers(&stub, &version)
            .map_err(|e| format!("cannot write to {}: {e}", stub.display()))?;
        let includes = [stub.as_path(), &source, &root.join("include")];
        write(&out.join("symbols.rs"), &symbols(release))?;
        emit_cfgs(release);
        bindings(&root, &includes, &out)?;

        cc::Build::new()
            .file(root.join("include/shim.c"))
            .includes(includes)
            .warnings(true)
            .extra_warnings(true)
            // Slurm's own headers are not clean under -Wextra.
            .flag("-Wno-unused-parameter")
            .flag("-Wno-sign-compare")
            .try_compile("lockstep_shim")
            .map_err(|e| format!("the C shim does not compile against {}: {e}", source.display()))
    }

    struct Version {
        major: u32,
        minor: u32,
        micro: u32,
    }

    impl Version {
        /// Reads META, the file at the root of every Slurm source tree that states its version.
        fn read(source: &Path) -> Result<Self, String> {
            let meta = source.join("META");
            let text = fs::read_to_string(&meta).map_err(|_| {
                format!(
                    "no Slurm source tree in {} (it has no file META); run `make deps`, or set SLURM_SOURCE_DIR to the \
                     source tree of the Slurm that you run, or build without the plugin: --no-default-features --features cli",
                    source.display()
                )
            })?;
            let field = |name: &str| {
                text.lines()
                    .filter_map(|line| line.trim().split_once(':'))
                    .find(|(key, _)| *key == name)
                    .and_then(|(_, value)| value.trim().parse().ok())
                    .ok_or_else(|| {
                        format!(
                            "{} does not state a {name} version; is it Slurm's source tree?",
                            meta.display()
                        )
                    })
            };
            Ok(Self { major: field("Major")?, minor: field("Minor")?, micro: field("Micro")? })
        }

        fn release(&self) -> Result<&'static Release, String> {
            let name = format!("{}.{:02}", self.major, self.minor);
            RELEASES.iter().find(|r| r.name == name && r.supported).ok_or_else(|| {
                let supported: Vec<_> = RELEASES.iter().filter(|r| r.supported).map(|r| r.name).collect();
                format!(
                    "the source tree is Slurm {name}.{}, but the plugin builds for {} only; set SLURM_SOURCE_DIR to such a tree",
                    self.micro,
                    supported.join(", ")
                )
            })
        }
    }

    /// The two headers that Slurm's configure would write, reduced to what its other headers need.
    fn write_stub_headers(stub: &Path, version: &Version) -> std::io::Result<()> {
        let Version { major, minor, micro } = version;
        fs::create_dir_all(stub.join("slurm"))?;
        fs::write(
            stub.join("config.h"),
            "#define HAVE_CONFIG_H 1\n#define WITH_PTHREADS 1\n#define HAVE_INTTYPES_H 1\n#define HAVE_STDINT_H 1\n\
             #define HAVE_SYS_PRCTL_H 1\n#define NDEBUG 1\n",
        )?;
        fs::write(
            stub.join("slurm/slurm_version.h"),
            format!(
                "#define SLURM_VERSION_NUM(a,b,c) (((a) << 16) + ((b) << 8) + (c))\n\
                 #define SLURM_VERSION_NUMBER {:#x}\n",
                (major << 16) + (minor << 8) + micro
            ),
        )
    }

    /// The two lists that `src/plugin/delegate.rs` expands: one slot a symbol, and a trampoline for each not hooked.
    fn symbols(release: &Release) -> String {
        let all: Vec<&str> = release.symbols.iter().copied().flatten().copied().collect();
        let slots: String = all.iter().map(|s| format!("    {s},\n")).collect();
        let trampolines: String =
            all.iter().filter(|s| !HOOKED.contains(s)).map(|s| format!("    {s},\n")).collect();
        format!("inner_symbols! {{\n{slots}}}\ntrampolines! {{\n{trampolines}}}\n")
    }

    fn emit_cfgs(release: &Release) {
        let mut known: Vec<&str> = RELEASES.iter().flat_map(|r| r.differences).copied().collect();
        known.sort_unstable();
        known.dedup();
        let values: Vec<_> = known.iter().map(|d| format!("{d:?}")).collect();
        println!("cargo:rustc-check-cfg=cfg(slurm, values({}))", values.join(", "));
        for difference in release.differences {
            println!("cargo:rustc-cfg=slurm={difference:?}");
        }
    }

    fn bindings(root: &Path, includes: &[&Path], out: &Path) -> Result<(), String> {
        bindgen::Builder::default()
            .header(root.join("include/wrapper.h").display().to_string())
            .clang_args(includes.iter().map(|dir| format!("-I{}", dir.display())))
            .allowlist_type(TYPES)
            .allowlist_var(CONSTANTS)
            .allowlist_function(SHIM)
            .default_macro_constant_type(bindgen::MacroTypeVariation::Unsigned)
            .derive_debug(false)
            .merge_extern_blocks(true)
            .layout_tests(false)
            .generate()
            .map_err(|e| format!("bindgen cannot read Slurm's headers (is libclang-dev installed? `make deps` does it): {e}"))?
            .write_to_file(out.join("slurm.rs"))
            .map_err(|e| format!("cannot write the bindings: {e}"))
    }

    fn write(path: &Path, text: &str) -> Result<(), String> {
        fs::write(path, text).map_err(|e| format!("cannot write {}: {e}", path.display()))
    }

    fn variable(name: &str) -> Result<String, String> {
        env::var(name).map_err(|_| format!("{name} is not set; build with cargo"))
    }
}
