//! Copy on write: storages that show the same bytes until one of them is written.
//!
//! [`Storage::lazy_clone`] makes a second storage over the bytes of the first, and marks both as
//! lazy. Writers get the address from [`Storage::data_ptr_mut`], which copies the bytes first,
//! unless no other storage shows them any more. Readers see no difference. Invariants: bytes that a
//! lazy storage shows do not change; each storage that shows shared bytes counts as one holder of
//! them; and an address that was read stays valid, for a storage keeps the bytes that it no longer
//! shows until nobody can be reading them (see `replaced`), without being their holder.
//!
//! Memory that code outside of the library may write to (because arrays show it, or it belongs to
//! an array) is never shared this way: its lazy clone is a copy at once.

use super::{Header, INLINE_AT, Owner, Storage};
use crate::Result;
use crate::tensor::{memory, replaced, watch};
use smallvec::SmallVec;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};

/// Blocks of the caching allocator with the sizes they were asked for.
type Blocks = SmallVec<[(NonNull<u8>, usize); 1]>;

/// Bytes that storages show together.
pub(super) struct SharedBytes {
    memory: SharedMemory,
    /// The number of storages that show them. Only a storage that shows them, under its own lock,
    /// adds one: who finds itself alone stays so.
    holders: AtomicUsize,
}

/// The location of shared bytes.
enum SharedMemory {
    /// Behind the header of a storage, whose block this is, with this number of bytes.
    Behind(NonNull<Header>, usize),
    /// In the last one of these blocks.
    Blocks(Blocks),
}

// SAFETY: the memory is plain bytes, and the header in its block is not touched.
unsafe impl Send for SharedBytes {}
// SAFETY: as above.
unsafe impl Sync for SharedBytes {}

impl SharedBytes {
    fn room(&self) -> usize {
        match &self.memory {
            SharedMemory::Behind(_, bytes) => *bytes,
            SharedMemory::Blocks(blocks) => blocks.last().map_or(0, |&(_, bytes)| bytes),
        }
    }
    /// Whether they lie behind this header.
    fn is_behind(&self, header: NonNull<Header>) -> bool {
        matches!(self.memory, SharedMemory::Behind(at, _) if at == header)
    }
    /// Whether only one storage shows them. What others did with them before is over then.
    fn has_one_holder(&self) -> bool {
        self.holders.load(Ordering::Acquire) == 1
    }
    /// Records that one storage fewer shows them.
    fn leave(&self) {
        self.holders.fetch_sub(1, Ordering::Release);
    }
}

impl Drop for SharedBytes {
    fn drop(&mut self) {
        // SAFETY: blocks came from the allocator for these sizes, and nobody uses them; a storage that lent the block of its
        // header leaves it to this.
        unsafe {
            match &self.memory {
                &SharedMemory::Behind(header, bytes) => {
                    memory::release_with(header.cast(), INLINE_AT + bytes, bytes);
                }
                SharedMemory::Blocks(blocks) => {
                    for &(block, bytes) in blocks {
                        memory::release_with(block, bytes, bytes);
                    }
                }
            }
        }
    }
}

/// The memory of a storage that is or was lazy.
pub(super) struct Lazy {
    shown: Shown,
    /// Bytes that it showed before.
    left: SmallVec<[Arc<SharedBytes>; 1]>,
}

/// The memory that a storage shows.
enum Shown {
    /// Bytes that others may show, too; if the storage is not marked as lazy, none does.
    Shared(Arc<SharedBytes>),
    /// A block of its own.
    Own(NonNull<u8>, usize),
    /// Memory of somebody else, to which the content was moved.
    Elsewhere,
}

impl Lazy {
    fn over(bytes: Arc<SharedBytes>) -> Owner {
        Owner::Lazy(Box::new(Lazy { shown: Shown::Shared(bytes), left: SmallVec::new() }))
    }
    pub(super) fn room(&self) -> usize {
        match &self.shown {
            Shown::Shared(bytes) => bytes.room(),
            &Shown::Own(_, bytes) => bytes,
            Shown::Elsewhere => 0,
        }
    }
    /// Makes the storage show a block of its own from now on, and keeps what it showed.
    pub(super) fn show(&mut self, block: NonNull<u8>, bytes: usize) {
        self.replace(Shown::Own(block, bytes));
    }
    /// Makes the storage show memory of another owner from now on, and keeps what it showed.
    pub(super) fn move_elsewhere(&mut self) {
        self.replace(Shown::Elsewhere);
    }
    fn replace(&mut self, shown: Shown) {
        self.left.push(match std::mem::replace(&mut self.shown, shown) {
            Shown::Shared(bytes) => {
                bytes.leave();
                bytes
            }
            Shown::Own(block, bytes) => {
                let memory = SharedMemory::Blocks(smallvec::smallvec![(block, bytes)]);
                Arc::new(SharedBytes { memory, holders: AtomicUsize::new(0) })
            }
            Shown::Elsewhere => return,
        });
    }
    /// A block of this size that it showed before and that no other storage knows any more, so that a storage which is cloned
    /// and written again and again leaves no trail of blocks.
    fn take_unused(&mut self, room: usize) -> Option<NonNull<u8>> {
        let is_unused = |bytes: &Arc<SharedBytes>| {
            let is_one_block =
                matches!(&bytes.memory, SharedMemory::Blocks(blocks) if blocks.len() == 1);
            is_one_block && bytes.room() == room && Arc::strong_count(bytes) == 1
        };
        let at = self.left.iter().position(is_unused)?;
        let mut bytes = Arc::into_inner(self.left.swap_remove(at))?;
        match &mut bytes.memory {
            SharedMemory::Blocks(blocks) => blocks.pop().map(|(block, _)| block),
            SharedMemory::Behind(..) => None,
        }
    }
    /// Takes out the bytes that it showed before, but those behind this header, which is its own.
    pub(super) fn take_left(&mut self, header: NonNull<Header>) -> SmallVec<[Arc<SharedBytes>; 1]> {
        let (kept, gone) =
            std::mem::take(&mut self.left).into_iter().partition(|bytes| bytes.is_behind(header));
        self.left = kept;
        gone
    }
    /// The equivalent plain owner, if this storage is the only one that knows its block.
    pub(super) fn plain(&self) -> Option<Owner> {
        match self.shown {
            Shown::Own(block, bytes) if self.left.is_empty() => {
                Some(Owner::Blocks(smallvec::smallvec![(block, bytes)]))
            }
            _ => None,
        }
    }
    /// Releases the memory.
    ///
    /// # Safety
    /// The storage does not use it any more.
    pub(super) unsafe fn release(self) {
        match &self.shown {
            Shown::Shared(bytes) => bytes.leave(),
            // SAFETY: the block came from the allocator for these bytes, and nobody uses it.
            &Shown::Own(block, bytes) => unsafe { memory::release_with(block, bytes, bytes) },
            Shown::Elsewhere => {}
        }
    }
    /// The bytes that it shows, for one more storage. A block of its own becomes shared.
    fn share(&mut self) -> Arc<SharedBytes> {
        if let Shown::Own(block, bytes) = self.shown {
            let memory = SharedMemory::Blocks(smallvec::smallvec![(block, bytes)]);
            let shared = SharedBytes { memory, holders: AtomicUsize::new(1) };
            self.shown = Shown::Shared(Arc::new(shared));
        }
        let Shown::Shared(bytes) = &self.shown else { unreachable!("made so just above") };
        bytes.holders.fetch_add(1, Ordering::Relaxed);
        bytes.clone()
    }
}

impl Storage {
    /// Whether other storages may show the same bytes, which are copied before this one is written.
    #[inline(always)]
    pub fn is_lazy(&self) -> bool {
        self.header().is_lazy.load(Ordering::Acquire)
    }

    /// Another storage of the same size, device and content, without copying: the bytes are copied when one of the two is
    /// written. Where somebody outside of the library may write to them, they are copied at once.
    ///
    /// # Errors
    /// Out of memory; `NotImplementedError` for the storage of a sparse tensor, whose elements are elsewhere.
    pub fn lazy_clone(&self) -> Result<Storage> {
        if watch::is_any() {
            watch::refuse(|| "a lazy clone of a storage is made, which is no op".into());
        }
        let header = self.header();
        let mut owner = header.owner.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known =
            header.is_exported.load(Ordering::Relaxed) || header.is_fixed.load(Ordering::Relaxed);
        match &*owner {
            Owner::Meta => return Storage::without_memory(self.nbytes()),
            Owner::Sparse(_) => {
                return Err(crate::Error::not_implemented(
                    "a sparse tensor has no storage of its own that could be cloned",
                ));
            }
            Owner::Foreign(_) | Owner::Moved(..) => return self.copied(),
            Owner::Inline | Owner::Blocks(_) | Owner::Lazy(_) if is_known => return self.copied(),
            Owner::Inline | Owner::Blocks(_) | Owner::Lazy(_) => {}
        }
        // (The memory is allocated before anything changes.)
        let at = memory::allocate(INLINE_AT)?.cast();
        let shared = self.share(&mut owner);
        header.is_lazy.store(true, Ordering::Release);
        let clone =
            Self::write_header(at, self.data_ptr().cast_mut(), self.nbytes(), Lazy::over(shared));
        clone.header().is_lazy.store(true, Ordering::Release);
        clone.set_device(self.device());
        Ok(clone)
    }

    /// A storage with a copy of the bytes.
    fn copied(&self) -> Result<Storage> {
        let bytes = self.nbytes();
        let copy = Storage::uninitialized(bytes)?;
        // SAFETY: both have this many bytes; the copy is fresh.
        unsafe { std::ptr::copy_nonoverlapping(self.data_ptr(), copy.written_ptr(), bytes) };
        copy.set_device(self.device());
        Ok(copy)
    }

    /// The bytes that it shows, for one more storage.
    fn share(&self, owner: &mut Owner) -> Arc<SharedBytes> {
        let memory = match owner {
            Owner::Lazy(lazy) => return lazy.share(),
            Owner::Blocks(blocks) => SharedMemory::Blocks(std::mem::take(blocks)),
            Owner::Inline
            | Owner::Foreign(_)
            | Owner::Moved(..)
            | Owner::Sparse(_)
            | Owner::Meta => {
                self.header().is_lent.store(true, Ordering::Relaxed);
                SharedMemory::Behind(self.0, self.header().inline_bytes)
            }
        };
        let shared = Arc::new(SharedBytes { memory, holders: AtomicUsize::new(2) });
        *owner = Lazy::over(shared.clone());
        shared
    }

    /// Makes sure that no other storage shows the bytes, which are about to be written: copies them if one does.
    ///
    /// # Errors
    /// Out of memory; then nothing has changed.
    #[inline(always)]
    pub fn materialize(&self) -> Result<()> {
        if self.is_lazy() { self.leave_shared() } else { Ok(()) }
    }

    #[cold]
    #[inline(never)]
    fn leave_shared(&self) -> Result<()> {
        let header = self.header();
        let mut owner = header.owner.lock().unwrap_or_else(PoisonError::into_inner);
        // (Another thread may have done it meanwhile.)
        let Owner::Lazy(lazy) = &mut *owner else { return Ok(()) };
        let is_lazy = header.is_lazy.load(Ordering::Relaxed);
        let Shown::Shared(bytes) = &lazy.shown else { return Ok(()) };
        if is_lazy && !bytes.has_one_holder() {
            let room = bytes.room();
            let block = match lazy.take_unused(room) {
                Some(block) => block,
                None => memory::allocate_with(room, room)?,
            };
            // SAFETY: both have this many bytes and are distinct; shared bytes do not change.
            unsafe { std::ptr::copy_nonoverlapping(self.data_ptr(), block.as_ptr(), room) };
            lazy.show(block, room);
            header.data.store(block.as_ptr(), Ordering::Release);
            replaced::note_storage(self);
        }
        header.is_lazy.store(false, Ordering::Release);
        Ok(())
    }

    /// The first byte, to be written.
    ///
    /// # Errors
    /// As [`Storage::materialize`].
    #[inline(always)]
    pub fn data_ptr_mut(&self) -> Result<*mut u8> {
        self.materialize()?;
        Ok(self.header().data.load(Ordering::Acquire))
    }

    /// The first byte, to be written, of a storage that is fresh or that [`Storage::materialize`] was called for.
    ///
    /// # Panics
    /// If it had to be materialised after all and there is no memory for that.
    #[inline(always)]
    pub(in crate::tensor) fn written_ptr(&self) -> *mut u8 {
        if self.is_lazy() {
            self.materialize_late();
        }
        self.header().data.load(Ordering::Acquire)
    }

    /// As the previous function, for a write that the dispatcher did not announce: correct, but
    /// unable to return an error.
    #[cold]
    #[inline(never)]
    fn materialize_late(&self) {
        if let Err(error) = self.leave_shared() {
            panic!("{}", error.message());
        }
    }
}
