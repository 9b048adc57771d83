//! The inner plugin: Slurm's own `select/cons_tres`, opened privately.
//!
//! It is opened by absolute path with `RTLD_LOCAL`, because it exports the same names as Lockstep does: in one scope its
//! calls to itself would end here. Each of its functions has a slot in a table; the functions that Lockstep does not
//! answer are two-instruction trampolines that jump through their slot with all arguments untouched, whatever their
//! signature in this release is.

use super::exports::PLUGIN_NAME;
use super::sys;
use once_cell::sync::OnceCell;
use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicPtr, Ordering};

/// The file of the inner plugin, and the name that `dpkg-divert` gives it where Lockstep took its place.
const FILES: [&str; 2] = ["select_cons_tres.so", "select_cons_tres.so.distrib"];

macro_rules! inner_symbols {
    ($($symbol:ident,)*) => {
        /// The inner plugin's functions by their place in [`TABLE`].
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy)]
        #[repr(usize)]
        enum Slot { $($symbol,)* }
        const SYMBOLS: &[&str] = &[$(stringify!($symbol),)*];
    };
}

macro_rules! trampolines {
    ($($symbol:ident,)*) => { $(
        /// Jumps to cons_tres.
        ///
        /// # Safety
        /// As for the function of the same name in select/cons_tres.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $symbol() {
            #[cfg(target_arch = "x86_64")]
            core::arch::naked_asm!(
                "jmp qword ptr [rip + {table} + {offset}]",
                table = sym TABLE,
                offset = const Slot::$symbol as usize * size_of::<usize>(),
            );
            #[cfg(not(target_arch = "x86_64"))]
            compile_error!("the trampolines to cons_tres are written for x86_64 only");
        }
    )* };
}

include!(concat!(env!("OUT_DIR"), "/symbols.rs"));

/// Where each trampoline jumps: cons_tres once it is open, [`not_open`] before.
static TABLE: [AtomicPtr<c_void>; SYMBOLS.len()] =
    [const { AtomicPtr::new(not_open as extern "C" fn() -> c_int as *mut c_void) }; SYMBOLS.len()];

/// The answer to a call that comes before `init()` or after it failed; Slurm makes none, a NULL jump would be fatal.
extern "C" fn not_open() -> c_int {
    sys::SLURM_ERROR
}

/// `select_p_job_test` as cons_tres has it.
pub type JobTest = unsafe extern "C" fn(
    *mut sys::job_record_t,
    *mut sys::bitstr_t,
    u32,
    u32,
    u32,
    u16,
    sys::List,
    *mut sys::List,
    *mut sys::bitstr_t,
) -> c_int;
type NoArguments = unsafe extern "C" fn() -> c_int;
type OneJob = unsafe extern "C" fn(*mut sys::job_record_t) -> c_int;
type TwoJobs = unsafe extern "C" fn(*mut sys::job_record_t, *mut sys::job_record_t) -> c_int;
type JobAndNode = unsafe extern "C" fn(*mut sys::job_record_t, *mut sys::node_record_t) -> c_int;
type Information =
    unsafe extern "C" fn(sys::select_plugindata_info, *mut sys::job_record_t, *mut c_void) -> c_int;
type NodeInformation =
    unsafe extern "C" fn(*mut c_void, sys::select_nodedata_type, sys::node_states, *mut c_void) -> c_int;
type JobAndFlag = unsafe extern "C" fn(*mut sys::job_record_t, bool) -> c_int;

/// The functions of the inner plugin that Lockstep calls itself, with their types.
pub struct Inner {
    init: NoArguments,
    fini: NoArguments,
    /// Decides and allocates.
    pub job_test: JobTest,
    /// Reads the node table and the jobs again.
    pub reconfigure: NoArguments,
    /// Enters a started or recovered job's allocation.
    pub nodeinfo_set: OneJob,
    /// Ends a job's allocation.
    pub job_fini: OneJob,
    /// Merges one job's allocation into another's.
    pub job_expand: TwoJobs,
    /// Takes a node out of a job's allocation.
    pub job_resized: JobAndNode,
    /// Gives a suspended job's cores back.
    pub job_suspend: JobAndFlag,
    /// Takes a suspended job's cores again.
    pub job_resume: JobAndFlag,
    /// Says what the plugin is, and what to show of it.
    pub information: Information,
    /// Counts anew what is allocated on each node.
    pub nodeinfo_set_all: NoArguments,
    /// Says what is allocated on a node.
    pub nodeinfo_get: NodeInformation,
}

static INNER: OnceCell<Inner> = OnceCell::new();

/// The inner plugin; none before `init()`.
pub fn inner() -> Option<&'static Inner> {
    INNER.get()
}

/// Opens cons_tres on first use and runs its `init()`. An error says what is wrong and what to do.
pub fn open() -> Result<(), String> {
    let inner = INNER.get_or_try_init(load)?;
    // SAFETY: the symbol is cons_tres's init(), which takes nothing and may be run again after its fini().
    match unsafe { (inner.init)() } {
        0 => Ok(()),
        code => Err(format!("init() of Slurm's select/cons_tres returned {code}; its own messages say why")),
    }
}

/// Runs cons_tres's `fini()`.
pub fn close() {
    if let Some(inner) = INNER.get() {
        // SAFETY: the symbol is cons_tres's fini(), which frees what init() and node_init() made.
        unsafe { (inner.fini)() };
    }
}

/// The path of the file that this code was loaded from.
pub fn own_path() -> Option<PathBuf> {
    // SAFETY: dladdr only writes to the struct, whose fields are valid when zeroed.
    let name = unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(own_path as *const c_void, &raw mut info) == 0 || info.dli_fname.is_null() {
            return None;
        }
        CStr::from_ptr(info.dli_fname)
    };
    Some(PathBuf::from(OsStr::from_bytes(name.to_bytes())))
}

/// An open plugin file that is not Lockstep.
struct Library {
    path: PathBuf,
    handle: *mut c_void,
}

impl Library {
    /// Opens a file; none if it is Lockstep itself under the name of the plugin it wraps.
    fn open(path: PathBuf) -> Result<Option<Self>, String> {
        let name = CString::new(path.as_os_str().as_bytes()).map_err(|e| e.to_string())?;
        // SAFETY: cons_tres is Slurm's own plugin, and opening a plugin runs no code of its own before init().
        // RTLD_LOCAL keeps its names, which are ours too, out of our scope.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return Err(format!("cannot open {}: {}", path.display(), last_dl_error()));
        }
        let library = Self { path, handle };
        // SAFETY: in every Slurm plugin `plugin_name` is a terminated string.
        let plugin_name = unsafe { CStr::from_ptr(library.symbol("plugin_name")?.cast::<c_char>()) };
        if plugin_name == PLUGIN_NAME {
            // SAFETY: the handle is open and nothing of it is in use.
            unsafe { libc::dlclose(handle) };
            return Ok(None);
        }
        Ok(Some(library))
    }

    fn symbol(&self, name: &str) -> Result<*mut c_void, String> {
        let c_name = CString::new(name).map_err(|e| e.to_string())?;
        // SAFETY: the handle is open, the name is terminated.
        let address = unsafe { libc::dlsym(self.handle, c_name.as_ptr()) };
        if address.is_null() {
            let path = self.path.display();
            return Err(format!("{path} has no {name}; it is not the select/cons_tres of this Slurm"));
        }
        Ok(address)
    }
}

fn load() -> Result<Inner, String> {
    let library = find()?;
    let symbol = |name| library.symbol(name);

    // SAFETY: in every Slurm plugin `plugin_version` is a uint32_t.
    let version = unsafe { *symbol("plugin_version")?.cast::<u32>() };
    if version != sys::SLURM_VERSION_NUMBER {
        return Err(format!(
            "{} is of Slurm {}, this plugin was built for {}; install the Lockstep built for {0}",
            library.path.display(),
            version_text(version),
            version_text(sys::SLURM_VERSION_NUMBER)
        ));
    }
    let mut addresses = Vec::with_capacity(SYMBOLS.len());
    for name in SYMBOLS {
        addresses.push(symbol(name)?);
    }
    macro_rules! typed {
        ($slot:ident as $type:ty) => {
            // SAFETY: dlsym found the function of this name in a cons_tres of the very version whose headers gave us
            // its signature.
            unsafe { std::mem::transmute::<*mut c_void, $type>(addresses[Slot::$slot as usize]) }
        };
    }
    let inner = Inner {
        // SAFETY: init and fini of a Slurm plugin take nothing and return an int.
        init: unsafe { std::mem::transmute::<*mut c_void, NoArguments>(symbol("init")?) },
        // SAFETY: as above.
        fini: unsafe { std::mem::transmute::<*mut c_void, NoArguments>(symbol("fini")?) },
        job_test: typed!(select_p_job_test as JobTest),
        reconfigure: typed!(select_p_reconfigure as NoArguments),
        nodeinfo_set: typed!(select_p_select_nodeinfo_set as OneJob),
        job_fini: typed!(select_p_job_fini as OneJob),
        job_expand: typed!(select_p_job_expand as TwoJobs),
        job_resized: typed!(select_p_job_resized as JobAndNode),
        job_suspend: typed!(select_p_job_suspend as JobAndFlag),
        job_resume: typed!(select_p_job_resume as JobAndFlag),
        information: typed!(select_p_get_info_from_plugin as Information),
        nodeinfo_set_all: typed!(select_p_select_nodeinfo_set_all as NoArguments),
        nodeinfo_get: typed!(select_p_select_nodeinfo_get as NodeInformation),
    };
    for (slot, address) in TABLE.iter().zip(addresses) {
        slot.store(address, Ordering::Release);
    }
    Ok(inner)
}

/// Looks for cons_tres in PluginDir and beside our own file, in Slurm's order, passing over copies of ourselves.
fn find() -> Result<Library, String> {
    // SAFETY: PluginDir is a terminated string or NULL, and init() runs before anything could change it.
    let configured = unsafe {
        let dirs: *const c_char = sys::lockstep_plugin_dir();
        if dirs.is_null() { &[][..] } else { CStr::from_ptr(dirs).to_bytes() }
    };
    let own = own_path();
    let dirs: Vec<&Path> = configured
        .split(|&b| b == b':')
        .map(|dir| Path::new(OsStr::from_bytes(dir)))
        .chain(own.as_deref().and_then(Path::parent))
        .filter(|dir| dir.is_absolute())
        .collect();
    for path in dirs.iter().flat_map(|dir| FILES.map(|file| dir.join(file))).filter(|path| path.is_file()) {
        if let Some(library) = Library::open(path)? {
            return Ok(library);
        }
    }
    let looked: Vec<_> = dirs.iter().map(|dir| dir.display().to_string()).collect();
    Err(format!(
        "Slurm's own select_cons_tres.so is in none of {}; add its directory to PluginDir in slurm.conf",
        looked.join(", ")
    ))
}

fn last_dl_error() -> String {
    // SAFETY: dlerror returns NULL or a terminated string that stays until the next dl call on this thread.
    unsafe {
        let text = libc::dlerror();
        if text.is_null() {
            "unknown error".into()
        } else {
            CStr::from_ptr(text).to_string_lossy().into_owned()
        }
    }
}

/// A Slurm version number as people write it.
pub fn version_text(version: u32) -> String {
    format!("{}.{:02}.{}", version >> 16 & 0xff, version >> 8 & 0xff, version & 0xff)
}
