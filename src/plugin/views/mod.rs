//! Slurm's job, partition and node records, read safely.
//!
//! A view holds a pointer that slurmctld passed in or that one of its records leads to. It is made at the boundary,
//! where slurmctld holds its job and node write locks, and lives no longer than that call; so each field it reads is
//! valid and does not change underneath, except by cons_tres while it is asked, between two reads.

mod details;
mod job;
mod node;
mod trial;

pub use details::Details;
pub use job::Job;
pub use node::{Node, Partition};
pub use trial::TrialState;

use super::bits::Bitmap;
use super::sys;
use crate::nodeset::NodeSet;
use std::ffi::{CStr, CString, c_char, c_int, c_void};

/// Reads a field of the record behind a view.
macro_rules! read {
    ($view:ident.$($field:ident).+) => {
        // SAFETY: a view's pointer is valid for the call it lives in (see `borrow` of its type).
        unsafe { (*$view.0.as_ptr()).$($field).+ }
    };
}

macro_rules! view {
    ($(#[$doc:meta])* $name:ident of $record:ty) => {
        $(#[$doc])*
        pub struct $name<'a>(pub(super) NonNull<$record>, PhantomData<&'a $record>);

        impl $name<'_> {
            /// Borrows a record; none for NULL.
            ///
            /// # Safety
            /// The pointer is NULL or a record of slurmctld that stays valid during the view's lifetime, under the
            /// locks that keep other threads off it.
            pub unsafe fn borrow(record: *mut $record) -> Option<Self> {
                NonNull::new(record).map(|record| Self(record, PhantomData))
            }
        }
    };
}

use read;
use view;

/// The job with this number; none if slurmctld does not know it.
///
/// To be called only from within a call of slurmctld, under its job write lock.
pub fn find_job<'a>(id: u32) -> Option<Job<'a>> {
    // SAFETY: called under the job lock as said above; the record stays during the call.
    unsafe { Job::borrow(sys::lockstep_find_job(id)) }
}

/// All jobs that slurmctld knows. To be called as [`find_job`].
pub fn jobs<'a>() -> Vec<Job<'a>> {
    // SAFETY: called under the job lock as said above; the list holds job records only.
    unsafe { entries(sys::lockstep_jobs()).into_iter().filter_map(|job| Job::borrow(job)).collect() }
}

/// The node table: index by index, none where it has a hole. To be called as [`find_job`].
pub fn nodes<'a>() -> Vec<Option<Node<'a>>> {
    // SAFETY: called under the node lock as said above; every index is below the count.
    unsafe { (0..sys::lockstep_node_count()).map(|i| Node::borrow(sys::lockstep_node(i))).collect() }
}

/// Keeps only the nodes of one of Slurm's bitmaps; false, with the set untouched, where there is none.
fn keep(nodes: &mut NodeSet, bitmap: *mut sys::bitstr_t) -> bool {
    // SAFETY: a bitmap that a record of slurmctld leads to; nobody changes it during the call.
    let Some(bitmap) = (unsafe { Bitmap::borrow(bitmap) }) else { return false };
    let mut set = NodeSet::new(nodes.size());
    bitmap.copy_to(&mut set);
    nodes.intersect_with(&set);
    true
}

/// The entries of a Slurm list, in order. Collected first, since Slurm holds the list's lock while it walks.
fn entries<T>(list: sys::List) -> Vec<*mut T> {
    extern "C" fn push(entry: *mut c_void, all: *mut c_void) -> c_int {
        // SAFETY: `all` is the vector below, which has room for every entry, so nothing is allocated and nothing
        // can panic inside of Slurm's walk.
        let all = unsafe { &mut *all.cast::<Vec<*mut c_void>>() };
        if all.len() < all.capacity() {
            all.push(entry);
        }
        0
    }
    // SAFETY: the list is NULL or a Slurm list that a record of slurmctld leads to.
    let count = unsafe { sys::lockstep_list_count(list) };
    let mut all: Vec<*mut c_void> = Vec::with_capacity(usize::try_from(count).unwrap_or(0));
    // SAFETY: as above; `push` takes the vector it is given.
    unsafe { sys::lockstep_for_each(list, Some(push), (&raw mut all).cast()) };
    all.into_iter().map(<*mut c_void>::cast).collect()
}

/// A Slurm list of our own that borrows its entries; freed with this value.
pub struct OwnList(sys::List);

impl OwnList {
    /// A list of these jobs, in this order.
    pub fn of_jobs<'a>(jobs: impl Iterator<Item = &'a Job<'a>>) -> Self {
        // SAFETY: makes an empty list without a destructor for its entries.
        let list = unsafe { sys::lockstep_list_create() };
        for job in jobs {
            // SAFETY: the list was just made, and the entry is a job record that outlives the call.
            unsafe { sys::lockstep_list_append(list, job.0.as_ptr().cast()) };
        }
        Self(list)
    }

    /// The list, as Slurm takes it.
    pub fn raw(&self) -> sys::List {
        self.0
    }
}

impl Drop for OwnList {
    fn drop(&mut self) {
        // SAFETY: made by `of_jobs`, freed here only; nobody keeps it beyond the call it was passed to.
        unsafe { sys::lockstep_list_destroy(self.0) };
    }
}

/// A Slurm list of names with values that slurmctld will free.
pub fn own_pairs(pairs: &[(String, String)]) -> sys::List {
    // SAFETY: makes an empty list of such pairs.
    let list = unsafe { sys::lockstep_pairs_create() };
    for (name, value) in pairs {
        if let (Ok(name), Ok(value)) = (CString::new(name.as_str()), CString::new(value.as_str())) {
            // SAFETY: the list was just made, both strings are terminated and are copied.
            unsafe { sys::lockstep_pairs_append(list, name.as_ptr(), value.as_ptr()) };
        }
    }
    list
}

/// The jobs of one of Slurm's lists, in its order. To be called as [`find_job`].
pub fn jobs_of<'a>(list: sys::List) -> Vec<Job<'a>> {
    // SAFETY: a list of job records, or NULL, that slurmctld passed in.
    entries(list).into_iter().filter_map(|job| unsafe { Job::borrow(job) }).collect()
}

/// A C array as a slice; empty for NULL.
///
/// # Safety
/// The pointer is NULL or leads to `len` entries that do not change while the slice is used.
unsafe fn array<'a, T>(first: *const T, len: usize) -> &'a [T] {
    if first.is_null() {
        return &[];
    }
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts(first, len) }
}

/// A C string of one of Slurm's records; none for NULL.
fn text(string: *const c_char) -> Option<String> {
    // SAFETY: every string in Slurm's records is terminated or NULL.
    (!string.is_null()).then(|| unsafe { CStr::from_ptr(string) }.to_string_lossy().into_owned())
}
