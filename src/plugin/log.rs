//! Lines in slurmctld's log, each beginning with `lockstep: `.

use super::sys;
use std::ffi::CString;
use std::fmt::Display;

/// How loud a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Something an administrator should mend.
    Error,
    /// Something an administrator wants to read in a normal log.
    Info,
    /// Each decision, for who looks for a reason.
    Debug,
}

/// Writes one line to Slurm's log.
pub fn line(level: Level, message: impl Display) {
    let level = match level {
        Level::Error => sys::log_level_t_LOG_LEVEL_ERROR,
        Level::Info => sys::log_level_t_LOG_LEVEL_INFO,
        Level::Debug => sys::log_level_t_LOG_LEVEL_DEBUG,
    };
    let text = format!("lockstep: {message}").replace('\0', "?");
    if let Ok(text) = CString::new(text) {
        // SAFETY: the shim takes any level and a terminated string, and copies it into Slurm's log.
        unsafe { sys::lockstep_log(level as i32, text.as_ptr()) }
    }
}

/// An error line.
pub fn error(message: impl Display) {
    line(Level::Error, message);
}

/// An info line.
pub fn info(message: impl Display) {
    line(Level::Info, message);
}

/// A debug line.
pub fn debug(message: impl Display) {
    line(Level::Debug, message);
}
