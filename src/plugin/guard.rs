//! The panic boundary: nothing that Lockstep does may take slurmctld down.
//!
//! A panic that unwinds out of an `extern "C"` function aborts the process. So every exported function runs its body
//! in [`call`], which turns a panic into the caller's fallback (for a placement: ask cons_tres instead), counts it, and
//! logs the first one of each entry point with the place it came from.

use super::log;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

thread_local! {
    /// What the panic hook saw on this thread: the message and where it came from, which the payload does not carry.
    static LAST_PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// An exported function, and whether a panic in it was logged already.
pub struct Entry {
    name: &'static str,
    logged: AtomicBool,
}

impl Entry {
    /// An entry point by the name of what Slurm calls.
    pub const fn new(name: &'static str) -> Self {
        Self { name, logged: AtomicBool::new(false) }
    }
}

/// Keeps a panic's message and place for [`call`] instead of printing it to slurmctld's stderr.
pub fn install_panic_hook() {
    std::panic::set_hook(Box::new(|info| {
        LAST_PANIC.with(|last| {
            // A panic inside a panic's hook would abort: a message in use is simply kept.
            if let Ok(mut last) = last.try_borrow_mut() {
                *last = info.to_string();
            }
        });
    }));
}

/// Runs `body`; if it panics, logs that once and runs `fallback` instead.
///
/// The fallback stands behind the guard too; if both panic, the result is `last_resort`.
pub fn call<T>(entry: &Entry, last_resort: T, body: impl FnOnce() -> T, fallback: impl FnOnce() -> T) -> T {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(value) => value,
        Err(payload) => {
            // A payload may panic when dropped; leaking one is the lesser evil.
            std::mem::forget(payload);
            report(entry);
            catch_unwind(AssertUnwindSafe(fallback)).unwrap_or_else(|payload| {
                std::mem::forget(payload);
                last_resort
            })
        }
    }
}

fn report(entry: &Entry) {
    if entry.logged.swap(true, Ordering::Relaxed) {
        return;
    }
    let what = LAST_PANIC.with(|last| last.try_borrow().map(|text| text.clone()).unwrap_or_default());
    log::error(format_args!(
        "internal error in {}, cons_tres answers instead (said once; please report it): {}",
        entry.name,
        what.replace('\n', " ")
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    static TESTED: Entry = Entry::new("tested");

    #[test]
    fn a_panic_becomes_the_fallback_and_a_second_one_the_last_resort() {
        assert_eq!(call(&TESTED, 0, || 1, || 2), 1);
        assert_eq!(call(&TESTED, 0, || panic!("first"), || 2), 2);
        assert_eq!(call(&TESTED, 0, || panic!("first"), || panic!("second")), 0);
    }
}
