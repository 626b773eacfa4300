//! Storage that shows the memory of another one for a while.
//!
//! A recorded program (`crate::capture`) has its tensors made once; what they show differs from replay to replay where it is a
//! caller's input or a result. Such tensors have the storage of a [`Window`], which is aimed at the memory before the kernels
//! run and nowhere afterwards. Invariant: no tensor over a window leaves its program.

use super::{Keeper, Owner, Storage};
use crate::Result;
use std::ptr::without_provenance_mut;
use std::sync::atomic::Ordering;

/// Where a window shows when it is not aimed: an address that is aligned for every element, with nothing behind it.
const NOWHERE: usize = 64;

/// The owner of a storage whose address changes.
pub(crate) struct Window(Storage);

impl Window {
    /// A window of this size, aimed nowhere.
    ///
    /// # Errors
    /// Out of memory (for the header).
    pub(crate) fn new(bytes: usize) -> Result<Window> {
        let owner = Owner::Foreign(Keeper::new(()));
        Storage::from_owner(without_provenance_mut(NOWHERE), bytes, owner).map(Window)
    }
    /// The storage, for tensors that are used only while the window is aimed.
    pub(crate) fn storage(&self) -> Storage {
        self.0.clone()
    }
    /// Shows the memory at `data` from now on.
    ///
    /// # Safety
    /// There are as many readable and writable bytes as the window has, until it is aimed elsewhere, and nobody uses a tensor
    /// over the window at this moment.
    pub(crate) unsafe fn aim(&self, data: *mut u8) {
        self.0.header().data.store(data, Ordering::Release);
    }
    /// Shows nothing any more.
    pub(crate) fn close(&self) {
        self.0.header().data.store(without_provenance_mut(NOWHERE), Ordering::Release);
    }
}
