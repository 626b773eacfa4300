//! Storage: counted memory that tensors view.
//!
//! The header is a small block that holds short data too; longer data is a block of its own of the
//! caching allocator, or memory that somebody else owns (numpy, DLPack). The version counter that
//! views and detached aliases share lives here. Invariant: an address that was read stays valid
//! while anybody may be using it; growing swaps the block and keeps the old one (see `replaced`),
//! so that a kernel running elsewhere never reads freed memory. Storages may show the same bytes
//! until one of them is written (see `storage/lazy.rs`), so that writers call another function for
//! the address than readers.

mod lazy;
mod window;

use super::version::Version;
use super::{Device, Sparse, memory, replaced, watch};
use crate::Result;
use crate::host::host;
use lazy::Lazy;
use std::ptr::NonNull;
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU16, AtomicU64, AtomicUsize, Ordering, fence,
};
use std::sync::{Arc, Mutex};
pub(crate) use window::Window;

/// A counted handle to memory.
#[repr(transparent)]
pub struct Storage(NonNull<Header>);

struct Header {
    handles: AtomicUsize,
    data: AtomicPtr<u8>,
    bytes: AtomicUsize,
    /// The number of bytes of data in the header's own block, which is needed to release the block.
    inline_bytes: usize,
    version: Version,
    /// The device as [`Device::bits`] returns it.
    device: AtomicU16,
    /// Whether other storages may show the same bytes.
    is_lazy: AtomicBool,
    /// Whether other storages show, or have shown, the data in its block, so that it is not its own
    /// to release.
    is_lent: AtomicBool,
    /// Whether the address is known outside of the library.
    is_exported: AtomicBool,
    /// Whether its size may not change any more: an array shows it.
    is_fixed: AtomicBool,
    /// Whether the storage keeps its Python object alive; otherwise the object holds a handle.
    owns_python: AtomicBool,
    owner: Mutex<Owner>,
    /// The Python object that stands for this storage, if one was made.
    python: AtomicPtr<()>,
    /// The mark by which a recording knows it; 0 if none does (see [`watch`]).
    mark: AtomicU64,
}

impl Header {
    /// The number of bytes of the block of `owner`, which is this header's.
    fn room(&self, owner: &Owner) -> usize {
        match owner {
            Owner::Inline => self.inline_bytes,
            Owner::Blocks(blocks) => blocks.last().map_or(0, |&(_, size)| size),
            Owner::Lazy(lazy) => lazy.room(),
            // (Memory that never changes its size.)
            Owner::Foreign(_) | Owner::Moved(..) | Owner::Sparse(_) | Owner::Meta => {
                self.bytes.load(Ordering::Acquire)
            }
        }
    }
}

/// Data up to this many bytes lies behind the header in one block.
const INLINE: usize = 1024;
/// Where it begins: the header's size, rounded up to keep the data aligned.
const INLINE_AT: usize = size_of::<Header>().next_multiple_of(64);

enum Owner {
    /// Data behind the header.
    Inline,
    /// Blocks of the caching allocator with the sizes they were asked for; the last one is in use.
    Blocks(smallvec::SmallVec<[(NonNull<u8>, usize); 1]>),
    /// Bytes that other storages may show, or have shown: see [`lazy`].
    Lazy(Box<Lazy>),
    /// Memory of somebody else, alive as long as this value; cannot grow.
    Foreign(#[allow(dead_code, reason = "kept for its drop")] Keeper),
    /// Memory of another owner that the content was moved to, and the previous owner.
    Moved(#[allow(dead_code, reason = "kept for its drop")] Keeper, Box<Owner>),
    /// One zero behind the header, which stands for all elements, and the parts of a sparse tensor.
    Sparse(Arc<Sparse>),
    /// No memory at all: the storage of tensors on the meta device has a size, and a null pointer that nobody follows.
    Meta,
}

impl Owner {
    /// Releases the memory.
    ///
    /// # Safety
    /// Nobody uses it any more.
    #[inline(always)]
    unsafe fn release(self) {
        match self {
            Owner::Blocks(blocks) => {
                for (block, bytes) in blocks {
                    // SAFETY: the block came from the allocator for `bytes`, and nobody uses it.
                    unsafe { memory::release_with(block, bytes, bytes) };
                }
            }
            // SAFETY: the caller's promise.
            Owner::Moved(_, before) => unsafe { before.release_before() },
            // SAFETY: the caller's promise.
            Owner::Lazy(lazy) => unsafe { lazy.release() },
            Owner::Sparse(_) | Owner::Inline | Owner::Foreign(_) | Owner::Meta => {}
        }
    }
    /// As [`Owner::release`], for the owner of the content before it was moved, perhaps more than
    /// once.
    ///
    /// # Safety
    /// As [`Owner::release`].
    #[cold]
    #[inline(never)]
    unsafe fn release_before(self) {
        // SAFETY: the caller's promise.
        unsafe { self.release() }
    }
}

/// Bytes of the largest element.
const ELEMENT: usize = 16;

/// Keeps memory alive for a storage, until it is dropped (on any thread).
pub struct Keeper {
    value: *mut (),
    release: unsafe fn(*mut ()),
}

// SAFETY: made of values that may be dropped on any thread, or by a caller who promises as much.
unsafe impl Send for Keeper {}
// SAFETY: nothing is done through a reference to it.
unsafe impl Sync for Keeper {}

impl Keeper {
    /// A keeper that owns `value`.
    pub fn new<T: Send + 'static>(value: T) -> Keeper {
        unsafe fn release<T>(value: *mut ()) {
            // SAFETY: the box made below, given back once.
            drop(unsafe { Box::from_raw(value.cast::<T>()) });
        }
        Keeper { value: Box::into_raw(Box::new(value)).cast(), release: release::<T> }
    }
    /// A keeper that calls `release(value)` when it is dropped.
    ///
    /// # Safety
    /// That call, once and on any thread, is sound.
    pub unsafe fn from_raw(value: *mut (), release: unsafe fn(*mut ())) -> Keeper {
        Keeper { value, release }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // SAFETY: what the maker promised; once.
        unsafe { (self.release)(self.value) }
    }
}

// SAFETY: the header is only changed through atomics and a mutex; element access is the kernels' business.
unsafe impl Send for Storage {}
// SAFETY: as above.
unsafe impl Sync for Storage {}

impl Storage {
    /// Memory for `bytes` bytes, not initialised.
    #[inline]
    pub fn uninitialized(bytes: usize) -> Result<Storage> {
        if bytes <= INLINE {
            let ptr = memory::allocate_with(INLINE_AT + bytes, bytes)?;
            // SAFETY: the block has `bytes` bytes from there on.
            let data = unsafe { ptr.as_ptr().add(INLINE_AT) };
            return Ok(Self::write_header(ptr.cast(), data, bytes, Owner::Inline));
        }
        let block = memory::allocate_with(bytes, bytes)?;
        Self::from_owner(block.as_ptr(), bytes, Owner::Blocks(smallvec::smallvec![(block, bytes)]))
    }

    /// The storage of tensors on the meta device: `bytes` bytes that are only counted.
    ///
    /// # Errors
    /// Out of memory (for the header).
    pub fn without_memory(bytes: usize) -> Result<Storage> {
        let storage = Self::from_owner(std::ptr::null_mut(), bytes, Owner::Meta)?;
        storage.set_device(Device::Meta);
        Ok(storage)
    }

    /// Storage of `bytes` bytes on `device`, not initialised.
    ///
    /// # Errors
    /// Those of [`Device::check_available`]; out of memory.
    pub fn uninitialized_on(bytes: usize, device: Device) -> Result<Storage> {
        if device == Device::Meta {
            return Self::without_memory(bytes);
        }
        Self::uninitialized(bytes)?.placed_on(device)
    }

    /// Refuses to touch bytes that are only counted.
    ///
    /// # Errors
    /// `NotImplementedError` for the storage of a meta tensor.
    pub fn check_memory(&self) -> Result<()> {
        crate::error::ensure!(
            self.device() != Device::Meta,
            not_implemented,
            "Cannot copy out of meta tensor; no data!"
        );
        Ok(())
    }

    /// Memory of `bytes` bytes that `fill` writes into; they are zero until then.
    ///
    /// # Errors
    /// Those of `fill`; out of memory.
    pub fn filled(bytes: usize, fill: impl FnOnce(&mut [u8]) -> Result<()>) -> Result<Storage> {
        let storage = Self::uninitialized(bytes)?;
        // SAFETY: a fresh block of this size, which nobody else knows.
        let ptr = unsafe {
            storage.written_ptr().write_bytes(0, bytes);
            std::slice::from_raw_parts_mut(storage.written_ptr(), bytes)
        };
        fill(ptr)?;
        Ok(storage)
    }
    /// Calls `read` with the bytes. As with all memory of tensors, a program that writes to it from
    /// another thread meanwhile has a data race.
    ///
    /// # Errors
    /// `NotImplementedError` for the storage of a meta tensor, which has none.
    pub fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> Result<R> {
        self.check_memory()?;
        if watch::is_any() {
            watch::refuse(|| "the bytes of a storage are read on the host".into());
        }
        // (Growing elsewhere keeps the block that was read, but not its size together with it: size first.)
        let bytes = self.nbytes();
        // SAFETY: the block has this many bytes, and lives as long as the handle.
        Ok(read(unsafe { std::slice::from_raw_parts(self.data_ptr(), bytes) }))
    }

    /// Memory that `owner` keeps alive.
    ///
    /// # Safety
    /// `data` points to `bytes` readable and writable bytes that stay valid until `owner` is dropped.
    pub unsafe fn foreign(data: *mut u8, bytes: usize, owner: Keeper) -> Result<Storage> {
        Self::from_owner(data, bytes, Owner::Foreign(owner))
    }

    /// The storage of a sparse tensor: one zero, for code that treats it as strided, and its parts.
    pub(super) fn of_sparse(parts: Sparse) -> Result<Storage> {
        let ptr = memory::allocate_with(INLINE_AT + ELEMENT, ELEMENT)?;
        // SAFETY: the block has this many bytes from there on.
        let data = unsafe {
            let data = ptr.as_ptr().add(INLINE_AT);
            data.write_bytes(0, ELEMENT);
            data
        };
        let owner = Owner::Sparse(Arc::new(parts));
        Ok(Self::write_header(ptr.cast(), data, ELEMENT, owner))
    }
    /// The parts of the sparse tensors that show this storage.
    pub(super) fn sparse(&self) -> Option<Arc<Sparse>> {
        match &*self.header().owner.lock().unwrap_or_else(std::sync::PoisonError::into_inner) {
            Owner::Sparse(parts) => Some(parts.clone()),
            _ => None,
        }
    }
    /// Sets the parts.
    pub(super) fn set_sparse(&self, parts: Sparse) {
        let new = Owner::Sparse(Arc::new(parts));
        let mut owner =
            self.header().owner.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let old = std::mem::replace(&mut *owner, new);
        drop(owner);
        drop(old);
    }

    fn from_owner(data: *mut u8, bytes: usize, owner: Owner) -> Result<Storage> {
        match memory::allocate(INLINE_AT) {
            Ok(ptr) => Ok(Self::write_header(ptr.cast(), data, bytes, owner)),
            Err(error) => {
                // SAFETY: nobody has seen the memory.
                unsafe { owner.release() };
                Err(error)
            }
        }
    }

    #[inline(always)]
    fn write_header(ptr: NonNull<Header>, data: *mut u8, bytes: usize, owner: Owner) -> Storage {
        let header = Header {
            handles: AtomicUsize::new(1),
            data: AtomicPtr::new(data),
            bytes: AtomicUsize::new(bytes),
            inline_bytes: if matches!(owner, Owner::Inline | Owner::Sparse(_)) { bytes } else { 0 },
            version: Version::new(0),
            device: AtomicU16::new(Device::Cpu.bits()),
            is_lazy: AtomicBool::new(false),
            is_lent: AtomicBool::new(false),
            is_exported: AtomicBool::new(false),
            is_fixed: AtomicBool::new(false),
            owns_python: AtomicBool::new(false),
            owner: Mutex::new(owner),
            python: AtomicPtr::new(std::ptr::null_mut()),
            mark: AtomicU64::new(watch::new_mark()),
        };
        // SAFETY: a fresh block, large and aligned enough for the header.
        unsafe { ptr.write(header) };
        Storage(ptr)
    }

    #[inline(always)]
    fn header(&self) -> &Header {
        // SAFETY: the header lives as long as this handle counts.
        unsafe { self.0.as_ref() }
    }
    /// The address of the first byte, for reading; code that writes calls
    /// [`Storage::data_ptr_mut`].
    #[inline(always)]
    pub fn data_ptr(&self) -> *const u8 {
        self.header().data.load(Ordering::Acquire)
    }
    /// The number of bytes.
    #[inline(always)]
    pub fn nbytes(&self) -> usize {
        self.header().bytes.load(Ordering::Acquire)
    }
    /// The device.
    pub fn device(&self) -> Device {
        Device::from_bits(self.header().device.load(Ordering::Relaxed))
    }
    /// The memory, which is fresh, as that of a device.
    ///
    /// # Errors
    /// Those of [`Device::check_available`].
    pub fn placed_on(self, device: Device) -> Result<Storage> {
        device.check_available()?;
        self.set_device(device);
        Ok(self)
    }
    /// Marks the memory, which is fresh, as that of a device.
    pub(crate) fn set_device(&self, device: Device) {
        self.header().device.store(device.bits(), Ordering::Relaxed);
    }
    /// The counter that everything viewing this memory shares.
    #[inline(always)]
    pub(crate) fn version(&self) -> &Version {
        &self.header().version
    }
    /// How many handles there are.
    #[inline(always)]
    pub fn use_count(&self) -> usize {
        self.header().handles.load(Ordering::Acquire)
    }
    /// The mark by which a recording knows it; 0 if none does.
    pub(crate) fn mark(&self) -> u64 {
        self.header().mark.load(Ordering::Relaxed)
    }
    /// Sets the mark by which a recording knows it.
    pub(crate) fn set_mark(&self, mark: u64) {
        self.header().mark.store(mark, Ordering::Relaxed);
    }
    /// Whether two handles mean the same memory object.
    pub fn ptr_eq(&self, other: &Storage) -> bool {
        self.0 == other.0
    }
    /// Identity of the memory object.
    pub fn id(&self) -> usize {
        self.0.as_ptr() as usize
    }
    /// Whether [`Storage::grow`] can work.
    pub fn is_resizable(&self) -> bool {
        let owner = self.header().owner.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        !self.is_fixed(&owner)
    }
    fn is_fixed(&self, owner: &Owner) -> bool {
        let is_others = matches!(owner, Owner::Foreign(_) | Owner::Moved(..) | Owner::Sparse(_));
        is_others || self.header().is_fixed.load(Ordering::Relaxed)
    }
    /// Fixes its size from now on: an array of another library shows it, and would show other
    /// memory than the tensors do.
    pub(crate) fn fix_size(&self) {
        self.header().is_fixed.store(true, Ordering::Relaxed);
    }
    /// The Python object slot.
    pub fn python_slot(&self) -> &AtomicPtr<()> {
        &self.header().python
    }
    /// Whether it keeps its Python object alive.
    pub fn owns_python(&self) -> bool {
        self.header().owns_python.load(Ordering::Relaxed)
    }
    /// Makes the storage keep its Python object alive: the object's handle is not counted any more.
    /// To be called with the interpreter's lock.
    pub fn give_python(handle: Storage) {
        handle.header().owns_python.store(true, Ordering::Release);
        drop(handle);
    }
    /// Makes the Python object keep the storage alive again: the object's handle is counted from
    /// now on. Returns whether the last handle was gone already: then another thread is about to
    /// call [`crate::host::Host::storage_released`].
    ///
    /// # Safety
    /// It keeps its Python object alive, and the interpreter's lock is held.
    pub unsafe fn take_python(uncounted: &Storage) -> bool {
        let header = uncounted.header();
        header.owns_python.store(false, Ordering::Relaxed);
        let more = |handles| (handles > 0).then_some(handles + 1);
        let is_gone =
            header.handles.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).is_err();
        if is_gone {
            header.handles.fetch_add(1, Ordering::AcqRel);
        }
        is_gone
    }

    /// Makes room for `bytes` bytes, keeping the content.
    ///
    /// # Errors
    /// `RuntimeError` if the memory has another owner; out of memory.
    pub fn grow(&self, bytes: usize) -> Result<()> {
        if bytes <= self.nbytes() { Ok(()) } else { self.resize(bytes) }
    }

    /// Makes it `bytes` bytes large, keeping the content. A smaller one keeps its block, so that tensors which reach
    /// beyond the end still read memory of their own; for the same reason no block is replaced by a smaller one.
    ///
    /// # Errors
    /// `RuntimeError` if the memory has another owner; out of memory.
    pub fn resize(&self, bytes: usize) -> Result<()> {
        let header = self.header();
        let mut owner = header.owner.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if self.is_fixed(&owner) {
            return Err(crate::Error::runtime("Trying to resize storage that is not resizable"));
        }
        let room = header.room(&owner);
        if bytes <= room || matches!(*owner, Owner::Meta) {
            header.bytes.store(bytes, Ordering::Release);
            return Ok(());
        }
        let block = memory::allocate_with(bytes, bytes)?;
        // SAFETY: both blocks have at least `room` bytes and are distinct.
        unsafe { std::ptr::copy_nonoverlapping(self.data_ptr(), block.as_ptr(), room) };
        match &mut *owner {
            Owner::Blocks(blocks) => {
                blocks.push((block, bytes));
                replaced::note_storage(self);
            }
            Owner::Lazy(lazy) => {
                lazy.show(block, bytes);
                replaced::note_storage(self);
            }
            other => *other = Owner::Blocks(smallvec::smallvec![(block, bytes)]),
        }
        header.data.store(block.as_ptr(), Ordering::Release);
        header.is_lazy.store(false, Ordering::Release);
        header.bytes.store(bytes, Ordering::Release);
        Ok(())
    }

    /// How many bytes the block has, which are more than [`Storage::nbytes`] after it was made smaller. It never shrinks.
    pub(super) fn room(&self) -> usize {
        let header = self.header();
        header.room(&header.owner.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    /// A storage over `bytes` bytes of this one from `start` on, which it keeps alive.
    ///
    /// # Errors
    /// `RuntimeError` if the range reaches beyond the end; out of memory.
    pub fn part(&self, start: usize, bytes: usize) -> Result<Storage> {
        let is_inside = start.checked_add(bytes).is_some_and(|end| end <= self.nbytes());
        self.check_memory()?;
        crate::error::ensure!(
            is_inside,
            runtime,
            "bytes {start} to {start} + {bytes} are not inside a storage of {} bytes",
            self.nbytes()
        );
        // The part shows the address for as long as it lives.
        self.export()?;
        // SAFETY: checked to be inside; the block of an exported storage lives as long as its handles.
        unsafe { Self::foreign(self.data_ptr_mut()?.add(start), bytes, Keeper::new(self.clone())) }
    }

    /// Moves the content to `data`. All tensors over this storage show the new memory from now on;
    /// those that were given the old address (NumPy, a `DLPack` consumer) continue to see the old
    /// memory, which no tensor shows any more.
    ///
    /// # Safety
    /// `data` points to [`Storage::nbytes`] readable and writable bytes that stay valid until `keeper` is dropped.
    ///
    /// # Errors
    /// `RuntimeError` for the storage of a sparse tensor.
    pub unsafe fn move_to(&self, data: *mut u8, keeper: Keeper) -> Result<()> {
        let header = self.header();
        let mut owner = header.owner.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if matches!(*owner, Owner::Sparse(_) | Owner::Meta) {
            return Err(crate::Error::runtime(
                "a sparse or meta tensor has no memory that could be moved",
            ));
        }
        // SAFETY: both hold this many bytes, and the new memory is not known to anybody yet.
        unsafe { std::ptr::copy_nonoverlapping(self.data_ptr(), data, self.nbytes()) };
        let mut before = std::mem::replace(&mut *owner, Owner::Inline);
        if let Owner::Lazy(lazy) = &mut before {
            lazy.move_elsewhere();
        }
        *owner = Owner::Moved(keeper, Box::new(before));
        header.data.store(data, Ordering::Release);
        header.is_lazy.store(false, Ordering::Release);
        drop(owner);
        replaced::note_storage(self);
        Ok(())
    }

    /// Marks the address as known outside (to NumPy, or a `DLPack` consumer): it stays valid as long as any handle lives, and
    /// the bytes are not shared with a lazy clone, for they may be written from there.
    ///
    /// # Errors
    /// As [`Storage::materialize`].
    pub(crate) fn export(&self) -> Result<()> {
        self.materialize()?;
        self.header().is_exported.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Frees the blocks that growing replaced, unless the address is known outside.
    ///
    /// # Safety
    /// Nobody uses an address read before the last [`Storage::grow`].
    pub(super) unsafe fn drop_replaced(&self) {
        let header = self.header();
        if header.is_exported.load(Ordering::Relaxed) {
            return;
        }
        let mut owner = header.owner.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let old = match &mut *owner {
            Owner::Blocks(blocks) => {
                let last = blocks.len() - 1;
                Owner::Blocks(blocks.drain(..last).collect())
            }
            // (What lent the block of this very header stays with it.)
            Owner::Moved(_, before) if !header.is_lent.load(Ordering::Relaxed) => {
                std::mem::replace(&mut **before, Owner::Inline)
            }
            Owner::Lazy(lazy) => {
                let gone = lazy.take_left(self.0);
                if let Some(plain) = lazy.plain() {
                    *owner = plain;
                }
                drop(owner);
                drop(gone);
                return;
            }
            _ => return,
        };
        // (What is released may call back: not under the lock.)
        drop(owner);
        // SAFETY: nobody uses it, as the caller promises.
        unsafe { old.release() };
    }
}

impl Storage {
    /// The last handle is gone: from now on the Python object, which may still be used, has the
    /// storage.
    #[cold]
    #[inline(never)]
    fn release_python(&self) {
        if let Some(host) = host() {
            host.storage_released(self.python_slot().load(Ordering::Relaxed));
        }
    }
}

impl Clone for Storage {
    #[inline(always)]
    fn clone(&self) -> Self {
        self.header().handles.fetch_add(1, Ordering::Relaxed);
        Storage(self.0)
    }
}

impl Drop for Storage {
    #[inline(always)]
    fn drop(&mut self) {
        // The only handle needs no atomic step: new ones are made from old ones, or by the Python object.
        let (handles, owns_python) = (&self.header().handles, &self.header().owns_python);
        let is_sole = handles.load(Ordering::Acquire) == 1 && !owns_python.load(Ordering::Relaxed);
        if !is_sole && handles.fetch_sub(1, Ordering::Release) != 1 {
            return;
        }
        fence(Ordering::Acquire);
        if owns_python.load(Ordering::Relaxed) {
            return self.release_python();
        }
        // SAFETY: this was the last handle: nobody else reaches the header.
        let header = unsafe { self.0.as_mut() };
        let mark = *header.mark.get_mut();
        if mark != 0 {
            watch::note_end(mark);
        }
        // (What the header says is read where it is, and the owner moved only if it has something to give back.)
        let elements = header.inline_bytes;
        let owner = header.owner.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
        let owner = match owner {
            Owner::Inline => None,
            other => Some(std::mem::replace(other, Owner::Inline)),
        };
        if !*header.is_lent.get_mut() {
            // SAFETY: the block was allocated with this size and holds nothing any more.
            unsafe { memory::release_with(self.0.cast(), INLINE_AT + elements, elements) };
        }
        if let Some(owner) = owner {
            // SAFETY: no handle is left.
            unsafe { owner.release() };
        }
    }
}
